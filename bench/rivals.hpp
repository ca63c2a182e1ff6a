// Other ways to make a running interpreter do something, measured next to this tool's.
#pragma once

#include "measure.hpp"
#include "pyinject/python/target.hpp"
#include "support/interpreters.hpp"

#include <memory>
#include <optional>
#include <string_view>

namespace pyinject::bench {

// The code that the rivals run. This tool also runs kActivation, once.
inline constexpr std::string_view kActivation =
    "try:__import__('sys').activate_stack_trampoline('perf')\nexcept BaseException:pass";
inline constexpr std::string_view kDeactivation =
    "try:__import__('sys').deactivate_stack_trampoline()\nexcept BaseException:pass";

// Does what debuggers and most injectors do: stops the target, saves the registers, calls
// PyGILState_Ensure, PyRun_SimpleString and PyGILState_Release one after the other, restores the
// registers, detaches. Written for this comparison; stops all threads as quickly as this tool does.
// Returns how long the target was stopped. nullopt: it did not survive.
[[nodiscard]] std::optional<nanoseconds> call_like_a_debugger(const python::Target& target,
                                                              std::string_view code);

// The same with gdb. Returns false on failure.
[[nodiscard]] bool call_by_gdb(base::Pid pid, std::string_view code);

// sys.remote_exec() of an interpreter of the target's version (3.14+).
class RemoteExec {
 public:
  explicit RemoteExec(const test::Interpreter& python);
  ~RemoteExec();
  RemoteExec(const RemoteExec&) = delete;
  RemoteExec& operator=(const RemoteExec&) = delete;
  // Returns when the target has run CODE. False: it has not.
  [[nodiscard]] bool run(base::Pid pid, std::string_view code);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// `python3.15 -m profiling.sampling attach --blocking`, at 1 kHz.
class BlockingSampler {
 public:
  BlockingSampler(const test::Interpreter& python, base::Pid pid);
  ~BlockingSampler();
  BlockingSampler(const BlockingSampler&) = delete;
  BlockingSampler& operator=(const BlockingSampler&) = delete;
  [[nodiscard]] bool running();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pyinject::bench
