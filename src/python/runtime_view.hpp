// The live runtime of a target, read through its layout. Every pointer is bounded in how far it is
// followed; nothing is stopped for it, so what it says of a running target may be outdated.
#pragma once

#include "pyinject/base/remote_address.hpp"
#include "pyinject/tracee/remote_memory.hpp"
#include "runtime_layout.hpp"

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
  RuntimeView(const tracee::MemoryReader& memory, const RuntimeLayout& layout,
              base::RemoteAddress runtime)
      : memory_{memory}, layout_{layout}, runtime_{runtime} {}

  [[nodiscard]] bool initialized() const;
  [[nodiscard]] bool finalizing() const;
  // The interpreter with id 0; nullopt when what is there is none.
  [[nodiscard]] std::optional<base::RemoteAddress> main_interpreter() const;
  // Newest first; at most 1000.
  [[nodiscard]] std::vector<base::RemoteAddress> interpreters() const;
  // The thread states of INTERPRETER, newest first. WHOLE, when given, says whether the list's end
  // was reached.
  [[nodiscard]] std::vector<ThreadState> threads(base::RemoteAddress interpreter,
                                                 bool* whole = nullptr) const;
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
  const tracee::MemoryReader& memory_;
  const RuntimeLayout& layout_;
  base::RemoteAddress runtime_;
};

}  // namespace pyinject::python
