// The live runtime of a target, read through its layout. Every pointer is bounded in how far it is
// followed; nothing is stopped for it, so what it says of a running target may be outdated.
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
  std::uint64_t native_id = 0;  // gettid() of it, in its own pid namespace
};

class RuntimeView {
 public:
  // A process has at most 32768 threads where nobody has raised kernel.pid_max.
  static constexpr std::size_t kMostThreads = 32768;

  RuntimeView(const memory::MemoryReader& memory, const RuntimeLayout& layout,
              base::RemoteAddress runtime)
      : memory_{memory}, layout_{layout}, runtime_{runtime} {}

  [[nodiscard]] bool initialized() const;
  [[nodiscard]] bool finalizing() const;
  // The interpreter with id 0; nullopt when what is there is none.
  [[nodiscard]] std::optional<base::RemoteAddress> main_interpreter() const;
  // Newest first; at most 1000, each once.
  [[nodiscard]] std::vector<base::RemoteAddress> interpreters() const;
  // The thread states of INTERPRETER, newest first, MOST of them. WHOLE, when given, says whether
  // the list's end was reached.
  [[nodiscard]] std::vector<ThreadState> threads(base::RemoteAddress interpreter,
                                                 bool* whole = nullptr,
                                                 std::size_t most = kMostThreads) const;
  // pthread_self() of the thread that runs pending calls and signal handlers.
  [[nodiscard]] std::optional<std::uint64_t> main_thread() const;
  // True when the GIL of INTERPRETER is held, as far as can be told, by THREAD.
  [[nodiscard]] bool holds_gil(base::RemoteAddress interpreter, base::RemoteAddress thread) const;
  // A signal has arrived whose Python handler the main thread, THREAD, has not run yet.
  [[nodiscard]] bool signal_pending(base::RemoteAddress thread) const;
  // Audit hooks, a trace or a profile function of THREAD see Python code that runs in it, and can
  // make it fail by raising.
  [[nodiscard]] bool observed(base::RemoteAddress interpreter, base::RemoteAddress thread) const;

 private:
  const memory::MemoryReader& memory_;
  const RuntimeLayout& layout_;
  base::RemoteAddress runtime_;
};

}  // namespace pyinject::python
