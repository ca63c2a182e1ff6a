#include "events/processor_events.hpp"

#if PYINJECT_LIBPERF

#include "procfs/descriptors.hpp"
#include "procfs/own_rights.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

#include <fcntl.h>
#include <linux/types.h>
#include <sys/types.h>
#include <unistd.h>

extern "C" {
#include <perf/core.h>
#include <perf/cpumap.h>
#include <perf/evlist.h>
#include <perf/evsel.h>
#include <perf/mmap.h>
#include <perf/threadmap.h>
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
// libperf 6.1 leaks an event's references to its maps: 48 bytes per list of events.
extern "C" const char* __lsan_default_suppressions();   // NOLINT: a name of the sanitizer's
extern "C" const char* __lsan_default_suppressions() {  // NOLINT
  return "leak:perf_cpu_map__\nleak:perf_thread_map__\n";
}
extern "C" const char* __lsan_default_options();                                    // NOLINT
extern "C" const char* __lsan_default_options() { return "print_suppressions=0"; }  // NOLINT
#endif
#endif

namespace pyinject::events {

namespace {

constexpr std::size_t kLargestRecord = 72 + 4096 + 8;  // MMAP2 with the longest path, and its time
constexpr std::size_t kMostAtOnce = 65536;

// The start of `struct perf_mmap` (tools/lib/perf/include/internal/mmap.h, linux 5.4 to 7.2).
// libperf does not expose the descriptors, only its own poll(2).
struct MmapHead {
  void* memory;
  int mask;
  int fd;
};

bool is_event(int fd) { return procfs::read_own_descriptor_link(fd) == "anon_inode:[perf_event]"; }

// libperf opens its events without PERF_FLAG_FD_CLOEXEC.
void close_events_on_exec() {
  const auto own = procfs::list_descriptors(base::Pid{::getpid()});
  for (const int fd : own.value_or(std::vector<int>{})) {
    if (is_event(fd)) {
      ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
  }
}

std::string why_not(int error) {
  constexpr int kAllProcesses = 0;
  auto found = "perf_event_open: " + base::errno_text(error);
  if (error != EACCES && error != EPERM) {
    return found;
  }
  return fmt::format(
      "{} (no_rights): {}", found,
      procfs::how_to_open_events(procfs::how_to_get(procfs::Capability::kPerfmon), kAllProcesses));
}

int print_nothing(libperf_print_level /*level*/, const char* /*format*/, va_list /*arguments*/) {
  return 0;
}

}  // namespace

struct ProcessorEvents::Libperf {
  perf_cpu_map* processors = nullptr;
  perf_thread_map* all_threads = nullptr;
  perf_evlist* events = nullptr;
  std::size_t bytes = 0;  // of each ring

  [[nodiscard]] bool add(perf_event_attr attributes);
  [[nodiscard]] bool map(RingSize size);
};

void ProcessorEvents::Delete::operator()(Libperf* libperf) const {
  perf_evlist__delete(libperf->events);  // including its events and their memory
  perf_cpu_map__put(libperf->processors);
  perf_thread_map__put(libperf->all_threads);
  delete libperf;
}

// False: no memory.
bool ProcessorEvents::Libperf::add(perf_event_attr attributes) {
  processors = perf_cpu_map__new(nullptr);  // the online ones
  all_threads = perf_thread_map__new_dummy();
  events = perf_evlist__new();
  if (processors == nullptr || all_threads == nullptr || events == nullptr) {
    return false;
  }
  perf_evsel* const event = perf_evsel__new(&attributes);
  if (event == nullptr) {
    return false;
  }
  perf_evlist__add(events, event);
  perf_evlist__set_maps(events, processors, all_threads);
  return true;
}

// False: errno says why.
bool ProcessorEvents::Libperf::map(RingSize size) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  errno = ENOMEM;
  for (bytes = size.largest; bytes >= size.smallest; bytes /= 2) {
    if (perf_evlist__mmap(events, static_cast<int>(bytes / page)) == 0) {
      return true;
    }
    if (errno != EPERM && errno != ENOMEM) {
      return false;
    }
  }
  return false;
}

bool built_in() { return true; }

std::variant<ProcessorEvents, std::string> ProcessorEvents::open(perf_event_attr attributes,
                                                                 RingSize size) {
  libperf_init(print_nothing);
  ProcessorEvents made{new Libperf};
  auto& libperf = *made.libperf_;
  if (!libperf.add(attributes)) {
    return "libperf has no memory";
  }
  const int result = perf_evlist__open(libperf.events);
  close_events_on_exec();
  if (result != 0) {
    return why_not(-result);
  }
  if (size.largest == 0) {
    return made;
  }
  if (!libperf.map(size)) {
    return "cannot map a ring of perf: " + base::errno_text(errno);
  }
  return made;
}

void ProcessorEvents::enable() { perf_evlist__enable(libperf_->events); }
void ProcessorEvents::disable() { perf_evlist__disable(libperf_->events); }

std::vector<int> ProcessorEvents::fds() const {
  std::vector<int> all;
  perf_mmap* map = nullptr;
  perf_evlist__for_each_mmap(libperf_->events, map, false) {
    const auto* const head = reinterpret_cast<const MmapHead*>(map);
    if (head->memory == nullptr || head->mask != static_cast<int>(libperf_->bytes - 1) ||
        !is_event(head->fd)) {
      return {};
    }
    all.push_back(head->fd);
  }
  return all;
}

bool ProcessorEvents::read(const Take& take, const std::function<void()>& full) {
  bool any = false;
  perf_mmap* map = nullptr;
  perf_evlist__for_each_mmap(libperf_->events, map, false) {
    if (perf_mmap__read_init(map) < 0) {
      continue;
    }
    std::size_t bytes = 0;
    for (std::size_t count = 0; count < kMostAtOnce; ++count) {
      const auto* const record =
          reinterpret_cast<const perf_event_header*>(perf_mmap__read_event(map));
      if (record == nullptr) {
        break;
      }
      bytes += record->size;
      take({reinterpret_cast<const std::byte*>(record), record->size});
    }
    // This returns the memory to the kernel, so at most one buffer of records can have arrived
    // before.
    if (bytes > 0) {
      any = true;
      perf_mmap__consume(map);
    }
    // No perf_mmap__read_done(): it continues at the head of now, behind records that have arrived
    // since the last look (tools/lib/perf/mmap.c, linux 6.1 to 7.2; made for overwritten buffers).
    if (full && bytes + kLargestRecord > libperf_->bytes) {
      full();
    }
  }
  return any;
}

}  // namespace pyinject::events

#else

namespace pyinject::events {

bool built_in() { return false; }

struct ProcessorEvents::Libperf {};
void ProcessorEvents::Delete::operator()(Libperf* libperf) const { delete libperf; }

std::variant<ProcessorEvents, std::string> ProcessorEvents::open(perf_event_attr /*attributes*/,
                                                                 RingSize /*size*/) {
  return "this perf-pyinject was built without libperf (not_built): build it with scripts/libperf, "
         "and build perf-pyinject again";
}
void ProcessorEvents::enable() {}
void ProcessorEvents::disable() {}
std::vector<int> ProcessorEvents::fds() const { return {}; }
bool ProcessorEvents::read(const Take& /*take*/, const std::function<void()>& /*full*/) {
  return false;
}

}  // namespace pyinject::events

#endif
