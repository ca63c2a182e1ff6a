#include "base/file.hpp"
#include "base/scratch_directory.hpp"
#include "base/text.hpp"
#include "cli/command_line.hpp"
#include "cli/console.hpp"
#include "cli/demo_service.hpp"
#include "cli/reporter.hpp"
#include "cli/terminal.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"
#include "procfs/executable.hpp"
#include "pyinject/base/child.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/targets/stop_signals.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace pyinject::cli {

namespace {

using base::Child;
using record::kFailure;

constexpr std::string_view kPage = "perf-pyinject-demo.html";

constexpr auto kDemoOptions = std::to_array<Option>({
    {"-o, --output F", "the page (default: perf-pyinject-demo.html)", Completed::kFiles},
});

constexpr std::string_view kDemoHelp =
    R"(usage: perf-pyinject demo [PYTHON] [OPTION...]

Starts a small service, an order desk, in Python; lists what runs; tells where
the service's time goes; writes a flame graph of it; and ends the service. Each
command is printed before it runs, so that you can type it for a service of
your own. No other process is changed. Takes some ten seconds.

{options}

PYTHON: a CPython 3.12 or later (default: the first one on PATH)

exit status: 0; 125 no such Python, or a command failed; 129 usage; 128 + N
ended by signal N

example:
  sudo perf-pyinject demo ~/.local/bin/python3.14
)";

void parse_demo(const VerbArguments& arguments, CommandLine& line) {
  auto parsed = parse_words(demo_verb, arguments, Operands::kOne, line);
  if (line.help) {
    return;
  }
  auto& words = parsed.split.command;
  if (words.size() > 1) {
    throw CommandLineError{"demo: give one PYTHON", record::kUsage};
  }
  line.options = DemoCommand{.python = words.empty() ? std::string{} : std::move(words.front()),
                             .output = parsed.value("output").value_or(std::string{kPage})};
}

// Whether PROGRAM runs CPython 3.12 or later: a name on PATH may be a wrapper for a Python that is
// not installed.
bool is_recordable(const std::string& program) {
  constexpr std::chrono::seconds kAnswers{10};
  constexpr const char* kQuestion =
      "import sys; sys.exit(sys.implementation.name != 'cpython' or sys.version_info < (3, 12))";
  try {
    const auto run =
        base::run_captured({program, "-c", kQuestion}, base::Deadline::after(kAnswers));
    return run.status && run.status->success();
  } catch (const base::SystemError&) {  // there is no such program
    return false;
  }
}

// GIVEN, unless it is empty, or the first one on PATH.
std::string find_python(const std::string& given) {
  constexpr auto kNames = std::to_array<const char*>(
      {"python3", "python3.15", "python3.14", "python3.13", "python3.12", "python"});
  if (given.empty()) {
    for (const auto* const name : kNames) {
      if (is_recordable(name)) {
        return name;
      }
    }
    throw base::Error{
        "no CPython 3.12 or later is on PATH: name one (perf-pyinject demo /path/to/python3)"};
  }
  if (!is_recordable(given)) {
    throw base::Error{base::printable(given) + " runs no CPython 3.12 or later"};
  }
  return given;
}

// The service, until it goes out of scope.
class Service {
 public:
  Service(const std::string& python, const std::string& file) : Service{python, file, Ends{}} {}
  // Waits until it serves. Throws base::Error if it does not.
  void wait_until_ready() {
    constexpr std::chrono::seconds kStarts{30};
    const auto deadline = base::Deadline::after(kStarts);
    std::string output;
    std::array<char, 64> buffer{};
    pollfd readable{.fd = output_.get(), .events = POLLIN, .revents = 0};
    while (output.find('\n') == std::string::npos) {
      const ssize_t got = ::poll(&readable, 1, deadline.remaining_ms()) > 0
                              ? ::read(output_.get(), buffer.data(), buffer.size())
                              : 0;
      if (got <= 0) {
        throw base::Error{"the demo's service did not start"};
      }
      output.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }
  [[nodiscard]] std::string pid() const { return std::to_string(child_.pid().value()); }

 private:
  struct Ends {
    Ends() {
      std::array<int, 2> ends{};
      if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        throw base::SystemError{"cannot make a pipe", errno};
      }
      read.reset(ends[0]);
      write.reset(ends[1]);
    }
    base::UniqueFd read;
    base::UniqueFd write;
  };
  Service(const std::string& python, const std::string& file, Ends ends)
      : child_{{.argv = {python, file},
                .own_group = true,
                .death_signal = SIGKILL,
                .stdout_fd = ends.write.get()}},
        output_{std::move(ends.read)} {}

  Child child_;  // its destructor kills it
  base::UniqueFd output_;
};

// Prints and runs this tool with WORDS. Returns the status to exit with; 0: go on.
int show(const std::vector<std::string>& words, bool bold, targets::StopSignals& signals) {
  std::string line = "perf-pyinject";
  std::vector<std::string> argv{procfs::own_executable()};
  for (const auto& word : words) {
    line += " " + shell_word(word);
    argv.push_back(word);
  }
  base::write_all(STDOUT_FILENO,
                  fmt::format("\n{}$ {}{}\n", bold ? "\033[1m" : "", line, bold ? "\033[0m" : ""),
                  "standard output");
  Child child{{.argv = argv}};
  std::array<pollfd, 2> events{pollfd{.fd = child.pidfd(), .events = POLLIN, .revents = 0},
                               pollfd{.fd = signals.fd(), .events = POLLIN, .revents = 0}};
  int status = 0;
  while (!child.try_wait()) {
    ::poll(events.data(), events.size(), -1);
    if (const auto signal = signals.next_with_origin(); signal && status == 0) {
      status = 128 + signal->number;
      if (!signal->from_kernel) {  // else it has got it, too
        child.send_signal(signal->number);
      }
    }
  }
  const auto ended = child.try_wait();
  return status != 0 || ended->success() ? status : kFailure;
}

int run_demo(const CommandLine& line, Reporter& /*reporter*/, const Terminal& /*terminal*/) {
  const auto& command = std::get<DemoCommand>(line.options);
  const auto python = find_python(command.python);
  const bool bold = look_at_output().color;
  targets::StopSignals signals;
  const base::ScratchDirectory directory{"-demo-"};
  const auto file = directory.path() + "/shop.py";
  if (!(std::ofstream{file} << kDemoService << std::flush)) {
    throw base::SystemError{"cannot write " + file, errno};
  }
  Service service{python, file};
  service.wait_until_ready();
  const std::vector<std::vector<std::string>> commands{
      {},
      {"why", service.pid(), "-d", "3"},
      {"flamegraph", service.pid(), "-d", "3", "-o", command.output}};
  int status = 0;
  for (const auto& words : commands) {
    if (const int one = show(words, bold, signals); one != 0) {
      status = one;
      if (one > 128) {
        return one;
      }
    }
  }
  return status;
}

}  // namespace

const VerbSpec demo_verb{.name = "demo",
                         .summary = "start a small service, and show what this tool tells of it",
                         .options = kDemoOptions,
                         .parse = parse_demo,
                         .run = run_demo,
                         .help = kDemoHelp,
                         .operands = Completed::kFiles};

}  // namespace pyinject::cli
