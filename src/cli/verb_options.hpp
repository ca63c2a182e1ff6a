// Options shared by most verbs.
#pragma once

#include "cli/argument_splitter.hpp"
#include "cli/command_line.hpp"
#include "cli/recipes.hpp"
#include "cli/verb.hpp"
#include "pyinject/perf/perf_locator.hpp"
#include "pyinject/targets/manager.hpp"
#include "pyinject/targets/scope.hpp"
#include "pyinject/weave/weave_flags.hpp"

#include <boost/program_options/variables_map.hpp>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::cli {

// The options of several verbs.
namespace rows {
inline constexpr Option kPid = repeated({"-p, --pid LIST", "these processes", Completed::kPids});
inline constexpr Option kChildren{"--children", "also all Python processes below them"};
inline constexpr Option kAllCpus{"-a, --all-cpus", "all processes"};
inline constexpr Option kUid{"-u, --uid USER", "only processes of USER (name or number)",
                             Completed::kUsers};
inline constexpr Option kComm{"--comm GLOB", "only processes with this name: --comm 'gunicorn*'"};
inline constexpr Option kCgroup{"-G, --cgroup CG", "only processes in this cgroup or below it"};
inline constexpr Option kEngine{"--engine E",
                                "auto (default), bpf or trampoline: see record --help",
                                Completed::kWord,
                                "how the Python stacks are read",
                                {},
                                engine_words};
inline constexpr Option kPerf{"--perf PATH", "the perf to run (else $PERF, else the one on PATH)",
                              Completed::kFiles};
inline constexpr Option kPerfOfPicture =
    kPerf.with("the perf to record with (else $PERF; root needs none)");
inline constexpr Option kPerfOfCache = kPerf.with("the perf whose build-id cache is used");
inline constexpr Option kFreq{"-F, --freq HZ", "samples per second and CPU (default: 199)"};
inline constexpr Option kDuration{"-d, --duration SEC", "how long to record (default: 10)"};
inline constexpr Option kWhat{"--what LIST",
                              "what else to record, as in record --help",
                              Completed::kList,
                              "the events for these purposes",
                              {},
                              recipe_names};
inline constexpr Option kNoSource{"--no-source",
                                  "leave the source of the Python functions out of the page"};
inline constexpr Option kOffCpu =
    setting(&weave::WeaveFlags::off_cpu,
            {"--off-cpu", "also record where threads wait: drawn next to the CPU graph"});
inline constexpr Option kGil =
    setting(&weave::WeaveFlags::gil, {"--gil", "mark who holds the GIL"});
inline constexpr Option kTasks =
    setting(&weave::WeaveFlags::tasks, {"--tasks", "mark which asyncio task runs (3.14+)"});
inline constexpr Option kPythonOnly =
    setting(&weave::WeaveFlags::python_only,
            {"--python-only", "keep only Python functions: perf's Self column shows them"});
inline constexpr Option kLines = setting(
    &weave::WeaveFlags::lines,
    {"--lines",
     "add line numbers to the function names; as a column: perf report --children -g none -s "
     "sym,srcline"});
inline constexpr Option kKeepRaw =
    setting(&weave::WeaveFlags::keep_raw, {"--keep-raw", "also keep perf's own file, as NAME.raw"});
inline constexpr Option kInput{"-i, --input F", "the same as FILE", Completed::kRecordings,
                               "the recording"};
inline constexpr Option kWritten{
    "-o, --output F",
    "also write all samples and waits: F.html is a flame graph, F.pb.gz "
    "for pprof, F.jsonl, ...: as export",
    Completed::kFiles, "a file for all samples and waits"};
inline constexpr Option kDeactivateTimeout{"--deactivate-timeout SEC",
                                           "limit for all targets together (default: 5)"};
inline constexpr Option kStats{"--stats FILE", "counters to FILE", Completed::kFiles};
inline constexpr Option kLogFormat{"--log-format json", "messages as JSON", Completed::kWord,
                                   "how messages are printed", "text json"};
inline constexpr Option kQuiet{"-q, --quiet", "only warnings and errors"};
inline constexpr Option kVerbose{"-v, --verbose", "more messages"};
}  // namespace rows

// Options that need no verb.
[[nodiscard]] std::span<const Option> global_options();

// VERB's own options, then those of all verbs that it does not describe itself.
[[nodiscard]] std::vector<Option> options_of(const VerbSpec& verb);

// What a command line may contain besides the options of a verb.
// kTargets: pids and a name, where the verb takes them.
enum class Operands { kTargets, kTargetsOrCommand, kOne, kPerfOptionsAndCommand };

struct ParsedWords {
  boost::program_options::variables_map values;
  SplitArguments split;
  // Values of these options, for verbs that have them.
  std::vector<base::Pid> pids;  // those of operands, too
  std::string name = {};        // an operand: Scope::name
  bool strict = true;           // false: --lenient
  std::chrono::nanoseconds deactivation_deadline = targets::ManagerOptions{}.deactivation_deadline;
  perf::PerfSearch perf;
  DefaultEngineSearch default_engine;
  weave::WeaveFlags flags = {};

  [[nodiscard]] bool has(const char* option) const { return values.count(option) != 0; }
  [[nodiscard]] std::optional<std::string> value(const char* option) const;
};

// ARGUMENTS: those of VERB. Sets the members of LINE that all verbs share, including `help`. Throws
// CommandLineError.
[[nodiscard]] ParsedWords parse_words(const VerbSpec& verb, const VerbArguments& arguments,
                                      Operands operands, CommandLine& line);

// Who records for PARSED: perf or, where none is installed, this tool itself, unless --recorder
// says which. Throws CommandLineError.
[[nodiscard]] perf::PerfSearch search_recorder(const ParsedWords& parsed);

// For VERB, which takes either a process or COMMAND. Throws CommandLineError.
[[noreturn]] void refuse_command(std::span<const std::string> command, const VerbSpec& verb);

// "; did you mean lines?" for WORD, which is not one of KNOWN; empty: no idea.
[[nodiscard]] std::string meant_text(std::string_view word,
                                     std::span<const std::string_view> known);

// TEXT, the value of OPTION, as a whole number from 1 to MOST. Throws CommandLineError.
[[nodiscard]] int parse_whole(const std::string& text, std::string_view option, int most);

// For a verb that needs targets. Throws CommandLineError if PARSED has none.
void require_pids(const VerbSpec& verb, const ParsedWords& parsed);

// The values of -u, --comm and -G and the name, for verbs that have them. Throws CommandLineError,
// also if there are pids besides them or -a.
[[nodiscard]] targets::Scope parse_scope(const ParsedWords& parsed);
// Which processes of SCOPE there are not: "is called 'shop'", "is selected", "is visible".
[[nodiscard]] std::string missing_text(const targets::Scope& scope);
// -p, --children, -a and those of parse_scope(); OTHERS_SELECT_ALL: so does another option. Without
// any of them, Launched.
[[nodiscard]] record::Targets parse_targets(const ParsedWords& parsed,
                                            bool others_select_all = false);

// WORDS must be normalized by the splitter and contain only options in OWN. Throws
// CommandLineError.
[[nodiscard]] boost::program_options::variables_map store_own(
    std::span<const Option> own, const std::vector<std::string>& words);

}  // namespace pyinject::cli
