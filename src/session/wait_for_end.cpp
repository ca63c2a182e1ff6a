#include "session/wait_for_end.hpp"

#include "pyinject/base/error.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>

#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace pyinject::session {

namespace {

constexpr long kTickNanoseconds = 500'000'000;
// perf notices the exit of its last process a little before the process becomes waitable.
constexpr std::chrono::milliseconds kExitGrace{500};

base::UniqueFd make_timer() {
  base::UniqueFd timer{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
  const itimerspec period{.it_interval = {.tv_sec = 0, .tv_nsec = kTickNanoseconds},
                          .it_value = {.tv_sec = 0, .tv_nsec = kTickNanoseconds}};
  if (!timer.valid() || ::timerfd_settime(timer.get(), 0, &period, nullptr) != 0) {
    throw base::SystemError{"cannot make a timer", errno};
  }
  return timer;
}

}  // namespace

EndOfRecording wait_for_end(WaitSources& sources) {
  const base::UniqueFd timer = make_timer();
  while (true) {
    // First what ends the recording by the user's will, then what ends it otherwise.
    if (const auto signal = sources.signals.next()) {
      return {.end = End::kSignal, .signal = *signal};
    }
    if (sources.command != nullptr && sources.command->try_wait()) {
      return {.end = End::kCommand};
    }
    if (sources.targets_matter && sources.targets.all_exited()) {
      return {.end = End::kTargets};
    }
    if (const auto status = sources.perf.try_wait()) {
      const bool exited = status->success() && sources.targets_matter &&
                          sources.targets.all_exited_within(kExitGrace);
      return {.end = exited ? End::kTargets : End::kPerf};
    }
    auto targets = sources.targets.poll_entries();
    std::vector<pollfd> all = targets;
    for (const int fd : {sources.signals.fd(), sources.perf.pidfd(), sources.perf.stderr_fd(),
                         timer.get(), sources.command == nullptr ? -1 : sources.command->pidfd()}) {
      all.push_back({.fd = fd, .events = POLLIN, .revents = 0});
    }
    if (::poll(all.data(), all.size(), -1) < 0 && errno != EINTR) {
      throw base::SystemError{"cannot wait for the end of the recording", errno};
    }
    sources.perf.read_stderr();
    std::copy_n(all.begin(), targets.size(), targets.begin());
    sources.targets.update(targets);
    std::uint64_t expirations = 0;
    if (::read(timer.get(), &expirations, sizeof expirations) > 0 && sources.on_tick) {
      sources.on_tick();
    }
  }
}

}  // namespace pyinject::session
