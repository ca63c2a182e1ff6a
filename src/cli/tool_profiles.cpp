#include "cli/tool_profiles.hpp"

#include "base/file.hpp"
#include "base/scratch_directory.hpp"
#include "base/text.hpp"
#include "procfs/executable.hpp"
#include "pyinject/base/child.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/python/reason.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pyinject::cli {

namespace {

using Options = std::vector<std::string>;
using serve::Problem;

constexpr std::chrono::seconds kOverhead{120};  // around a recording: starting perf, unwinding
constexpr std::chrono::seconds kEnds{15};       // from SIGTERM to SIGKILL
constexpr std::size_t kMostProfile = std::size_t{256} << 20U;
constexpr std::size_t kMostText = std::size_t{1} << 20U;
constexpr unsigned kNotFound = 404;

Problem not_served(std::string text) {
  return {.status = 403, .reason = "not_served", .text = std::move(text)};
}

Problem no_process(std::string text) {
  return {.status = kNotFound, .reason = "no_such_process", .text = std::move(text)};
}

base::UniqueFd open_pidfd(base::Pid pid) {
  return base::UniqueFd{static_cast<int>(::syscall(SYS_pidfd_open, pid.value(), 0))};
}

// A directory for the files of one profile, removed with all that is in it.
class WorkDirectory {
 public:
  [[nodiscard]] const std::string& path() const { return directory_.path(); }
  [[nodiscard]] std::string operator/(std::string_view name) const {
    return fmt::format("{}/{}", path(), name);
  }
  [[nodiscard]] std::string read(std::string_view name, std::size_t most) const {
    return base::read_file(*this / name, most).value_or("");
  }

 private:
  base::ScratchDirectory directory_{"-serve-"};
};

Options options_of(serve::Event event) {
  switch (event) {
    case serve::Event::kCpu:
      return {};
    case serve::Event::kOffCpu:
      return {"--off-cpu", "--event", "context-switches"};
    case serve::Event::kAlloc:
      return {"--what", "alloc"};
  }
  return {};
}

// Waits for CHILD until DEADLINE or until WAKE is readable.
std::optional<base::ExitStatus> wait_unless_woken(base::Child& child, int wake,
                                                  base::Deadline deadline) {
  std::array<pollfd, 2> sources{{{.fd = child.pidfd(), .events = POLLIN, .revents = 0},
                                 {.fd = wake, .events = POLLIN, .revents = 0}}};
  while (!deadline.expired() && sources[0].revents == 0 && sources[1].revents == 0) {
    ::poll(sources.data(), sources.size(), deadline.remaining_ms());
  }
  return child.try_wait();
}

// Ends CHILD in good order if it can be. If it is killed, its guard switches the targets off.
void end_recording(base::Child& child) {
  child.send_signal(SIGTERM);
  if (!child.wait(base::Deadline::after(kEnds))) {
    child.send_signal(SIGKILL);
    (void)child.wait(base::Deadline::after(kEnds));
  }
}

std::uint64_t number_in(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

serve::MadeProfile made_profile(std::string bytes, const std::string& stats) {
  serve::MadeProfile made{.bytes = std::move(bytes)};
  const auto all = nlohmann::json::parse(stats, nullptr, false);
  if (const auto found = all.find("profile"); found != all.end() && found->is_object()) {
    made.samples = number_in(*found, "samples");
    made.lost = number_in(*found, "lost");
    made.processes = number_in(*found, "processes");
  }
  return made;
}

unsigned status_of(python::Reason reason) {
  using python::Reason;
  switch (reason) {
    case Reason::kNoSuchProcess:
    case Reason::kExited:
    case Reason::kZombie:
      return kNotFound;
    case Reason::kOtherSession:
    case Reason::kTraced:
      return 409;
    default:
      return 422;
  }
}

}  // namespace

Problem problem_in(const std::string& messages) {
  Problem problem{.reason = "recording_failed", .text = "the recording failed"};
  bool first = true;
  for (const auto line : base::split(messages, '\n')) {
    const auto entry = nlohmann::json::parse(line, nullptr, false);
    if (!entry.is_object() || entry.value("level", nlohmann::json{}) != "error" ||
        !entry.contains("message") || !entry["message"].is_string()) {
      continue;
    }
    const auto message = base::printable(entry["message"].get<std::string>());
    if (first) {
      problem.text = message;
      first = false;
    }
    for (const auto reason : python::all_reasons()) {
      if (message.find(fmt::format("({})", python::name(reason))) != std::string::npos) {
        return {.status = status_of(reason),
                .reason = std::string{python::name(reason)},
                .text = message};
      }
    }
  }
  return problem;
}

bool ServedProcesses::Named::running() const {
  pollfd ended{.fd = pidfd.get(), .events = POLLIN, .revents = 0};
  return ::poll(&ended, 1, 0) == 0;
}

ServedProcesses::ServedProcesses(const std::vector<base::Pid>& pids, targets::Scope scope)
    : scope_{std::move(scope)} {
  for (const auto pid : pids) {
    auto pidfd = open_pidfd(pid);
    if (!pidfd.valid()) {
      throw base::SystemError{fmt::format("-p {}", pid.value()), errno};
    }
    named_.push_back({.pid = pid, .pidfd = std::move(pidfd)});
  }
}

std::variant<Options, Problem> ServedProcesses::select_pid(base::Pid pid) const {
  const auto text = std::to_string(pid.value());
  if (!open_pidfd(pid).valid()) {
    return no_process(fmt::format("pid {}: there is no such process", text));
  }
  if (named_.empty() ? scope_.narrow() && !targets::is_in(scope_, pid)
                     : std::ranges::none_of(named_, [&](const auto& one) {
                         return one.pid == pid && one.running();
                       })) {
    return not_served(fmt::format("pid {} is not among the processes that are served", text));
  }
  return Options{"-p", text};
}

std::variant<Options, Problem> ServedProcesses::select_named(const std::string& comm) const {
  std::vector<pid_t> pids;
  for (const auto& one : named_) {
    if (one.running() && (comm.empty() || targets::is_in({.command = comm}, one.pid))) {
      pids.push_back(one.pid.value());
    }
  }
  if (pids.empty()) {
    return no_process("none of the processes that are served exists");
  }
  return Options{"-p", fmt::format("{}", fmt::join(pids, ","))};
}

std::variant<Options, Problem> ServedProcesses::select(const serve::ProfileRequest& request) const {
  if (request.pid) {
    return select_pid(*request.pid);
  }
  if (!named_.empty()) {
    return select_named(request.comm);
  }
  auto comm = request.comm.empty() ? scope_.command : request.comm;
  if (!request.comm.empty() && !scope_.command.empty() &&
      (request.comm.find_first_of("*?[\\") != std::string::npos ||
       ::fnmatch(scope_.command.c_str(), request.comm.c_str(), 0) != 0)) {
    return not_served(fmt::format("comm: expected a name that matches {}, without wildcards",
                                  base::printable(scope_.command)));
  }
  Options options;
  if (scope_.user) {
    options.insert(options.end(), {"-u", std::to_string(*scope_.user)});
  }
  if (!comm.empty()) {
    options.insert(options.end(), {"--comm", std::move(comm)});
  }
  if (scope_.cgroup) {
    options.insert(options.end(), {"-G", *scope_.cgroup});
  }
  return options.empty() ? Options{"-a"} : options;
}

serve::ProfileResult ToolProfiles::run(const serve::ProfileRequest& request,
                                       const Options& processes,
                                       const std::stop_token& stop) const {
  const WorkDirectory work;
  Options command{procfs::own_executable(),
                  "export",
                  "-f",
                  "pprof",
                  "-o",
                  work / "profile.pb.gz",
                  "-d",
                  std::to_string(request.length.count()),
                  "--stats",
                  work / "stats.json",
                  "--log-format",
                  "json"};
  for (const auto& more : {processes, options_of(request.event), passed_}) {
    command.insert(command.end(), more.begin(), more.end());
  }
  const base::UniqueFd nothing{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  const auto messages = work / "messages";
  const base::UniqueFd log{
      ::open(messages.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_APPEND, 0600)};
  const base::UniqueFd wake{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (!nothing.valid() || !log.valid() || !wake.valid()) {
    throw base::SystemError{"cannot start a recording", errno};
  }
  base::Child child{{.argv = command,
                     .own_group = true,  // Ctrl-C is for the server, which ends recordings itself
                     .death_signal = SIGTERM,
                     .stdin_fd = nothing.get(),
                     .stdout_fd = nothing.get(),
                     .stderr_fd = log.get(),
                     .environment = {{"TMPDIR", work.path()}}}};
  const std::stop_callback on_stop{stop, [&wake] {
                                     const std::uint64_t one = 1;
                                     [[maybe_unused]] const auto written =
                                         ::write(wake.get(), &one, sizeof one);
                                   }};
  const auto status =
      wait_unless_woken(child, wake.get(), base::Deadline::after(request.length + kOverhead));
  if (!status) {
    end_recording(child);
    return stop.stop_requested()
               ? Problem{.status = 503, .reason = "stopped", .text = "the server is stopping"}
               : Problem{.status = 504,
                         .reason = "timeout",
                         .text = fmt::format("no profile {} s after its end", kOverhead.count())};
  }
  if (!status->success()) {
    return problem_in(work.read("messages", kMostText));
  }
  auto bytes = work.read("profile.pb.gz", kMostProfile);
  if (bytes.empty() || bytes.size() >= kMostProfile) {
    return Problem{.reason = "recording_failed", .text = "the profile cannot be read"};
  }
  return made_profile(std::move(bytes), work.read("stats.json", kMostText));
}

serve::ProfileResult ToolProfiles::make(const serve::ProfileRequest& request,
                                        const std::stop_token& stop) {
  try {
    const auto selected = processes_.select(request);
    if (const auto* const problem = std::get_if<Problem>(&selected)) {
      return *problem;
    }
    return run(request, std::get<Options>(selected), stop);
  } catch (const std::exception& error) {
    return Problem{.reason = "recording_failed", .text = base::printable(error.what())};
  }
}

}  // namespace pyinject::cli
