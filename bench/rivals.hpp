// Other ways to make a running interpreter do something, measured next to ours.
#pragma once

#include "measure.hpp"
#include "pyinject/python/target.hpp"
#include "support/interpreters.hpp"

#include <memory>
#include <optional>
#include <string_view>

namespace pyinject::bench {

// What they have the interpreter run. To activate it is what ours runs, too, once.
inline constexpr std::string_view kActivation =
    "try:__import__('sys').activate_stack_trampoline('perf')\nexcept BaseException:pass";
inline constexpr std::string_view kDeactivation =
    "try:__import__('sys').deactivate_stack_trampoline()\nexcept BaseException:pass";

// What debuggers and most injectors do: stop the target, save the registers, call
// PyGILState_Ensure, PyRun_SimpleString and PyGILState_Release one after the other, put the
// registers back, let go. Written for this comparison; all threads are stopped as quickly as by
// ours. nullopt: the target did not come through it. The time that it was stopped.
[[nodiscard]] std::optional<nanoseconds> call_like_a_debugger(const python::Target& target,
                                                              std::string_view code);

// The same by gdb. False: it did not work.
[[nodiscard]] bool call_by_gdb(base::Pid pid, std::string_view code);

// sys.remote_exec() of an interpreter of the target's version (3.14+).
class RemoteExec {
 public:
  explicit RemoteExec(const test::Interpreter& python);
  ~RemoteExec();
  RemoteExec(const RemoteExec&) = delete;
  RemoteExec& operator=(const RemoteExec&) = delete;
  // Returns when the target has run it. False: it has not.
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
