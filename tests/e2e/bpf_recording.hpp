// Recordings by the engine that reads stacks by BPF, and what perf script says of each sample.
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

// The arguments of `record` for it, by the processor's clock.
[[nodiscard]] std::vector<std::string> bpf_record(const std::string& pid, const std::string& data,
                                                  const std::string& frequency = "999");

// An event that takes no program, and whether it is here: where tracefs is mounted.
constexpr auto kTracepoint = "sched:sched_switch";
[[nodiscard]] bool has_tracepoints();

// What `record --stats FILE` says of the engine. Throws base::Error when that is nothing.
[[nodiscard]] nlohmann::json bpf_figures(const std::string& file);

// Of how many of SAMPLES the summary in MESSAGES says that memory could not be read at that
// instant; a failure of the test when they are more than one in a thousand.
[[nodiscard]] std::size_t said_unreadable(const std::string& messages, std::size_t samples);

// What it counts of processes: "Activated" and the like. Throws as well.
[[nodiscard]] nlohmann::json counters_in(const std::string& file);

// An interpreter and whether its JIT is on.
struct Build {
  int minor = 0;
  bool jit = false;
};
// Every one that the engine has to cover.
[[nodiscard]] const std::vector<Build>& all_builds();
[[nodiscard]] std::string name(const Build& build);
// What GoogleTest prints of it, under the name that it looks for.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Build& build, std::ostream* stream);
// nullopt: not here, or it has no JIT.
[[nodiscard]] std::optional<Interpreter> find_build(const Build& build);
// What its processes need in their environment.
[[nodiscard]] ChildOptions environment_of(const Build& build);

struct BuildName {
  template <typename Info>
  std::string operator()(const Info& info) const {
    return name(info.param);
  }
};

struct ScriptFrame {
  std::string symbol;        // "[unknown]": none
  std::uint64_t offset = 0;  // from its beginning

  // A Python function: its qualified name and its file.
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

// Those of PID in user space with exactly this chain, and all of PID in user space.
[[nodiscard]] std::pair<std::size_t, std::size_t> count_chain(
    const std::string& data, const std::string& pid, const std::vector<std::string>& chain);

// Whether it has that frame, such as "[GIL held]".
[[nodiscard]] bool has_mark(const ScriptedSample& sample, std::string_view mark);
// With --gil: whether its thread had the GIL.
[[nodiscard]] bool holds_gil(const ScriptedSample& sample);

// Throws base::Error when PERF cannot read DATA. OPTIONS of perf script.
[[nodiscard]] std::vector<ScriptedSample> scripted_samples(
    const std::string& data, const std::vector<std::string>& options = {},
    const std::string& perf = "perf");

}  // namespace pyinject::test
