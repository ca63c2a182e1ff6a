#include "pyinject/fake/process_watch.hpp"

#include "pyinject/base/error.hpp"

#include <cerrno>

#include <sys/eventfd.h>

namespace pyinject::fake {

ProcessWatch::ProcessWatch() : fd_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
  if (!fd_.valid()) {
    throw base::SystemError{"eventfd", errno};
  }
}

std::vector<watch::ProcessEvent> ProcessWatch::take() {
  eventfd_t count = 0;
  (void)::eventfd_read(fd_.get(), &count);
  return std::exchange(events_, {});
}

bool ProcessWatch::report_write(base::Pid pid, std::uint64_t address) {
  watched.emplace_back(pid, address);
  return reports_writes;
}

void ProcessWatch::tell(watch::ProcessEvent event) {
  events_.push_back(std::move(event));
  (void)::eventfd_write(fd_.get(), 1);
}

}  // namespace pyinject::fake
