#include "record/verbs/cpu_budget.hpp"

#include "bpf/program_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <sys/resource.h>

namespace pyinject::record {

namespace {

constexpr double kAim = 0.8;   // of the budget
constexpr double kIdle = 0.5;  // below this part of the budget, the frequency rises
constexpr double kMostDown = 4;
constexpr double kMostUp = 2;
constexpr std::uint64_t kLowestPart = 10;

std::chrono::nanoseconds to_span(const timeval& time) {
  return std::chrono::seconds{time.tv_sec} + std::chrono::microseconds{time.tv_usec};
}

}  // namespace

std::uint64_t lowest_frequency(std::uint64_t requested) {
  return std::max<std::uint64_t>(requested / kLowestPart, 1);
}

std::uint64_t next_frequency(double used, double budget, std::uint64_t current,
                             std::uint64_t requested) {
  const auto frequency = static_cast<double>(current);
  // Even without any use, the frequency is at most doubled.
  const double fitting = frequency * kAim * budget / std::max(used, budget / 100);
  if (used > budget) {
    const auto lower = static_cast<std::uint64_t>(std::max(fitting, frequency / kMostDown));
    return std::max(std::min(lower, current - 1), lowest_frequency(requested));
  }
  if (used <= kIdle * budget) {
    const auto higher =
        static_cast<std::uint64_t>(std::ceil(std::min(fitting, frequency * kMostUp)));
    return std::min(higher, requested);
  }
  return current;
}

CpuUse cpu_use_until_now() {
  CpuUse use{.cpu = bpf::program_time()};
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    use.cpu += to_span(usage.ru_utime) + to_span(usage.ru_stime);
  }
  use.wall = std::chrono::steady_clock::now().time_since_epoch();
  return use;
}

std::optional<std::string> CpuBudget::adapt(const CpuUse& use) {
  if (use.wall <= std::chrono::nanoseconds{}) {
    return std::nullopt;
  }
  const double used = static_cast<double>(use.cpu.count()) / static_cast<double>(use.wall.count());
  const auto before = frequency_;
  frequency_ = next_frequency(used, share_, before, requested_);
  const auto taken = fmt::format("the latest recording took {:.2g} % of a CPU", 100 * used);
  const auto change =
      fmt::format("the next recordings sample at {} Hz, not {}", frequency_, before);
  const bool known = exceeded_;
  exceeded_ = used > share_ && frequency_ == before;
  if (frequency_ > before) {
    return fmt::format("{}, --max-cpu {:g}% allows more: {}", taken, 100 * share_, change);
  }
  if (frequency_ < before) {
    return fmt::format("{}, more than --max-cpu {:g}%: {}", taken, 100 * share_, change);
  }
  if (exceeded_ && !known) {
    return fmt::format(
        "{}, more than --max-cpu {:g}%, at the lowest frequency, {} Hz: a longer PERIOD takes less",
        taken, 100 * share_, frequency_);
  }
  return std::nullopt;
}

}  // namespace pyinject::record
