#include "perf/uprobe_events.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "perf/tracefs.hpp"
#include "procfs/descriptors.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace pyinject::perf {

namespace {

using base::Deadline;

constexpr std::size_t kMostListed = std::size_t{16} << 20U;
// perf has exited by then; other readers of the event close it soon.
constexpr std::chrono::seconds kPatience{2};
constexpr std::chrono::milliseconds kBetween{20};

std::string why_not_writable(const std::string& list, int error) {
  switch (error) {
    case ENOENT:
      return "the kernel has no uprobe events: use a kernel with CONFIG_UPROBE_EVENTS";
    case EACCES:
      return fmt::format("no permission to write to {}: run as root", list);
    case EPERM:
      return fmt::format(
          "the kernel forbids writing {} (lockdown, or no CAP_SYS_ADMIN): run as root on the host, "
          "without kernel lockdown",
          list);
    default:
      return fmt::format("{}: {}", list, base::errno_text(error));
  }
}

// 0 or errno.
int write_line(const std::string& list, const std::string& line) {
  const base::UniqueFd fd{::open(list.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC)};
  if (!fd.valid()) {
    return errno;
  }
  const auto text = line + "\n";
  const auto written = ::write(fd.get(), text.data(), text.size());
  if (written < 0) {
    return errno;
  }
  return static_cast<std::size_t>(written) == text.size() ? 0 : EIO;
}

int remove_event(const std::string& list, const std::string& group, std::string_view name) {
  return write_line(list, fmt::format("-:{}/{}", group, name));
}

}  // namespace

std::size_t remove_group(const std::string& list, const std::string& group) {
  std::size_t left = 0;
  for (const auto& event : parse_uprobe_events(base::read_file(list, kMostListed).value_or(""))) {
    if (event.group == group) {
      const int error = remove_event(list, group, event.name);
      left += error == 0 || error == ENOENT ? 0 : 1;
    }
  }
  return left;
}

std::variant<UprobeEvents, NoTracefs> UprobeEvents::open(const GroupOwner& owner) {
  const auto tracefs = find_tracefs();
  return tracefs ? open_at(*tracefs, owner) : NoTracefs{std::string{kTracefsMissing}};
}

std::variant<UprobeEvents, NoTracefs> UprobeEvents::open_at(const std::string& folder,
                                                            const GroupOwner& owner) {
  auto list = folder + "/uprobe_events";
  // Never with O_TRUNC, which removes all events of all users; nor with O_CREAT.
  const base::UniqueFd fd{::open(list.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC)};
  if (!fd.valid()) {
    return NoTracefs{why_not_writable(list, errno)};
  }
  return UprobeEvents{std::move(list), group_name(owner)};
}

UprobeEvents::UprobeEvents(std::string list, std::string group)
    : list_{std::move(list)}, group_{std::move(group)} {}

UprobeEvents::UprobeEvents(UprobeEvents&& other) noexcept
    : list_{std::move(other.list_)},
      group_{std::move(other.group_)},
      events_{std::exchange(other.events_, {})},
      cleaner_{std::move(other.cleaner_)} {}

UprobeEvents::~UprobeEvents() { [[maybe_unused]] const auto left = remove(); }

void UprobeEvents::add(const std::string& name, int file, std::uint64_t offset,
                       std::uint64_t counter_offset, const std::string& arguments) {
  const auto counter =
      counter_offset == 0 ? std::string{} : fmt::format("(0x{:x})", counter_offset);
  // The kernel resolves the path while this process writes the line.
  const auto line = fmt::format("p:{}/{} {}:0x{:x}{} {}", group_, name,
                                procfs::own_descriptor_path(file), offset, counter, arguments);
  if (!cleaner_) {
    cleaner_ = std::make_unique<EventCleaner>(list_, group_);
  }
  events_.push_back(fmt::format("{}:{}", group_, name));  // group name identifies a killed owner
  if (const int error = write_line(list_, line); error != 0) {
    events_.pop_back();
    throw base::Error{fmt::format(
        "the kernel rejects the uprobe event '{}': {}; see the end of error_log next to {}", line,
        base::errno_text(error), list_)};
  }
}

std::vector<std::string> UprobeEvents::remove() {
  const auto deadline = Deadline::after(kPatience);
  while (true) {
    std::erase_if(events_, [this](const std::string& event) {
      const auto name = event.substr(event.find(':') + 1);
      const int error = remove_event(list_, group_, name);
      return error == 0 || error == ENOENT;
    });
    if (events_.empty() && cleaner_) {
      std::exchange(cleaner_, nullptr)->dismiss();
    }
    if (events_.empty() || deadline.expired()) {
      return events_;
    }
    std::this_thread::sleep_for(kBetween);
  }
}

std::size_t UprobeEvents::remove_abandoned(const std::function<bool(const GroupOwner&)>& alive) {
  std::size_t removed = 0;
  for (const auto& event : parse_uprobe_events(base::read_file(list_, kMostListed).value_or(""))) {
    const auto owner = parse_group_name(event.group);
    // EBUSY: a perf that has outlived its session still records; a later session removes the event.
    if (owner && event.group != group_ && !alive(*owner) &&
        remove_event(list_, event.group, event.name) == 0) {
      ++removed;
    }
  }
  return removed;
}

}  // namespace pyinject::perf
