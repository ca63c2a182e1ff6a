// Breakpoints of the kernel in user programs (uprobes), as events that perf can record: lines in
// tracefs's uprobe_events (linux, Documentation/trace/uprobetracer.rst). A line alone does nothing;
// perf that opens the event puts the breakpoints into the processes that it records, and takes them
// away.
//
// The events of one session are a group of their own, named after it. A session that is killed
// leaves its lines; which group is whose can be told by its name, so that a later session removes
// them.
#pragma once

#include "pyinject/base/pid.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <sys/types.h>

namespace pyinject::perf {

// Whose a group is.
struct GroupOwner {
  base::ProcessId id;               // as its own pid namespace numbers it
  std::uint64_t pid_namespace = 0;  // its inode
  bool operator==(const GroupOwner&) const = default;
};

// "perf_pyinject_4711_123456_4026531836": letters, digits and '_' are all that the kernel takes.
[[nodiscard]] std::string group_name(const GroupOwner& owner);
// nullopt: not one of ours.
[[nodiscard]] std::optional<GroupOwner> parse_group_name(std::string_view group);

// An event as uprobe_events lists it.
struct ListedEvent {
  std::string group;
  std::string name;
  bool operator==(const ListedEvent&) const = default;
};
// TEXT: the file. Other lines, such as those of kprobes, are left out.
[[nodiscard]] std::vector<ListedEvent> parse_uprobe_events(std::string_view text);

// Is there a living process that this describes?
[[nodiscard]] GroupOwner this_owner();
[[nodiscard]] bool is_alive(const GroupOwner& owner);

struct NoTracefs {
  std::string why;  // with the remedy
};

class UprobeEvents {
 public:
  // Looks for tracefs where it is mounted by custom; mounts nothing.
  [[nodiscard]] static std::variant<UprobeEvents, NoTracefs> open(const GroupOwner& owner);
  // The same with the folder of tracefs, for tests.
  [[nodiscard]] static std::variant<UprobeEvents, NoTracefs> open_at(const std::string& folder,
                                                                     const GroupOwner& owner);

  UprobeEvents(UprobeEvents&& other) noexcept;
  UprobeEvents& operator=(UprobeEvents&& other) = delete;
  // As remove(), once more.
  ~UprobeEvents();

  // FILE: an open descriptor. The event is of that very file, whatever the names are that lead to
  // it; the kernel keeps it until the event is removed. COUNTER_OFFSET: of a semaphore, 0: none.
  // ARGUMENTS: what to fetch. Throws base::Error with the kernel's reason.
  void add(const std::string& name, int file, std::uint64_t offset, std::uint64_t counter_offset,
           const std::string& arguments);

  // "GROUP:NAME", as perf record -e has it, in the order of add().
  [[nodiscard]] const std::vector<std::string>& events() const { return events_; }

  // Removes what was added. Those that somebody has open cannot be: what is left is said.
  // Can be called again.
  [[nodiscard]] std::vector<std::string> remove();

  // Removes the events of sessions that are no more; of those that are in use nothing. Returns how
  // many.
  std::size_t remove_abandoned(const std::function<bool(const GroupOwner&)>& alive);

 private:
  UprobeEvents(std::string list, std::string group);
  [[nodiscard]] int write_line(const std::string& line) const;  // errno, 0: done

  std::string list_;  // path of uprobe_events
  std::string group_;
  std::vector<std::string> events_;
};

}  // namespace pyinject::perf
