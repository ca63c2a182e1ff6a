#include "bpf/perf_events.hpp"

#include "procfs/descriptors.hpp"
#include "procfs/own_rights.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

namespace pyinject::bpf {

namespace {

// Descriptors of PID that are perf events. ERROR: the errno if they cannot be listed.
std::vector<int> perf_events_of(base::Pid pid, int& error) {
  auto numbers = procfs::list_descriptors(pid);
  if (!numbers) {
    error = errno;
    return {};
  }
  std::erase_if(*numbers, [pid](int number) {
    return procfs::read_descriptor_link(pid, number) != "anon_inode:[perf_event]";
  });
  return *std::move(numbers);
}

}  // namespace

Sampler::Attached to_each_event(base::Pid perf,
                                const std::function<int(int, Sampler::Attached&)>& put) {
  Sampler::Attached result;
  const base::UniqueFd process{static_cast<int>(::syscall(SYS_pidfd_open, perf.value(), 0))};
  if (!process.valid()) {
    result.why = "pidfd_open: " + base::errno_text(errno);
    return result;
  }
  int error = 0;
  for (const int number : perf_events_of(perf, error)) {
    const base::UniqueFd event{
        static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), number, 0))};
    if (!event.valid()) {
      ++result.refused;
      result.why = "pidfd_getfd: " + base::errno_text(errno);
    } else if (const int problem = put(event.get(), result); problem == 0) {
      ++result.events;
    } else {
      ++result.refused;
      result.why = "refused by the kernel: " + base::errno_text(problem);
    }
  }
  if (error != 0) {  // a perf with file capabilities
    result.why = fmt::format("perf's descriptors cannot be listed: {}: {}", base::errno_text(error),
                             procfs::how_to_get(procfs::Capability::kSysPtrace));
  }
  return result;
}

}  // namespace pyinject::bpf
