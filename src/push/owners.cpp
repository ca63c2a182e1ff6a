#include "push/owners.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

namespace pyinject::push {

namespace {

std::optional<std::uint64_t> since_boot(const report::Clock& clock) {
  if (clock.id == CLOCK_BOOTTIME) {
    return 0;
  }
  const auto now = clock.id ? base::read_clock(*clock.id) : std::nullopt;
  return now ? std::optional{base::now_by(CLOCK_BOOTTIME) -
                             static_cast<std::uint64_t>(now->count())}
             : std::nullopt;
}

}  // namespace

Owners::Owners(const report::Profile& profile, LiveProcesses live)
    : profile_{profile}, live_{std::move(live)}, since_boot_{since_boot(profile.clock)} {}

std::optional<LiveProcess> Owners::live_at(std::uint32_t pid, std::uint64_t time) {
  const auto [entry, fresh] = known_.try_emplace(pid);
  if (fresh) {
    entry->second = live_(pid);
  }
  const auto& process = entry->second;
  const bool later = process && since_boot_ && process->started > time + *since_boot_;
  return later ? std::nullopt : process;
}

std::optional<std::uint64_t> Owners::start_of(std::uint32_t pid, std::uint64_t time) {
  const auto process = live_at(pid, time);
  return process ? std::optional{process->started} : std::nullopt;
}

// The last one before TIME: pids are reused.
const report::Fork* Owners::fork_of(std::uint32_t pid, std::uint64_t time) const {
  const auto after = std::ranges::upper_bound(profile_.forks, std::pair{pid, time}, {},
                                              [](const report::Fork& fork) {
                                                return std::pair{fork.pid, fork.time};
                                              });
  const bool found = after != profile_.forks.begin() && std::prev(after)->pid == pid;
  return found ? &*std::prev(after) : nullptr;
}

std::optional<std::uint32_t> Owners::user_of(std::uint32_t pid, std::uint64_t time) {
  constexpr int kMostGenerations = 64;
  for (int i = 0; i < kMostGenerations; ++i) {
    if (const auto process = live_at(pid, time)) {
      return process->user;
    }
    const auto* const fork = fork_of(pid, time);
    if (fork == nullptr) {
      break;
    }
    pid = fork->parent;
    time = fork->time;
  }
  return std::nullopt;
}

}  // namespace pyinject::push
