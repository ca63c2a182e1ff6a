#include "perf_watch.hpp"

#include "events/processor_events.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "side_band.hpp"
#include "write_watch.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>
#include <variant>

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace pyinject::watch {

namespace {

using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC, as in the records

// A wakeup for each of some ten records per fork and exec would cost far more than the records. So
// the first record wakes, and then a timer polls every 2 ms until there are none for that long.
constexpr auto kPause = std::chrono::milliseconds{2};
// Minimum interval between the listings of all processes after lost records.
constexpr auto kListPause = std::chrono::milliseconds{50};

base::UniqueFd checked(int fd, const char* step) {
  if (fd < 0) {
    throw base::SystemError{step, errno};
  }
  return base::UniqueFd{fd};
}

std::uint64_t nanoseconds(Clock::time_point time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

void add(const base::UniqueFd& epoll, int fd) {
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &wanted) != 0) {
    throw base::SystemError{"epoll_ctl", errno};
  }
}

void list_all(std::vector<ProcessEvent>& events) {
  for (const auto pid : procfs::list_processes()) {
    ProcessEvent event;
    event.change = Change::kAppeared;
    event.pid = pid;
    events.push_back(std::move(event));
  }
}

class PerfWatch : public ProcessWatch {
 public:
  // FDS: those of RINGS.
  PerfWatch(events::ProcessorEvents rings, const std::vector<int>& fds);

  [[nodiscard]] int fd() const override { return all_.get(); }
  [[nodiscard]] std::vector<ProcessEvent> take() override;
  [[nodiscard]] bool report_write(base::Pid pid, std::uint64_t address) override {
    return writes_.add(pid, address);
  }
  [[nodiscard]] std::string_view name() const override { return "perf events"; }

 private:
  // Appends what the records since the last call say. False: there were none.
  bool read();
  void set_timer(std::chrono::nanoseconds pause);
  void choose_wakeup(bool busy);

  events::ProcessorEvents rings_;
  WriteWatch writes_;
  base::UniqueFd new_records_ = checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
  base::UniqueFd timer_ =
      checked(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "timerfd_create");
  base::UniqueFd all_ = checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
  bool by_record_ = true;  // woken by a new record, else by the timer
  bool lost_ = false;
  Clock::time_point listed_{};
  std::vector<SideBand> held_;
};

PerfWatch::PerfWatch(events::ProcessorEvents rings, const std::vector<int>& fds)
    : rings_{std::move(rings)} {
  for (const int fd : fds) {
    add(new_records_, fd);
  }
  add(all_, new_records_.get());
  add(all_, timer_.get());
  add(all_, writes_.fd());
  // Polling epoll clears the readiness of a ring: the timer finds what arrived in the meantime.
  choose_wakeup(true);
}

bool PerfWatch::read() {
  std::uint64_t time = 0;
  return rings_.read(
      [&](std::span<const std::byte> record) {
        if (auto decoded = decode_side_band(record)) {
          time = decoded->time;
          held_.push_back(std::move(*decoded));
        }
      },
      [&] { held_.push_back({.time = time, .lost = true, .event = {}}); });
}

void PerfWatch::set_timer(std::chrono::nanoseconds pause) {
  itimerspec once{};
  once.it_value.tv_nsec = pause.count();
  if (::timerfd_settime(timer_.get(), 0, &once, nullptr) != 0) {
    throw base::SystemError{"timerfd_settime", errno};
  }
}

void PerfWatch::choose_wakeup(bool busy) {
  if (!busy && !by_record_) {
    add(all_, new_records_.get());
    by_record_ = true;
    set_timer(std::chrono::nanoseconds{0});
    // An earlier record is not announced any more (perf_poll reports readiness once).
    busy = read();
  }
  if (busy) {
    if (by_record_ && ::epoll_ctl(all_.get(), EPOLL_CTL_DEL, new_records_.get(), nullptr) != 0) {
      throw base::SystemError{"epoll_ctl", errno};
    }
    by_record_ = false;
    set_timer(kPause);
  }
}

std::vector<ProcessEvent> PerfWatch::take() {
  const auto now = Clock::now();
  // First the breakpoints, so that later events of a process (exec, exit) follow.
  std::vector<ProcessEvent> events;
  for (const auto pid : writes_.taken()) {
    ProcessEvent event;
    event.change = Change::kWritten;
    event.pid = pid;
    events.push_back(std::move(event));
  }
  bool busy = read();
  for (auto& one : take_until(held_, nanoseconds(now))) {
    if (one.lost) {
      lost_ = true;
      continue;
    }
    if (one.event.change == Change::kExec || one.event.change == Change::kExited) {
      writes_.drop(one.event.pid);
    }
    events.push_back(std::move(one.event));
  }
  if (lost_ && now - listed_ >= kListPause) {
    list_all(events);
    listed_ = now;
    lost_ = false;
  }
  choose_wakeup(busy || lost_ || !held_.empty());
  return events;
}

}  // namespace

std::unique_ptr<ProcessWatch> watch_by_perf_events(std::string& why, std::size_t ring_pages) {
  const auto bytes = ring_pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  auto opened =
      events::ProcessorEvents::open(side_band_event(), {.largest = bytes, .smallest = bytes});
  if (auto* const refusal = std::get_if<std::string>(&opened)) {
    why = std::move(*refusal);
    return nullptr;
  }
  auto& rings = std::get<events::ProcessorEvents>(opened);
  const auto fds = rings.fds();
  if (fds.empty()) {
    why = "the buffers of this libperf have an unknown layout";
    return nullptr;
  }
  return std::make_unique<PerfWatch>(std::move(rings), fds);
}

std::unique_ptr<ProcessWatch> watch_by_perf_events(std::string& why) {
  return watch_by_perf_events(why, kRingPages);
}

}  // namespace pyinject::watch
