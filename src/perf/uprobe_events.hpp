// Kernel breakpoints in user programs (uprobes) as events that perf can record: lines in tracefs's
// uprobe_events (linux, Documentation/trace/uprobetracer.rst). A line alone has no effect; when
// perf opens the event, the kernel puts breakpoints into the recorded processes, and removes them
// afterwards.
//
// The events of a session form a group named after the session. If the session is killed, a process
// of its own removes them (perf/event_cleaner.hpp). If that is killed, too, the lines stay; since
// the group's name identifies the session, a later session can remove them.
#pragma once

#include "perf/event_cleaner.hpp"
#include "pyinject/base/pid.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <sys/types.h>

namespace pyinject::perf {

// The owner of a group.
struct GroupOwner {
  base::ProcessId id;               // in its own pid namespace
  std::uint64_t pid_namespace = 0;  // inode number
  bool operator==(const GroupOwner&) const = default;
};

// "perf_pyinject_4711_123456_4026531836": the kernel only accepts letters, digits and '_'.
[[nodiscard]] std::string group_name(const GroupOwner& owner);
// nullopt: not a group of this tool.
[[nodiscard]] std::optional<GroupOwner> parse_group_name(std::string_view group);

// An event listed in uprobe_events.
struct ListedEvent {
  std::string group;
  std::string name;
  bool operator==(const ListedEvent&) const = default;
};
// TEXT: contents of the file. Other lines, such as those of kprobes, are skipped.
[[nodiscard]] std::vector<ListedEvent> parse_uprobe_events(std::string_view text);

// The owner for this process, and whether OWNER's process still runs.
[[nodiscard]] GroupOwner this_owner();
[[nodiscard]] bool is_alive(const GroupOwner& owner);

struct NoTracefs {
  std::string why;  // including the remedy
};

// Removes the events of GROUP in LIST, the path of uprobe_events. Returns how many are left,
// because a process uses them.
[[nodiscard]] std::size_t remove_group(const std::string& list, const std::string& group);

class UprobeEvents {
 public:
  // Looks for tracefs at its usual mount points; mounts nothing.
  [[nodiscard]] static std::variant<UprobeEvents, NoTracefs> open(const GroupOwner& owner);
  // The same for a given tracefs directory, for tests.
  [[nodiscard]] static std::variant<UprobeEvents, NoTracefs> open_at(const std::string& folder,
                                                                     const GroupOwner& owner);

  UprobeEvents(UprobeEvents&& other) noexcept;
  UprobeEvents& operator=(UprobeEvents&& other) = delete;
  // Calls remove() again.
  ~UprobeEvents();

  // FILE: an open descriptor. The event refers to that file, whatever its names; the kernel holds
  // the file until the event is removed. COUNTER_OFFSET: of a semaphore, 0: none. ARGUMENTS: what
  // to fetch. The first call starts the process that removes the events of a killed session. Throws
  // base::Error with the kernel's reason.
  void add(const std::string& name, int file, std::uint64_t offset, std::uint64_t counter_offset,
           const std::string& arguments);

  // "GROUP:NAME", as for perf record -e, in the order of add().
  [[nodiscard]] const std::vector<std::string>& events() const { return events_; }

  // Removes the events. Events that another process has open cannot be removed: returns those left,
  // which are removed once they are closed, within a minute. May be called again.
  [[nodiscard]] std::vector<std::string> remove();

  // Removes the events of sessions that have exited, except those in use. Returns the number
  // removed.
  std::size_t remove_abandoned(const std::function<bool(const GroupOwner&)>& alive);

 private:
  UprobeEvents(std::string list, std::string group);

  std::string list_;  // path of uprobe_events
  std::string group_;
  std::vector<std::string> events_;
  std::unique_ptr<EventCleaner> cleaner_;
};

}  // namespace pyinject::perf
