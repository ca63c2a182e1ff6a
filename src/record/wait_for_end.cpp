#include "record/wait_for_end.hpp"

#include "base/format.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/record/plan.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>

#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace pyinject::record {

namespace {

constexpr std::chrono::milliseconds kTick{500};
// First check of launched processes; the interval doubles each time, up to one tick.
constexpr std::chrono::milliseconds kFirstLook{16};
// perf notices the exit of its last process a little before the process becomes waitable.
constexpr std::chrono::milliseconds kExitGrace{500};

class Timer {
 public:
  explicit Timer(std::chrono::milliseconds first) : next_{first} { set(); }

  [[nodiscard]] int fd() const { return fd_.get(); }
  // True once per expiry.
  [[nodiscard]] bool expired() {
    std::uint64_t times = 0;
    if (::read(fd_.get(), &times, sizeof times) <= 0) {
      return false;
    }
    next_ = std::min(2 * next_, kTick);
    set();
    return true;
  }

 private:
  void set() {
    const itimerspec once{.it_interval = {},
                          .it_value = {.tv_sec = 0, .tv_nsec = next_.count() * 1'000'000}};
    if (!fd_.valid() || ::timerfd_settime(fd_.get(), 0, &once, nullptr) != 0) {
      throw base::SystemError{"cannot make a timer", errno};
    }
  }

  std::chrono::milliseconds next_;
  base::UniqueFd fd_{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
};

class Waiting {
 public:
  Waiting(WaitSources& sources, std::chrono::milliseconds first_tick)
      : sources_{sources}, timer_{first_tick} {}

  // Waits for an event from one of the sources.
  void once() {
    auto targets = sources_.targets.poll_entries();
    std::vector<pollfd> all = targets;
    for (const int fd :
         {sources_.requests.fd(), sources_.perf.try_wait() ? -1 : sources_.perf.pidfd(),
          sources_.perf.stderr_fd(), timer_.fd(),
          sources_.command == nullptr ? -1 : sources_.command->pidfd(),
          sources_.arrivals == nullptr ? -1 : sources_.arrivals->fd()}) {
      all.push_back({.fd = fd, .events = POLLIN, .revents = 0});
    }
    const int span = sources_.until ? sources_.until->remaining_ms() : -1;
    if (::poll(all.data(), all.size(), span) < 0 && errno != EINTR) {
      throw base::SystemError{"cannot wait for the end of the recording", errno};
    }
    sources_.perf.read_stderr();
    std::copy_n(all.begin(), targets.size(), targets.begin());
    sources_.targets.update(targets);
    if (sources_.arrivals != nullptr && all.back().revents != 0) {
      sources_.arrivals->handle();
    }
    if (timer_.expired() && sources_.on_tick) {
      sources_.on_tick();
    }
  }

 private:
  WaitSources& sources_;
  Timer timer_;
};

}  // namespace

EndOfRecording wait_for_end(WaitSources& sources) {
  Waiting waiting{sources, kTick};
  while (true) {
    // Ends requested by the user take precedence.
    if (const auto signal = sources.requests.next()) {
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
    if (sources.until && sources.until->expired()) {
      return {.end = End::kTime};
    }
    waiting.once();
  }
}

EndOfRecording wait_for_launched(WaitSources& sources, base::Logger& logger) {
  Waiting waiting{sources, kFirstLook};
  bool perf_ended = false;
  while (true) {
    while (const auto signal = sources.requests.next_with_origin()) {
      if (!signal->from_kernel) {
        sources.command->send_signal(signal->number);
      }
    }
    if (sources.command->try_wait()) {
      return {.end = End::kCommand};
    }
    if (const auto status = perf_ended ? std::nullopt : sources.perf.try_wait()) {
      perf_ended = true;
      if (!sources.command->wait(base::Deadline::after(kExitGrace))) {
        logger.warning("perf record exited ({}); the command keeps running, unrecorded",
                       base::describe(*status));
      }
      continue;
    }
    waiting.once();
  }
}

int status_after(EndOfRecording end, base::Child* command, std::size_t targets,
                 base::Logger& logger) {
  switch (end.end) {
    case End::kCommand:
      return command->try_wait().value_or(base::ExitStatus{false, kFailure}).shell_status();
    case End::kSignal:
      return 128 + end.signal;
    case End::kTime:
      return 0;
    case End::kTargets:
      logger.warning("{} exited before the end of the recording",
                     targets == 1 ? "the target" : "all targets");
      return 0;
    case End::kPerf:
      logger.warning("perf record ended by itself before the end of the recording");
      return 0;
  }
  return kFailure;
}

}  // namespace pyinject::record
