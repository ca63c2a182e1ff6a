#include "procfs/blocked_task.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "procfs/read_process_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include <linux/futex.h>
#include <sys/syscall.h>

namespace pyinject::procfs {

namespace {

constexpr std::size_t kMostOfTask = std::size_t{16} << 10U;  // bytes

std::optional<std::uint64_t> hexadecimal(std::string_view text) {
  return text.starts_with("0x") ? base::parse_number<std::uint64_t>(text.substr(2), 16)
                                : std::nullopt;
}

std::string task_file(base::Pid pid, base::Tid tid, std::string_view name) {
  return fmt::format("/proc/{}/task/{}/{}", pid.value(), tid.value(), name);
}

std::optional<std::string> read_of_task(base::Pid pid, base::Tid tid, std::string_view name) {
  return read_process_file(task_file(pid, tid, name), kMostOfTask);
}

}  // namespace

// "[<0>] futex_do_wait+0x46/0x90", perhaps followed by a module name.
std::vector<KernelFrame> parse_kernel_stack(std::string_view text) {
  constexpr std::size_t kMostFrames = 64;
  std::vector<KernelFrame> frames;
  for (const auto line : base::split(text, '\n')) {
    const auto words = base::split(line, ' ');
    if (words.size() < 2 || !words[0].starts_with("[<") || frames.size() == kMostFrames) {
      continue;
    }
    const auto plus = words[1].find('+');
    const auto slash = words[1].find('/');
    if (plus == std::string_view::npos || slash == std::string_view::npos || slash < plus) {
      continue;
    }
    const auto offset = hexadecimal(words[1].substr(plus + 1, slash - plus - 1));
    const auto size = hexadecimal(words[1].substr(slash + 1));
    if (offset && size && plus > 0) {
      frames.push_back(
          {.name = std::string{words[1].substr(0, plus)}, .offset = *offset, .size = *size});
    }
  }
  return frames;
}

std::vector<KernelFrame> read_kernel_stack(base::Pid pid, base::Tid tid) {
  if (const auto text = read_of_task(pid, tid, "stack")) {
    if (auto frames = parse_kernel_stack(*text); !frames.empty()) {
      return frames;
    }
  }
  const auto channel = read_of_task(pid, tid, "wchan");
  const auto name = channel ? base::trim(*channel) : std::string_view{};
  if (name.empty() || name == "0") {
    return {};
  }
  return {{.name = std::string{name}}};
}

// The kernel does not unwind the stack of a task that is on another processor (unwind_orc.c:
// __unwind_start()), and a task that waits for a processor is inside the scheduler.
std::optional<bool> read_on_processor(base::Pid pid, base::Tid tid) {
  const auto text = read_of_task(pid, tid, "stack");
  return text ? std::optional{parse_kernel_stack(*text).empty()} : std::nullopt;
}

// The table is sorted by address, except for modules, which follow.
void find_kernel_addresses(std::string_view text, const std::vector<KernelFrame*>& frames) {
  constexpr std::size_t kTypeAndBlanks = 3;
  std::unordered_map<std::string_view, std::vector<KernelFrame*>> wanted;
  for (auto* const frame : frames) {
    if (frame->size != 0) {
      wanted[frame->name].push_back(frame);
    }
  }
  struct Found {
    std::uint64_t address = 0;
    const std::vector<KernelFrame*>* frames = nullptr;
  };
  std::vector<Found> open;  // functions with unknown ends
  const auto close = [&open](std::uint64_t end) {
    for (const auto& found : open) {
      for (auto* const frame : *found.frames) {
        if (frame->address == 0 || end - found.address == frame->size) {
          frame->address = found.address + frame->offset;
        }
      }
    }
    open.clear();
  };
  while (!wanted.empty() && !text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto blank = line.find(' ');
    const auto address = base::parse_number<std::uint64_t>(line.substr(0, blank), 16);
    if (blank == std::string_view::npos || line.size() < blank + kTypeAndBlanks ||
        address.value_or(0) == 0) {
      continue;
    }
    auto name = line.substr(blank + kTypeAndBlanks);
    name = name.substr(0, name.find('\t'));
    if (!open.empty() && open.front().address != *address) {
      close(*address);
    }
    if (const auto found = wanted.find(name); found != wanted.end()) {
      open.push_back({.address = *address, .frames = &found->second});
    }
  }
  close(0);
}

void find_kernel_addresses(const std::vector<KernelFrame*>& frames) {
  constexpr std::size_t kMostOfTable = std::size_t{64} << 20U;  // bytes; Linux 6.18 has 10 MB
  if (frames.empty()) {
    return;
  }
  if (const auto text = base::read_file("/proc/kallsyms", kMostOfTable)) {
    find_kernel_addresses(*text, frames);
  }
}

std::optional<std::string> read_system_call(base::Pid pid, base::Tid tid) {
  return base::read_file(task_file(pid, tid, "syscall"), kMostOfTask);
}

std::optional<long> parse_system_call(std::string_view text) {
  const auto number = base::parse_number<long>(text.substr(0, text.find(' ')));
  return number && *number >= 0 ? number : std::nullopt;
}

std::optional<BlockedCall> parse_blocked_call(std::string_view text) {
  const auto number = parse_system_call(text);
  const auto words = base::split(base::trim(text), ' ');
  BlockedCall call{.number = number.value_or(0)};
  if (!number || words.size() <= call.arguments.size()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const auto argument = hexadecimal(words[i + 1]);
    if (!argument) {
      return std::nullopt;
    }
    call.arguments.at(i) = *argument;
  }
  return call;
}

namespace {

bool is_futex_wait(const BlockedCall& call) {
  // The second argument without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME; futex(2).
  constexpr std::uint64_t kFlags = FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME;
  const auto operation = call.arguments[1] & ~kFlags;
  return operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET;
}

constexpr std::uint64_t kLeastAddress = 65536;  // mmap_min_addr of distributions

// What restart_syscall(2) continues, by its arguments alone: those of futex(2), clock_nanosleep(2),
// and poll(2) differ. nullopt: it could be several of them.
std::optional<long> continued_by_arguments(const BlockedCall& call) {
  const auto first = call.arguments[0];
  const auto second = call.arguments[1];
  const auto third = call.arguments[2];
  const auto fourth = call.arguments[3];
  const auto is_address = [](std::uint64_t value) { return value >= kLeastAddress; };
  const bool futex = is_address(first) && first % sizeof(std::uint32_t) == 0 &&
                     is_futex_wait(call) && is_address(fourth);
  const bool sleep = !is_address(first) && second == 0 && is_address(third);
  const bool poll =
      is_address(first) && second != 0 && !is_address(second) && !is_address(third) && third != 0;
  // poll(2) of exactly as many files as this flag stands for is unlikely.
  if (futex && (!poll || (second & FUTEX_PRIVATE_FLAG) != 0)) {
    return SYS_futex;
  }
  if (sleep) {
    return SYS_clock_nanosleep;
  }
  return poll && !futex ? std::optional{SYS_poll} : std::nullopt;
}

}  // namespace

BlockedCall continued_call(const BlockedCall& call, std::span<const std::string> kernel) {
  if (call.number != SYS_restart_syscall) {
    return call;
  }
  const auto blocked_in = [kernel](std::string_view part) {
    return std::ranges::any_of(
        kernel, [part](const auto& name) { return name.find(part) != std::string::npos; });
  };
  constexpr std::uint64_t kMostClocks = 4096;  // nanosleep(2) has an address there
  BlockedCall original = call;
  if (blocked_in("futex")) {
    original.number = SYS_futex;
  } else if (blocked_in("nanosleep")) {
    original.number = call.arguments[0] < kMostClocks ? SYS_clock_nanosleep : SYS_nanosleep;
  } else if (blocked_in("poll")) {
    original.number = SYS_poll;
  } else if (kernel.empty()) {
    original.number = continued_by_arguments(call).value_or(call.number);
  }
  return original;
}

std::optional<std::uint64_t> parse_futex_wait(std::string_view text) {
  const auto call = parse_blocked_call(text);
  const bool continued = call && call->number == SYS_restart_syscall;
  if (!call || (call->number != SYS_futex && !continued)) {
    return std::nullopt;
  }
  // A continued call has a time limit. If it is no futex, its first argument is not that of a lock.
  const bool waits = is_futex_wait(*call) && (!continued || call->arguments[3] != 0);
  return waits ? std::optional{call->arguments[0]} : std::nullopt;
}

// "202 0x55ed56771810 ... 0x7ffd95e7cbc0 0x7fde908a3f16": the system call, its arguments, stack
// pointer and program counter; outside of system calls -1, stack pointer and program counter.
std::optional<UserPlace> parse_user_place(std::string_view text) {
  const auto words = base::split(base::trim(text), ' ');
  if (words.size() < 3) {
    return std::nullopt;
  }
  const auto stack_pointer = hexadecimal(words[words.size() - 2]);
  const auto program_counter = hexadecimal(words.back());
  if (!stack_pointer || !program_counter) {
    return std::nullopt;
  }
  return UserPlace{.stack_pointer = *stack_pointer, .program_counter = *program_counter};
}

std::optional<UserPlace> read_user_place(base::Pid pid, base::Tid tid) {
  const auto text = read_of_task(pid, tid, "syscall");
  return text ? parse_user_place(*text) : std::nullopt;
}

}  // namespace pyinject::procfs
