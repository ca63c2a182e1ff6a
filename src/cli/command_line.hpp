// The parsed and validated command line; nothing is executed yet.
#pragma once

#include "cli/verb.hpp"
#include "push/pusher.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/perf/perf_locator.hpp"
#include "pyinject/record/plan.hpp"
#include "pyinject/record/repeated_recording.hpp"
#include "pyinject/record/weave_file.hpp"
#include "pyinject/targets/scope.hpp"
#include "record/verbs/join_recording.hpp"
#include "report/view_options.hpp"

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pyinject::exports {
struct Format;
}  // namespace pyinject::exports

namespace pyinject::cli {

enum class Verbosity { kQuiet, kNormal, kVerbose };

// Output for programs.
struct ReportOptions {
  bool json = false;                      // --log-format
  std::optional<std::string> stats = {};  // --stats FILE
};

// The options of each verb.
struct RecordCommand {
  record::RecordPlan record;
  std::optional<record::RepeatOptions> repeat;
  bool functions = false;
  std::vector<std::string> what;  // recipes
  std::optional<push::PushOptions> push;
  std::optional<std::string> push_credentials;  // a file
};

struct FunctionsCommand {
  std::string input;
  bool timeline = false;
  bool json = false;
};

struct ActivateCommand {
  std::vector<base::Pid> pids;
  bool strict = true;
  std::chrono::nanoseconds deactivation_deadline{};
};

struct DeactivateCommand {
  std::vector<base::Pid> pids;  // empty: ABANDONED
  bool abandoned = false;
  std::chrono::nanoseconds deactivation_deadline{};
};

struct TopCommand {
  std::vector<base::Pid> pids;  // empty: all in SCOPE
  targets::Scope scope;
  bool children = false;
  int frequency = 0;  // per second and processor
  bool once = false;
  bool json = false;
  std::chrono::seconds duration{};    // with ONCE
  std::optional<std::string> output;  // likewise: a profile, by its suffix
  bool sources = true;                // in a page
};

struct WhyCommand {
  std::vector<std::string> command{};  // to launch and examine, without a process
  std::vector<base::Pid> pids;         // empty: the busiest in SCOPE
  targets::Scope scope;
  bool children = false;
  std::chrono::seconds duration{};
  int frequency = 0;  // per second and processor
  bool json = false;
  bool markdown = false;
  std::optional<std::string> output;  // a profile, by its suffix
  bool sources = true;                // in a page
};

struct StatusCommand {
  std::vector<base::Pid> pids;  // empty: all in SCOPE
  targets::Scope scope;
  bool json = false;
};

struct DoctorCommand {
  std::vector<base::Pid> pids;  // empty: only the machine
  bool json = false;
  perf::PerfSearch perf;
};

struct DumpCommand {
  std::vector<base::Pid> pids;  // empty: SCOPE
  targets::Scope scope;
  bool json = false;
  bool stop = false;
  bool native = false;
  bool locals = false;
  bool sources = true;
  std::set<base::Tid> tids;                        // --tid: only these threads; empty: all
  std::optional<std::chrono::nanoseconds> period;  // --watch
  std::optional<std::string> core;                 // --core: its file, and no processes
};

// A file to read, or a recording to make and read.
struct ProfileSource {
  std::string file;  // without RECORD
  std::optional<record::RecordPlan> record;
  std::vector<std::string> what{};  // recipes, for RECORD
};

struct FlamegraphCommand {
  ProfileSource source;
  std::string output{};                 // "-": stdout
  std::optional<std::string> before{};  // a recording to compare with
  std::optional<std::string> title{};
  bool sources = true;
  bool open = false;
  bool wall = false;
};

struct ReportCommand {
  std::vector<std::string> files;       // or patterns
  std::optional<std::string> before{};  // a file or pattern to compare with
  report::ViewOptions tables{};
  std::size_t most = 0;  // rows; 0: all
  double least = 1;      // percent, of a tree's paths
  bool json = false;
  bool csv = false;
};

struct ExportCommand {
  ProfileSource source;
  const exports::Format* format = nullptr;
  std::string output;                  // "-": stdout
  std::optional<std::string> event{};  // only this one
};

struct ServeCommand {
  std::string listen;
  std::vector<base::Pid> pids;  // empty: all in SCOPE
  targets::Scope scope;
  std::optional<std::string> token_file;
  std::chrono::seconds most_seconds{};
  int most_requests = 0;  // profiles at a time
  int most_per_minute = 0;
  std::vector<std::string> passed;  // options for each recording
};

struct DemoCommand {
  std::string python;  // empty: one on PATH
  std::string output;  // the page
};

struct CommandLine {
  const VerbSpec* verb = nullptr;  // nullptr: --help, --version
  bool help = false;               // --help: of VERB
  bool version = false;            // --version
  Verbosity verbosity = Verbosity::kNormal;
  ReportOptions report;  // STATS: record, join, export, activate, deactivate
  std::variant<std::monostate, RecordCommand, record::JoinOptions, FunctionsCommand,
               record::WeaveFileOptions, ActivateCommand, DeactivateCommand, StatusCommand,
               DoctorCommand, TopCommand, DumpCommand, WhyCommand, FlamegraphCommand, ReportCommand,
               ExportCommand, ServeCommand, DemoCommand>
      options;  // of VERB
};

// An error in the command line, with its exit status.
class CommandLineError : public base::Error {
 public:
  CommandLineError(const std::string& text, int status) : Error{text}, status_{status} {}
  [[nodiscard]] int status() const { return status_; }

 private:
  int status_;
};

// ARGUMENTS without the program name; PERF: the environment variable. DEFAULT_ENGINE is called only
// for a recording without --engine. Throws CommandLineError.
[[nodiscard]] CommandLine parse_command_line(const std::vector<std::string>& arguments,
                                             const std::optional<std::string>& perf,
                                             const DefaultEngineSearch& default_engine = {});

// Whether WORD can only be meant for parse_pids(): digits and commas.
[[nodiscard]] bool is_pid_list(std::string_view word);
// "1,22": throws CommandLineError (status 129) naming the invalid piece.
[[nodiscard]] std::vector<base::Pid> parse_pids(std::string_view list,
                                                std::string_view option = "-p");

}  // namespace pyinject::cli
