#include "procfs/stat.hpp"

#include "base/text.hpp"
#include "procfs/read_process_file.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <thread>

#include <unistd.h>

namespace pyinject::procfs {

namespace {

std::optional<Stat> read_stat_file(const std::string& path) {
  const auto text = read_process_file(path);
  if (!text) {
    return std::nullopt;
  }
  auto stat = parse_stat(*text);
  if (!stat) {
    throw base::Error{fmt::format("cannot understand {}", path)};
  }
  return stat;
}

}  // namespace

// PID (NAME) STATE PPID ...: NAME may contain ") R 1"; the rest contains no parenthesis.
std::optional<Stat> parse_stat(std::string_view text) {
  const auto open = text.find(" (");
  const auto close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open + 2) {
    return std::nullopt;
  }
  // fields[N - 3] is field N of the manual page.
  const auto fields = base::split(base::trim(text.substr(close + 1)), ' ');
  constexpr std::size_t kStartTime = 22;
  constexpr std::size_t kRealTimePriority = 40;
  if (fields.size() < kRealTimePriority - 2 || fields[0].size() != 1) {
    return std::nullopt;
  }
  const auto number = [&](std::size_t field) {
    return base::parse_number<std::uint64_t>(fields[field - 3]);
  };
  const auto pid = base::parse_number<pid_t>(text.substr(0, open));
  const auto parent = base::parse_number<pid_t>(fields[1]);
  const auto flags = number(9);
  const auto user = number(14);
  const auto system = number(15);
  const auto waited_user = number(16);
  const auto waited_system = number(17);
  const auto threads = number(20);
  const auto start_time = number(kStartTime);
  const auto processor = base::parse_number<int>(fields[39 - 3]);
  const auto priority = number(kRealTimePriority);
  const auto address = [&](std::size_t field) {
    return base::RemoteAddress{fields.size() > field - 3 ? number(field).value_or(0) : 0};
  };
  if (!pid || !parent || !flags || !user || !system || !waited_user || !waited_system || !threads ||
      !start_time || !processor || !priority) {
    return std::nullopt;
  }
  return Stat{.pid = base::Pid{*pid},
              .name = std::string{text.substr(open + 2, close - open - 2)},
              .state = fields[0].front(),
              .parent = base::Pid{*parent},
              .flags = *flags,
              .cpu_ticks = *user + *system,
              .waited_ticks = *waited_user + *waited_system,
              .threads = *threads,
              .start_time = *start_time,
              .processor = *processor,
              .real_time = *priority != 0,
              .has_memory = number(23).value_or(0) != 0,
              .stack_begin = address(28),
              .arguments_begin = address(48),
              .environment_begin = address(50),
              .environment_end = address(51)};
}

std::optional<Stat> read_stat(base::Pid pid) {
  return read_stat_file(fmt::format("/proc/{}/stat", pid.value()));
}

std::optional<Stat> read_stat(base::Pid pid, base::Tid tid) {
  return read_stat_file(fmt::format("/proc/{}/task/{}/stat", pid.value(), tid.value()));
}

std::optional<base::ProcessId> read_process_id(base::Pid pid) {
  const auto stat = read_stat(pid);
  if (!stat) {
    return std::nullopt;
  }
  return base::ProcessId{.pid = pid, .start_time = stat->start_time};
}

bool has_ended(const base::ProcessId& id) {
  if (const auto stat = read_stat(id.pid)) {
    const bool dead = stat->state == 'Z' || stat->state == 'X';
    return stat->start_time != id.start_time || (dead && stat->threads <= 1);
  }
  // hidepid= hides running processes.
  return ::kill(id.pid.value(), 0) != 0 && errno == ESRCH;
}

bool is_of_another(const Stat& stat, base::RemoteAddress stack_begin) {
  return stat.has_memory && stat.stack_begin != stack_begin;
}

bool runs_another(const base::ProcessId& id, base::RemoteAddress stack_begin) {
  try {
    const auto stat = stack_begin.is_null() ? std::nullopt : read_stat(id.pid);
    return stat && stat->start_time == id.start_time && is_of_another(*stat, stack_begin);
  } catch (const base::Error&) {
    return false;
  }
}

std::uint64_t ticks_since_boot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const auto hertz = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  return static_cast<std::uint64_t>(now.tv_sec) * hertz +
         static_cast<std::uint64_t>(now.tv_nsec) * hertz / 1'000'000'000U;
}

bool ends_now(const base::ProcessId& id) {
  constexpr std::uint64_t kExiting = 4;  // PF_EXITING: set before the memory is released
  const auto deadline = base::Deadline::after(std::chrono::milliseconds{100});
  try {
    while (!has_ended(id)) {
      const auto stat = read_stat(id.pid);
      if (!stat || (stat->flags & kExiting) == 0 || stat->state == 'Z' || deadline.expired()) {
        return false;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    return true;
  } catch (const base::Error&) {
    return false;
  }
}

}  // namespace pyinject::procfs
