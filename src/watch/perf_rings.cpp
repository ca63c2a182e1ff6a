#include "perf_rings.hpp"

#include "procfs/descriptors.hpp"
#include "procfs/own_rights.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#if PYINJECT_LIBPERF

#include <cstdarg>
#include <cstdio>

#include <fcntl.h>
#include <linux/perf_event.h>
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
// libperf 6.1 leaks an event's references to its maps: 48 bytes per watch.
extern "C" const char* __lsan_default_suppressions();   // NOLINT: a name of the sanitizer's
extern "C" const char* __lsan_default_suppressions() {  // NOLINT
  return "leak:perf_cpu_map__\nleak:perf_thread_map__\n";
}
#endif
#endif

namespace pyinject::watch {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLargestRecord = 72 + 4096 + 8;  // MMAP2 with the longest path, and its time
constexpr std::size_t kMostAtOnce = 65536;

// The start of `struct perf_mmap` (tools/lib/perf/include/internal/mmap.h, linux 5.4 to 7.2).
// libperf does not expose the descriptors, only its own poll(2).
struct MmapHead {
  void* memory;
  int mask;
  int fd;
};

// The descriptor opened by libperf; -1: the structure differs.
int descriptor_of(const perf_mmap* map, std::size_t pages) {
  const auto* const head = reinterpret_cast<const MmapHead*>(map);
  if (head->memory == nullptr || head->mask != static_cast<int>(pages * kPage - 1)) {
    return -1;
  }
  const auto link = procfs::read_own_descriptor_link(head->fd);
  return link == "anon_inode:[perf_event]" ? head->fd : -1;
}

perf_event_attr side_band() {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.sample_type = PERF_SAMPLE_TIME;
  attr.sample_id_all = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.task = 1;
  attr.comm = 1;
  attr.comm_exec = 1;
  attr.mmap = 1;  // code mappings; mmap_data would be for data
  attr.mmap2 = 1;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  // wakeup_events counts only samples (perf_output_sample); the watermark counts bytes of all
  // records.
  attr.watermark = 1;
  attr.wakeup_watermark = 1;
  return attr;
}

std::string why_not(int error) {
  if (error != EACCES && error != EPERM) {
    return "perf_event_open: " + base::errno_text(error);
  }
  constexpr int kAllProcesses = 0;  // libperf opens events for all processes, per processor
  return fmt::format(
      "perf_event_open: {} ({})", base::errno_text(error),
      procfs::how_to_open_events(procfs::how_to_get(procfs::Capability::kPerfmon), kAllProcesses));
}

int print_nothing(libperf_print_level /*level*/, const char* /*format*/, va_list /*arguments*/) {
  return 0;
}

}  // namespace

struct PerfRings::Libperf {
  Libperf() = default;
  Libperf(const Libperf&) = delete;
  Libperf& operator=(const Libperf&) = delete;
  ~Libperf() {
    perf_evlist__delete(events);  // including its event and its memory
    perf_cpu_map__put(processors);
    perf_thread_map__put(all_threads);
  }

  perf_cpu_map* processors = nullptr;
  perf_thread_map* all_threads = nullptr;
  perf_evlist* events = nullptr;
  std::size_t bytes = 0;  // of each ring
  std::vector<int> fds;
};

PerfRings::PerfRings(std::unique_ptr<Libperf> libperf) : libperf_{std::move(libperf)} {}
PerfRings::~PerfRings() = default;

const std::vector<int>& PerfRings::fds() const { return libperf_->fds; }

bool PerfRings::built_in() { return true; }

std::unique_ptr<PerfRings> PerfRings::open(std::size_t pages, std::string& why) {
  libperf_init(print_nothing);
  auto libperf = std::make_unique<Libperf>();
  libperf->processors = perf_cpu_map__new(nullptr);  // the online ones
  libperf->all_threads = perf_thread_map__new_dummy();
  libperf->events = perf_evlist__new();
  auto attr = side_band();
  perf_evsel* const event = perf_evsel__new(&attr);
  if (libperf->processors == nullptr || libperf->all_threads == nullptr ||
      libperf->events == nullptr || event == nullptr) {
    why = "libperf has no memory";
    return nullptr;
  }
  perf_evlist__add(libperf->events, event);
  perf_evlist__set_maps(libperf->events, libperf->processors, libperf->all_threads);
  if (const int result = perf_evlist__open(libperf->events); result != 0) {
    why = why_not(-result);
    return nullptr;
  }
  errno = 0;
  if (perf_evlist__mmap(libperf->events, static_cast<int>(pages)) != 0) {
    why = "libperf cannot map its buffers: " + base::errno_text(errno);
    return nullptr;
  }
  libperf->bytes = pages * kPage;
  perf_mmap* map = nullptr;
  perf_evlist__for_each_mmap(libperf->events, map, false) {
    const int fd = descriptor_of(map, pages);
    // libperf opens the events without O_CLOEXEC.
    if (fd < 0 || ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
      why = "the buffers of this libperf have an unknown layout";
      return nullptr;
    }
    libperf->fds.push_back(fd);
  }
  return std::unique_ptr<PerfRings>{new PerfRings{std::move(libperf)}};
}

bool PerfRings::read(std::vector<SideBand>& all) {
  bool any = false;
  perf_mmap* map = nullptr;
  perf_evlist__for_each_mmap(libperf_->events, map, false) {
    if (perf_mmap__read_init(map) < 0) {
      continue;
    }
    std::size_t bytes = 0;
    std::uint64_t time = 0;
    for (std::size_t count = 0; count < kMostAtOnce; ++count) {
      const auto* const record =
          reinterpret_cast<const perf_event_header*>(perf_mmap__read_event(map));
      if (record == nullptr) {
        break;
      }
      bytes += record->size;
      if (auto decoded =
              decode_side_band({reinterpret_cast<const std::byte*>(record), record->size})) {
        time = decoded->time;
        all.push_back(std::move(*decoded));
      }
    }
    // This returns the memory to the kernel, so at most one buffer of records can have arrived
    // before.
    if (bytes > 0) {
      any = true;
      perf_mmap__consume(map);
    }
    // No perf_mmap__read_done(): it continues at the head of now, behind records that have arrived
    // since the last look (tools/lib/perf/mmap.c, linux 6.1 to 7.2; made for overwritten buffers).
    // The kernel reports lost records with the next one that fits, which may never come.
    if (bytes + kLargestRecord > libperf_->bytes) {
      all.push_back({.time = time, .lost = true, .event = {}});
    }
  }
  return any;
}

}  // namespace pyinject::watch

#else

namespace pyinject::watch {

bool PerfRings::built_in() { return false; }

struct PerfRings::Libperf {
  std::vector<int> fds;
};

PerfRings::PerfRings(std::unique_ptr<Libperf> libperf) : libperf_{std::move(libperf)} {}
PerfRings::~PerfRings() = default;
const std::vector<int>& PerfRings::fds() const { return libperf_->fds; }
bool PerfRings::read(std::vector<SideBand>& /*all*/) { return false; }
std::unique_ptr<PerfRings> PerfRings::open(std::size_t /*pages*/, std::string& why) {
  why = "built without libperf";
  return nullptr;
}

}  // namespace pyinject::watch

#endif
