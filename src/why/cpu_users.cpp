#include "why/cpu_users.hpp"

#include "procfs/tasks.hpp"
#include "pyinject/base/pid.hpp"

#include <algorithm>

namespace pyinject::why {

void CpuUsers::add(const RingRecord& record) {
  using Kind = RingRecord::Kind;
  // The switch after its exit has no ids.
  const bool out =
      record.kind == Kind::kOut || record.kind == Kind::kPreempted || record.kind == Kind::kExit;
  const bool in = record.kind == Kind::kIn;
  const bool idle = record.tid == 0;  // or in a pid namespace that is not below this one
  const auto pid = static_cast<int>(record.pid);
  if (idle || pid <= 0 || (!in && !out)) {
    return;
  }
  if (const auto [name, fresh] = names_.try_emplace(record.pid); fresh) {
    // Now: a compiler may not live until the end.
    name->second = procfs::read_comm(base::Pid{pid}, base::Tid{pid}).value_or("");
  }
  auto& user = users_.try_emplace(record.tid, User{.pid = record.pid, .since = in ? 0 : begin_})
                   .first->second;
  user.pid = record.pid;  // a tid may be used again
  if (out && user.since != 0 && record.time > user.since) {
    user.time += record.time - user.since;
  }
  user.since = in ? std::max(record.time, begin_) : 0;
}

std::map<std::string, std::uint64_t> CpuUsers::times(std::uint64_t end) const {
  std::map<std::string, std::uint64_t> times;
  for (const auto& [tid, user] : users_) {
    const auto rest = user.since == 0 || user.since > end ? 0 : end - user.since;
    times[names_.at(user.pid)] += user.time + rest;
  }
  return times;
}

}  // namespace pyinject::why
