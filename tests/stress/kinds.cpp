#include "stress/kinds.hpp"

#include <ostream>

namespace pyinject::test {

namespace {

using python::Reason;

Kind of(std::string_view name) {
  Kind kind;
  kind.name = name;
  return kind;
}

Kind of_module(std::string_view name, std::string_view module) {
  auto kind = of(name);
  kind.module = module;
  return kind;
}

Kind of_care(std::string_view name, Care care, std::vector<Reason> may = {}) {
  auto kind = of(name);
  kind.care = care;
  kind.may = std::move(may);
  return kind;
}

Kind refused(std::string_view name, Care care, Reason must, int must_below = 99) {
  auto kind = of_care(name, care);
  kind.must = must;
  kind.must_below = must_below;
  return kind;
}

std::vector<Kind> make_kinds() {
  std::vector<Kind> all{
      of("busy"),
      of("threads"),
      of("waiting_main"),
      of("main_returned"),
      of("signals"),
      of("numbered_signals"),
      of("gc_loop"),
      of("registers"),
      of("generators"),
      of("imports"),
      of("fork_loop"),
      of("subprocess_loop"),
      of("spawn"),
      of("asyncio_server"),
      of("blocking"),
      of("locks"),
      of("thread_storm"),
      of("recursion"),
      of("recursion_limit"),
      of("subinterpreters"),
      of_module("numpy_loop", "numpy"),
      of_module("greenlets", "greenlet"),
      of_module("gevent_server", "gevent"),
      // The queue may be full or locked at each attempt.
      of_care("pending_calls", Care::kOrdinary, {Reason::kDeadline, Reason::kStopDeadline}),
      of("gil_holder"),
      refused("small_stacks", Care::kOrdinary, Reason::kSmallStack, 14),
      refused("main_gone", Care::kMainGone, Reason::kMainThreadGone),
      of_care("daemon_exit", Care::kDaemonThreads),
      of_care("stopped", Care::kStops, {Reason::kDeadline, Reason::kStopDeadline}),
      of_care("execs", Care::kExecutes,
              {Reason::kExited, Reason::kNotPython, Reason::kNotInitialized, Reason::kFinalizing,
               Reason::kDeadline, Reason::kStopDeadline, Reason::kNoSuchProcess}),
      of_care("short_lives", Care::kEndsItself,
              // Py_FinalizeEx() leaves an interpreter that is no longer initialized.
              {Reason::kExited, Reason::kNoSuchProcess, Reason::kZombie, Reason::kFinalizing,
               Reason::kNotInitialized, Reason::kDeadline, Reason::kStopDeadline}),
  };
  for (auto& kind : all) {
    kind.slow = kind.name == "gil_holder";
  }
  return all;
}

}  // namespace

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = make_kinds();
  return all;
}

// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Kind& kind, std::ostream* stream) { *stream << kind.name; }

}  // namespace pyinject::test
