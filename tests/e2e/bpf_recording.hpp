// Recordings with the BPF engine, and their samples as perf script prints them.
#pragma once

#include "support/bpf_engine.hpp"
#include "support/child_process.hpp"
#include "support/interpreters.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pyinject::test {

// The arguments of `record` for the BPF engine, with the event cpu-clock.
[[nodiscard]] std::vector<std::string> bpf_record(const std::string& pid, const std::string& data,
                                                  const std::string& frequency = "999");

// A tracepoint, and whether it exists: it needs a mounted tracefs.
constexpr auto kTracepoint = "sched:sched_switch";
[[nodiscard]] bool has_tracepoints();

// The engine's figures in the FILE of `record --stats`. Throws base::Error if there are none.
[[nodiscard]] nlohmann::json bpf_figures(const std::string& file);

// The number of SAMPLES that, by the summary in MESSAGES, lack a stack because memory could not be
// read at that instant. A test failure if it exceeds one in a thousand by more than chance.
[[nodiscard]] std::size_t said_unreadable(const std::string& messages, std::size_t samples);

// The counters of processes in FILE: "Activated" and the like. Throws as well.
[[nodiscard]] nlohmann::json counters_in(const std::string& file);

// An interpreter, and whether its JIT is enabled.
struct Build {
  int minor = 0;
  bool jit = false;
};
// All builds that the engine has to support.
[[nodiscard]] const std::vector<Build>& all_builds();
// One build of each version: for what does not depend on the code that runs the functions.
[[nodiscard]] std::vector<Build> builds_without_jit();
[[nodiscard]] std::string name(const Build& build);
// GoogleTest prints a build with this function, whose name it prescribes.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Build& build, std::ostream* stream);
// nullopt: not installed, or without a JIT.
[[nodiscard]] std::optional<Interpreter> find_build(const Build& build);
// The environment that its processes need.
[[nodiscard]] ChildOptions environment_of(const Build& build);

struct BuildName {
  template <typename Info>
  std::string operator()(const Info& info) const {
    return name(info.param);
  }
};

struct ScriptFrame {
  std::string symbol;         // "[unknown]": none
  std::uint64_t offset = 0;   // from its start
  std::uint64_t address = 0;  // in the process, or of the kernel

  // Whether it is a Python function; function() is its qualified name, file() its file.
  [[nodiscard]] bool python() const { return symbol.starts_with("py::"); }
  [[nodiscard]] std::string function() const;
  [[nodiscard]] std::string file() const;
};

struct ScriptedSample {
  std::string pid;
  std::string tid;
  std::string event;
  std::uint64_t period = 0;
  bool user = false;
  std::vector<ScriptFrame> frames;  // innermost first

  // The qualified names of its Python functions, outermost first.
  [[nodiscard]] std::vector<std::string> chain() const;
  // nullptr: there is no Python function.
  [[nodiscard]] const ScriptFrame* innermost() const;
};

// The number of samples of PID in user space with exactly this chain, and of all its samples in
// user space.
[[nodiscard]] std::pair<std::size_t, std::size_t> count_chain(
    const std::string& data, const std::string& pid, const std::vector<std::string>& chain);

// Whether it has the frame MARK, such as "[GIL held]".
[[nodiscard]] bool has_mark(const ScriptedSample& sample, std::string_view mark);
// With --gil: whether its thread held the GIL.
[[nodiscard]] bool holds_gil(const ScriptedSample& sample);

// Throws base::Error if PERF cannot read DATA. OPTIONS are passed to perf script.
[[nodiscard]] std::vector<ScriptedSample> scripted_samples(
    const std::string& data, const std::vector<std::string>& options = {},
    const std::string& perf = "perf", const ChildOptions& child = {});

// The same, but functions of the kernel have no names: in a fifth of the time.
[[nodiscard]] std::vector<ScriptedSample> samples_without_kernel_names(
    const std::string& data, const std::string& perf = "perf");

}  // namespace pyinject::test
