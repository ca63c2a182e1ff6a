#include "cli/cpu_meter.hpp"

#include "procfs/stat.hpp"
#include "procfs/tasks.hpp"

#include <ctime>
#include <thread>

namespace pyinject::cli {

using std::chrono::steady_clock;

CpuMeter::CpuMeter() : before_{read()} {}

CpuMeter::CpuTimes CpuMeter::read() {
  CpuTimes times;
  for (const auto pid : procfs::list_processes()) {
    const auto stat = procfs::read_stat(pid);
    clockid_t clock = 0;
    timespec time{};
    if (stat && ::clock_getcpuclockid(pid.value(), &clock) == 0 &&
        ::clock_gettime(clock, &time) == 0) {
      times[pid] = {
          .start_time = stat->start_time,
          .on_cpu = std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec}};
    }
  }
  return times;
}

CpuShares CpuMeter::shares() const {
  constexpr std::chrono::milliseconds kLeast{500};
  std::this_thread::sleep_until(begin_ + kLeast);
  const std::chrono::duration<double> passed = steady_clock::now() - begin_;
  CpuShares shares;
  for (const auto& [pid, time] : read()) {
    const auto found = before_.find(pid);
    if (found != before_.end() && found->second.start_time == time.start_time) {
      const std::chrono::duration<double> used = time.on_cpu - found->second.on_cpu;
      shares[pid] = used / passed;
    }
  }
  return shares;
}

}  // namespace pyinject::cli
