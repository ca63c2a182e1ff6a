// The command line, understood and checked; nothing is done yet.
#pragma once

#include "pyinject/base/error.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/record/options.hpp"
#include "pyinject/record/repeated_recording.hpp"
#include "pyinject/record/wrapped_perf.hpp"
#include "pyinject/targets/manager.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::cli {

enum class Verb {
  kNone,
  kRecord,
  kJoin,
  kFunctions,
  kWeave,
  kActivate,
  kDeactivate,
  kStatus,
  kWrapped
};

enum class Verbosity { kQuiet, kNormal, kVerbose };

// What is told to programs.
struct ReportOptions {
  bool json = false;                      // --log-format
  std::optional<std::string> stats = {};  // --stats FILE
};

struct CommandLine {
  Verb verb = Verb::kNone;
  bool help = false;     // --help: of VERB
  bool version = false;  // --version
  Verbosity verbosity = Verbosity::kNormal;
  std::vector<base::Pid> pids;  // of every verb; join: perf's
  bool abandoned = false;       // deactivate
  bool strict = true;           // record, activate
  bool json = false;            // status, functions
  ReportOptions report;         // of every verb; STATS: record, join, activate, deactivate
  std::chrono::nanoseconds deactivation_deadline = session::ManagerOptions{}.deactivation_deadline;
  session::RecordOptions record;                 // record; of join what both have
  std::optional<session::RepeatOptions> repeat;  // record
  session::WrapOptions wrapped;                  // trace, top, sched, kmem
  bool functions = false;                        // record --functions
  bool timeline = false;                         // functions
  std::string input;                             // weave, functions
  std::string output;                            // weave: INPUT itself unless another is named
};

// What is wrong with the command line, and the exit status that says so.
class CommandLineError : public base::Error {
 public:
  CommandLineError(const std::string& text, int status) : Error{text}, status_{status} {}
  [[nodiscard]] int status() const { return status_; }

 private:
  int status_;
};

// ARGUMENTS without the program's name; PERF: the environment variable. Throws CommandLineError.
[[nodiscard]] CommandLine parse_command_line(const std::vector<std::string>& arguments,
                                             const std::optional<std::string>& perf);

// "1,22": throws CommandLineError (status 125) naming the offending piece.
[[nodiscard]] std::vector<base::Pid> parse_pids(std::string_view list);

}  // namespace pyinject::cli
