#include "record/verbs/running_perf.hpp"

#include "base/text.hpp"
#include "perfdata/input.hpp"
#include "procfs/cmdline.hpp"
#include "procfs/descriptors.hpp"
#include "procfs/namespaces.hpp"
#include "procfs/own_rights.hpp"
#include "procfs/status.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/perf/perf_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pyinject::record {

namespace {

namespace filesystem = std::filesystem;
using bpf::Unavailable;

constexpr int kBetweenLooksAtPerf = 10;  // ms
constexpr std::chrono::milliseconds kExecutes{500};

Unavailable not_perf(const std::string& found) {
  return {.name = "not_perf",
          .found = found,
          .remedy = "give the pid of perf record itself, not of sudo or a shell"};
}

Unavailable has_exited() {
  return {.name = "not_perf",
          .found = "perf record has exited",
          .remedy = "give the pid of a running perf record"};
}

// Checks that need only the options.
std::optional<Unavailable> check_output(base::Pid pid, const std::vector<std::string>& options) {
  const auto standard_output = procfs::stat_descriptor(pid, STDOUT_FILENO);
  const bool pipe = standard_output && S_ISFIFO(standard_output->st_mode);
  const auto parsed = perf::parse_options(options, pipe);
  if (parsed.output.pipe) {
    return Unavailable{
        .name = "pipe", .found = "perf writes to a pipe", .remedy = "start perf with -o FILE"};
  }
  if (parsed.output.several) {
    return Unavailable{.name = "several_files",
                       .found = "perf writes a series of files (--switch-output)",
                       .remedy = "start perf without --switch-output"};
  }
  if (parsed.threads || parsed.kcore) {
    return Unavailable{.name = "folder",
                       .found = "perf writes a directory (--threads, --kcore)",
                       .remedy = "start perf without --threads and --kcore"};
  }
  return std::nullopt;
}

// The words after "record", also of "perf sched record"; nullopt: no such word. Waits a little: a
// child of a shell may be about to exec perf.
std::optional<std::vector<std::string>> words_of_record(base::Pid pid, int process) {
  const auto deadline = base::Deadline::after(kExecutes);
  pollfd ended{.fd = process, .events = POLLIN, .revents = 0};
  do {
    const auto words = procfs::read_cmdline(pid).value_or(std::vector<std::string>{});
    if (const auto record = std::ranges::find(words, "record"); record != words.end()) {
      return std::vector<std::string>{record + 1, words.end()};
    }
  } while (::poll(&ended, 1, kBetweenLooksAtPerf) == 0 && !deadline.expired());
  return std::nullopt;
}

// The open perf.data file of PID. ERROR: the errno if it cannot be determined.
base::UniqueFd open_file_of(base::Pid pid, int& error) {
  constexpr std::string_view kPerfData = "PERFILE2";
  const auto numbers = procfs::list_descriptors(pid);
  if (!numbers) {
    error = errno;
    return {};
  }
  for (const int number : *numbers) {
    const auto facts = procfs::stat_descriptor(pid, number);
    if (!facts || !S_ISREG(facts->st_mode)) {
      continue;
    }
    auto file = procfs::open_descriptor(pid, number, O_RDONLY | O_NONBLOCK);
    std::array<char, kPerfData.size()> begin{};
    if (file.valid() &&
        ::pread(file.get(), begin.data(), begin.size(), 0) == static_cast<ssize_t>(begin.size()) &&
        std::string_view{begin.data(), begin.size()} == kPerfData) {
      return file;
    }
  }
  return {};
}

// A process has all capabilities in a user namespace that it has made.
std::optional<uid_t> only_user_of(const procfs::Status& perf) {
  using procfs::Capability;
  const auto user = perf.uids[1];
  const bool privileged =
      user == 0 ||
      ((procfs::holds(perf.effective_capabilities, Capability::kPerfmon) ||
        procfs::holds(perf.effective_capabilities, Capability::kSysPtrace)) &&
       procfs::in_our_namespace(perf.process, procfs::Namespace::kUser).value_or(false));
  return privileged ? std::nullopt : std::optional{user};
}

}  // namespace

std::optional<std::string> RunningPerf::path() const {
  auto name = procfs::read_own_descriptor_link(file.get());
  struct stat named {};
  struct stat held {};
  if (!name || ::stat(name->c_str(), &named) != 0 || ::fstat(file.get(), &held) != 0 ||
      named.st_dev != held.st_dev || named.st_ino != held.st_ino) {
    return std::nullopt;
  }
  return name;
}

std::variant<RunningPerf, Unavailable> inspect_running_perf(base::Pid pid,
                                                            base::Deadline deadline) {
  RunningPerf running{
      .pid = pid,
      .process = base::UniqueFd{static_cast<int>(::syscall(SYS_pidfd_open, pid.value(), 0))},
      .targets = {},
      .file = {},
      .events = {}};
  if (!running.process.valid()) {
    return not_perf("there is no such process");
  }
  const auto status = procfs::read_status(pid);
  if (!status) {
    return has_exited();
  }
  running.user = only_user_of(*status);
  if (status->namespace_pids.size() > 1) {
    return Unavailable{.name = "other_namespace",
                       .found = "perf runs in another pid namespace",
                       .remedy = "run this command in that namespace"};
  }
  const auto options = words_of_record(pid, running.process.get());
  if (!options) {
    return not_perf("it is not a perf record");
  }
  if (auto objection = check_output(pid, *options)) {
    return *std::move(objection);
  }
  running.targets = perf::chosen_targets(*options);
  pollfd ended{.fd = running.process.get(), .events = POLLIN, .revents = 0};
  int error = 0;
  while (running.file = open_file_of(pid, error), error == 0 && !running.file.valid()) {
    if (::poll(&ended, 1, kBetweenLooksAtPerf) > 0) {
      return has_exited();
    }
    if (deadline.expired()) {
      return Unavailable{.name = "no_file",
                         .found = "it has no perf.data open",
                         .remedy = "give the pid of a running perf record"};
    }
  }
  if (error != 0) {
    return Unavailable{.name = "no_rights",
                       .found = "perf's descriptors cannot be listed: " + base::errno_text(error),
                       .remedy = procfs::how_to_get(procfs::Capability::kSysPtrace)};
  }
  const auto path = running.path();
  if (!path) {
    return Unavailable{.name = "no_file",
                       .found = "perf's file was deleted or is not visible here",
                       .remedy = "run this command where the path means the same file"};
  }
  if (::access(filesystem::path{*path}.parent_path().c_str(), W_OK) != 0) {
    return Unavailable{.name = "no_rights",
                       .found = fmt::format("{} cannot be replaced: {}", base::printable(*path),
                                            base::errno_text(errno)),
                       .remedy = "run this command as a user who may write there"};
  }
  auto events = perfdata::events_of_running(running.file, *path);
  if (const auto* const why = std::get_if<perfdata::UnsupportedFile>(&events)) {
    return Unavailable{.name = "not_treatable",
                       .found = fmt::format("{}: {}", base::printable(*path), why->why),
                       .remedy = ""};
  }
  running.events = std::get<std::vector<perfdata::Event>>(std::move(events));
  running.first_path = *path;
  return running;
}

std::optional<Unavailable> check_joinable(const std::vector<perfdata::Event>& events,
                                          bool by_clock) {
  auto left = events;
  const auto none_left = [&left](const auto& is) {
    std::erase_if(left, [&is](const auto& event) { return !is(event); });
    return left.empty();
  };
  if (none_left([](const auto& event) {
        return event.samples(PERF_SAMPLE_CALLCHAIN) && !event.is_dummy();
      })) {
    return Unavailable{
        .name = "no_callchains", .found = "perf records no stacks", .remedy = "start perf with -g"};
  }
  if (none_left([](const auto& event) {
        return event.samples(PERF_SAMPLE_TIME) && event.samples(PERF_SAMPLE_TID);
      })) {
    return Unavailable{.name = "no_times",
                       .found = "perf's samples have no times",
                       .remedy = "start perf with -T"};
  }
  if (none_left([by_clock](const auto& event) {
        const bool traced = event.attr.type == PERF_TYPE_TRACEPOINT;
        return (!by_clock && !traced) ||
               (event.attr.use_clockid != 0 && event.attr.clockid == CLOCK_MONOTONIC);
      })) {
    return Unavailable{.name = "other_clock",
                       .found = by_clock ? "before Linux 6.3, perf's clock must be mono"
                                         : "for tracepoints, perf's clock must be mono",
                       .remedy = "start perf with -k mono"};
  }
  return std::nullopt;
}

std::optional<clockid_t> clock_of(const std::vector<perfdata::Event>& events) {
  const auto chosen =
      std::ranges::find_if(events, [](const auto& event) { return event.attr.use_clockid != 0; });
  return chosen == events.end() ? std::nullopt
                                : std::optional{static_cast<clockid_t>(chosen->attr.clockid)};
}

}  // namespace pyinject::record
