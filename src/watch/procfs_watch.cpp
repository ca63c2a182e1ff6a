#include "process_table.hpp"
#include "procfs/stat.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/watch/process_watch.hpp"

#include <cerrno>
#include <utility>

#include <sys/timerfd.h>
#include <unistd.h>

namespace pyinject::watch {

namespace {

// Detects processes that live for 100 ms. With 600 processes this takes 1.3 % of one processor.
constexpr long kPeriod = 50'000'000;

std::optional<Seen> look(base::Pid pid) {
  auto stat = procfs::read_stat(pid);
  if (!stat) {
    return std::nullopt;
  }
  return Seen{.start_time = stat->start_time,
              .parent = stat->parent,
              .image = {stat->stack_begin.value(), stat->environment_begin.value(),
                        stat->environment_end.value()},
              .name = std::move(stat->name),
              .ended = stat->state == 'Z' || stat->state == 'X'};
}

class ProcfsWatch : public ProcessWatch {
 public:
  ProcfsWatch() : timer_{::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)} {
    itimerspec times{};
    times.it_value.tv_nsec = kPeriod;
    times.it_interval.tv_nsec = kPeriod;
    if (!timer_.valid() || ::timerfd_settime(timer_.get(), 0, &times, nullptr) != 0) {
      throw base::SystemError{"timerfd", errno};
    }
    static_cast<void>(table_.update(procfs::list_processes(), look));  // pre-existing: not reported
  }

  [[nodiscard]] int fd() const override { return timer_.get(); }

  [[nodiscard]] std::vector<ProcessEvent> take() override {
    std::uint64_t periods = 0;
    if (::read(timer_.get(), &periods, sizeof periods) != sizeof periods) {
      return {};
    }
    return table_.update(procfs::list_processes(), look);
  }

  [[nodiscard]] bool report_write(base::Pid /*pid*/, std::uint64_t /*address*/) override {
    return false;
  }
  [[nodiscard]] std::string_view name() const override { return "/proc"; }

 private:
  base::UniqueFd timer_;
  ProcessTable table_;
};

}  // namespace

std::unique_ptr<ProcessWatch> watch_by_procfs() { return std::make_unique<ProcfsWatch>(); }

}  // namespace pyinject::watch
