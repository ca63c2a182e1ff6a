#include "recorder/open_events.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "procfs/sysctl.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/base/error.hpp"
#include "recorder/attributes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pyinject::recorder {

namespace {

constexpr std::uint64_t kUsualMostFrequent = 100'000;

int open_event(const perf_event_attr& attr, pid_t pid, int cpu, unsigned long flags) {
  auto copy = attr;
  return static_cast<int>(
      ::syscall(SYS_perf_event_open, &copy, pid, cpu, -1, flags | PERF_FLAG_FD_CLOEXEC));
}

std::vector<int> processors(const Options& options) {
  if (options.cpus) {
    return parse_processors(*options.cpus);
  }
  const auto online = base::read_file("/sys/devices/system/cpu/online");
  auto all = parse_processors(online ? *online : "0");
  return all.empty() ? std::vector{0} : all;
}

// As many descriptors as this process may have: an event takes one for each thread and processor.
void raise_limit_of_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

// The directory of CGROUP in the hierarchy that perf events take: that of version 1, else the
// unified one.
base::UniqueFd open_cgroup(const std::string& cgroup) {
  constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  for (const auto* const root :
       {"/sys/fs/cgroup/perf_event/", "/sys/fs/cgroup/unified/", "/sys/fs/cgroup/"}) {
    base::UniqueFd fd{::open((root + cgroup).c_str(), kDirectory)};
    struct statfs facts {};
    if (fd.valid() && ::fstatfs(fd.get(), &facts) == 0 &&
        (facts.f_type == CGROUP_SUPER_MAGIC || facts.f_type == CGROUP2_SUPER_MAGIC)) {
      return fd;
    }
  }
  errno = ENOENT;
  return {};
}

bool lacks_counter(int error) {
  return error == ENOENT || error == ENXIO || error == ENODEV || error == EOPNOTSUPP;
}

class Opener {
 public:
  explicit Opener(const Options& options)
      : options_{options}, processors_{processors(options)}, most_{most_frequent()} {}

  // Why not; empty: done.
  std::string open(std::vector<OpenEvent>& events, std::vector<Ring>& rings);
  [[nodiscard]] std::vector<std::string> take_notes() { return std::move(notes_); }

 private:
  static std::uint64_t most_frequent() {
    const auto text = procfs::read_sysctl("kernel.perf_event_max_sample_rate");
    return text ? base::parse_number<std::uint64_t>(*text).value_or(kUsualMostFrequent)
                : kUsualMostFrequent;
  }
  std::string find_targets();
  int map_rings_of(std::size_t bytes, std::vector<Ring>& rings);
  std::string map_rings(std::vector<Ring>& rings);
  std::string open_all(NamedEvent named, std::vector<OpenEvent>& events);
  std::string open_side_band(std::vector<OpenEvent>& events);
  // errno of the first failure that no fallback helps against; 0: done.
  int open_everywhere(OpenEvent& event);
  [[nodiscard]] static std::string why_not(const std::string& name, int error);

  const Options& options_;
  std::vector<int> processors_;
  std::uint64_t most_;
  std::uint64_t unknown_format_ = 0;  // bits of read_format that this kernel does not know
  std::vector<pid_t> tasks_;          // -1: all; of a cgroup: its descriptor
  base::UniqueFd cgroup_;
  std::map<int, int> rings_;  // the descriptor of a processor's ring
  std::vector<std::string> notes_;
};

std::string Opener::find_targets() {
  if (options_.cgroup) {
    cgroup_ = open_cgroup(*options_.cgroup);
    if (!cgroup_.valid()) {
      return fmt::format("no access to cgroup {}: {}", *options_.cgroup, base::errno_text(errno));
    }
    tasks_ = {cgroup_.get()};
  } else if (options_.pids.empty()) {
    tasks_ = {-1};
  }
  for (const auto pid : options_.pids) {
    for (const auto tid : procfs::list_tasks(base::Pid{pid})) {
      tasks_.push_back(tid.value());
    }
  }
  return tasks_.empty() ? "Couldn't create thread/CPU maps: No such process" : "";
}

// An event of this process, which cannot exit before, has the ring of each processor; all others
// write to that. Returns the errno of what failed; 0: done.
int Opener::map_rings_of(std::size_t bytes, std::vector<Ring>& rings) {
  auto attr = side_band_attributes(options_);
  attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = attr.context_switch = 0;
  attr.ksymbol = attr.bpf_event = attr.mmap_data = attr.inherit = 0;
  for (const int cpu : processors_) {
    attr.read_format &= ~unknown_format_;
    base::UniqueFd fd{open_event(attr, 0, cpu, 0)};
    if (!fd.valid() && errno == EINVAL && unknown_format_ == 0) {  // before Linux 6.0
      unknown_format_ = kFormatLost;
      attr.read_format &= ~unknown_format_;
      fd.reset(open_event(attr, 0, cpu, 0));
    }
    if (!fd.valid() && lacks_counter(errno)) {
      continue;  // it has gone offline
    }
    const int number = fd.get();
    auto ring = fd.valid() ? Ring::map(std::move(fd), bytes) : std::nullopt;
    if (!ring) {
      return errno;
    }
    rings_.emplace(cpu, number);
    rings.push_back(std::move(*ring));
  }
  return rings.empty() ? ENODEV : 0;
}

// Without CAP_IPC_LOCK, kernel.perf_event_mlock_kb limits the rings.
std::string Opener::map_rings(std::vector<Ring>& rings) {
  const auto least = 8 * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (auto bytes = options_.ring_bytes;; bytes /= 2) {
    const int error = map_rings_of(bytes, rings);
    if (error == 0) {
      return {};
    }
    rings.clear();
    rings_.clear();
    const bool too_large = error == EPERM || error == ENOMEM;
    if (!too_large || options_.ring_is_chosen || bytes / 2 < least) {
      return too_large ? fmt::format(
                             "Permission error mapping pages: a buffer of {} bytes for each "
                             "processor exceeds kernel.perf_event_mlock_kb: a smaller -m, or "
                             "CAP_IPC_LOCK",
                             bytes)
                       : why_not("dummy", error);
    }
  }
}

int Opener::open_everywhere(OpenEvent& event) {
  const unsigned long flags = options_.cgroup ? PERF_FLAG_PID_CGROUP : 0;
  std::vector<pid_t> living;
  for (const auto task : tasks_) {
    bool lives = true;
    for (const auto& [cpu, ring] : rings_) {
      base::UniqueFd fd{open_event(event.attr, task, cpu, flags)};
      if (!fd.valid() && errno == ESRCH) {
        lives = false;  // it has exited since it was listed
        break;
      }
      if (!fd.valid()) {
        return errno;
      }
      std::uint64_t id = 0;
      if (::ioctl(fd.get(), PERF_EVENT_IOC_ID, &id) != 0 ||
          ::ioctl(fd.get(), PERF_EVENT_IOC_SET_OUTPUT, ring) != 0) {
        return errno;
      }
      event.ids.push_back(id);
      event.fds.push_back(std::move(fd));
    }
    if (lives) {
      living.push_back(task);
    }
  }
  tasks_ = std::move(living);
  return 0;
}

std::string Opener::why_not(const std::string& name, int error) {
  switch (error) {
    case EACCES:
    case EPERM:
      return fmt::format("No permission to enable {} event (kernel.perf_event_paranoid)", name);
    case EMFILE:
      return fmt::format(
          "Too many events are opened: event {} takes a descriptor for each thread and processor: "
          "ulimit -n",
          name);
    default:
      return fmt::format("The event {} cannot be opened: {}", name, base::errno_text(error));
  }
}

std::string Opener::open_all(NamedEvent named, std::vector<OpenEvent>& events) {
  for (;;) {
    OpenEvent event{.name = named.name,
                    .attr = sampling_attributes(named, options_, most_),
                    .fds = {},
                    .ids = {}};
    event.attr.read_format &= ~unknown_format_;
    const int error = open_everywhere(event);
    if (error == 0) {
      if (event.fds.empty()) {
        return "Couldn't create thread/CPU maps: No such process";
      }
      events.push_back(std::move(event));
      return {};
    }
    const bool cycles =
        named.attr.type == PERF_TYPE_HARDWARE && named.attr.config == PERF_COUNT_HW_CPU_CYCLES;
    if (lacks_counter(error) && cycles) {
      auto clock = processor_clock();
      clock.period = named.period;
      clock.frequency = named.frequency;
      clock.callchain = named.callchain;
      clock.attr.exclude_user = named.attr.exclude_user;
      clock.attr.exclude_kernel = named.attr.exclude_kernel;
      const auto modifiers = std::min(named.name.find(':'), named.name.size());
      clock.name += named.name.substr(modifiers);
      named = std::move(clock);
    } else if (named.attr.precise_ip > 0 && (lacks_counter(error) || error == EINVAL)) {
      named.attr.precise_ip = (named.attr.precise_ip - 1U) & 3U;
    } else if ((error == EACCES || error == EPERM) && named.attr.exclude_kernel == 0 &&
               named.attr.type != PERF_TYPE_TRACEPOINT && named.attr.exclude_user == 0) {
      named.attr.exclude_kernel = named.attr.exclude_hv = 1;
      named.name += named.name.find_first_of(":/") == std::string::npos ? ":u" : "u";
    } else {
      return why_not(named.name, error);
    }
  }
}

std::string Opener::open_side_band(std::vector<OpenEvent>& events) {
  OpenEvent event{.name = "dummy:u",
                  .attr = side_band_attributes(options_),
                  .fds = {},
                  .ids = {},
                  .sampling = false,
                  .enabled = true};
  event.attr.read_format &= ~unknown_format_;
  if (const int error = open_everywhere(event); error != 0) {
    return why_not(event.name, error);
  }
  events.push_back(std::move(event));
  return {};
}

std::string Opener::open(std::vector<OpenEvent>& events, std::vector<Ring>& rings) {
  raise_limit_of_descriptors();
  if (auto why = find_targets(); !why.empty()) {
    return why;
  }
  if (auto why = map_rings(rings); !why.empty()) {
    return why;
  }
  if (options_.frequency.value_or(0) > most_) {
    notes_.push_back(
        fmt::format("warning: Maximum frequency rate ({} Hz) exceeded, throttling from {} Hz",
                    most_, *options_.frequency));
  }
  const auto named = options_.events.empty() ? std::vector{default_event()} : options_.events;
  for (const auto& one : named) {
    if (auto why = open_all(one, events); !why.empty()) {
      return why;
    }
  }
  return open_side_band(events);
}

}  // namespace

std::variant<OpenEvents, std::string> OpenEvents::open(const Options& options) {
  OpenEvents opened;
  Opener opener{options};
  if (auto why = opener.open(opened.events_, opened.rings_); !why.empty()) {
    return why;
  }
  opened.notes_ = opener.take_notes();
  return opened;
}

void OpenEvents::set(OpenEvent& event, bool enabled) {
  for (const auto& fd : event.fds) {
    ::ioctl(fd.get(), enabled ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
  }
  event.enabled = enabled;
}

}  // namespace pyinject::recorder
