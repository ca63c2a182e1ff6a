#include "bpf/perf_events.hpp"

#include "base/text.hpp"
#include "procfs/own_rights.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

namespace pyinject::bpf {

namespace {

namespace filesystem = std::filesystem;

// The numbers of PID's descriptors that are perf events. ERROR: they could not be listed.
std::vector<int> perf_events_of(base::Pid pid, std::error_code& error) {
  std::vector<int> found;
  const auto folder = fmt::format("/proc/{}/fd", pid.value());
  for (filesystem::directory_iterator entry{folder, error}, end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (filesystem::read_symlink(entry->path(), ignored) == "anon_inode:[perf_event]") {
      if (const auto number = base::parse_number<int>(entry->path().filename().string())) {
        found.push_back(*number);
      }
    }
  }
  return found;
}

}  // namespace

Sampler::Attached to_each_event(base::Pid perf, const std::function<int(int)>& put) {
  Sampler::Attached result;
  const base::UniqueFd process{static_cast<int>(::syscall(SYS_pidfd_open, perf.value(), 0))};
  if (!process.valid()) {
    result.why = "pidfd_open: " + base::errno_text(errno);
    return result;
  }
  std::error_code error;
  for (const int number : perf_events_of(perf, error)) {
    const base::UniqueFd event{
        static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), number, 0))};
    if (!event.valid()) {
      ++result.refused;
      result.why = "pidfd_getfd: " + base::errno_text(errno);
    } else if (const int problem = put(event.get()); problem == 0) {
      ++result.events;
    } else {
      ++result.refused;
      result.why = "the kernel does not put the program there: " + base::errno_text(problem);
    }
  }
  if (error) {  // a perf with file capabilities
    result.why = fmt::format("its descriptors cannot be listed: {}: {}", error.message(),
                             procfs::how_to_get(procfs::Capability::kSysPtrace));
  }
  return result;
}

}  // namespace pyinject::bpf
