// Reads the live runtime of a target. All lists are followed up to a limit; nothing is stopped, so
// the results for a running target may be outdated.
#pragma once

#include "memory/process_memory.hpp"
#include "pyinject/base/remote_address.hpp"
#include "python/layout/runtime_layout.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace pyinject::python {

struct ThreadState {
  base::RemoteAddress address;
  std::uint64_t thread_id = 0;  // the thread pointer
  std::uint64_t native_id = 0;  // gettid() of the thread, in its own pid namespace
};

class RuntimeView {
 public:
  // The maximum number of threads of a process with the default kernel.pid_max.
  static constexpr std::size_t kMostThreads = 32768;

  RuntimeView(const memory::MemoryReader& memory, const RuntimeLayout& layout,
              base::RemoteAddress runtime)
      : memory_{memory}, layout_{layout}, runtime_{runtime} {}

  [[nodiscard]] bool initialized() const;
  [[nodiscard]] bool finalizing() const;
  // The interpreter with id 0; nullopt: the memory does not hold one.
  [[nodiscard]] std::optional<base::RemoteAddress> main_interpreter() const;
  // Newest first; at most 1000, each once.
  [[nodiscard]] std::vector<base::RemoteAddress> interpreters() const;
  // Up to MOST thread states of INTERPRETER, newest first. WHOLE, unless null, tells whether the
  // end of the list was reached.
  [[nodiscard]] std::vector<ThreadState> threads(base::RemoteAddress interpreter,
                                                 bool* whole = nullptr,
                                                 std::size_t most = kMostThreads) const;
  // pthread_self() of the thread that runs pending calls and signal handlers.
  [[nodiscard]] std::optional<std::uint64_t> main_thread() const;
  // Whether INTERPRETER uses its GIL: a free-threaded build may switch it on while it runs, for an
  // extension that needs it.
  [[nodiscard]] bool uses_gil(base::RemoteAddress interpreter) const;
  // True if THREAD seems to hold the GIL of INTERPRETER.
  [[nodiscard]] bool holds_gil(base::RemoteAddress interpreter, base::RemoteAddress thread) const;
  // A signal has arrived, and the main thread, THREAD, has not run its Python handler yet.
  [[nodiscard]] bool signal_pending(base::RemoteAddress thread) const;
  // Whether audit hooks, or a trace or profile function of THREAD, observe Python code that runs in
  // it. They can make it fail by raising.
  [[nodiscard]] bool observed(base::RemoteAddress interpreter, base::RemoteAddress thread) const;

 private:
  const memory::MemoryReader& memory_;
  const RuntimeLayout& layout_;
  base::RemoteAddress runtime_;
};

}  // namespace pyinject::python
