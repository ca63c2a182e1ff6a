// A process that removes a session's uprobe events if the session is killed.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <string>

namespace pyinject::perf {

// It waits until it is dismissed or this tool has exited. Then it removes all events of the group,
// as soon as no perf uses them, for a minute at most.
class EventCleaner {
 public:
  // Forks. LIST: the path of uprobe_events. Throws base::SystemError.
  EventCleaner(const std::string& list, const std::string& group);
  // If it is not dismissed, it begins now.
  ~EventCleaner() = default;
  EventCleaner(const EventCleaner&) = delete;
  EventCleaner& operator=(const EventCleaner&) = delete;

  // There are no events: ends the process and waits for its exit.
  void dismiss();

 private:
  base::Pid process_;
  base::UniqueFd socket_;
};

}  // namespace pyinject::perf
