#include "why/event_rings.hpp"

#include "procfs/own_rights.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pyinject::why {

namespace {

// Powers of two. Without CAP_IPC_LOCK, kernel.perf_event_mlock_kb limits them, 516 by default.
constexpr std::size_t kLargestRing = std::size_t{2} << 20;
constexpr std::size_t kSmallestRing = std::size_t{64} << 10;
constexpr std::uint64_t kOfSample = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                    PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN;
constexpr std::uint32_t kMostOfChain = 64;

perf_event_attr common() {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.size = sizeof attr;
  attr.sample_type = kOfSample;
  attr.sample_id_all = 1;
  attr.sample_max_stack = kMostOfChain;
  attr.exclude_callchain_user = 1;
  attr.disabled = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  return attr;
}

base::UniqueFd open_event(perf_event_attr& attr, int processor) {
  return base::UniqueFd{static_cast<int>(
      ::syscall(SYS_perf_event_open, &attr, -1, processor, -1, PERF_FLAG_FD_CLOEXEC))};
}

std::string why_not(int error) {
  constexpr int kAllProcesses = 0;
  if (error == EACCES || error == EPERM) {
    return fmt::format("perf_event_open: {} (no_rights): {}", base::errno_text(error),
                       procfs::how_to_open_events(procfs::how_to_get(procfs::Capability::kPerfmon),
                                                  kAllProcesses));
  }
  return "perf_event_open: " + base::errno_text(error);
}

struct SampleId {
  std::uint32_t pid;
  std::uint32_t tid;
  std::uint64_t time;
  std::uint64_t event;
};

template <typename Value>
bool take(std::span<const std::byte>& bytes, Value& value) {
  if (bytes.size() < sizeof value) {
    return false;
  }
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes = bytes.subspan(sizeof value);
  return true;
}

bool parse_sample(std::span<const std::byte> bytes, std::uint16_t misc, RingRecord& record) {
  std::uint64_t count = 0;
  if (!take(bytes, record.event) || !take(bytes, record.address) || !take(bytes, record.pid) ||
      !take(bytes, record.tid) || !take(bytes, record.time) || !take(bytes, count)) {
    return false;
  }
  record.kind = RingRecord::Kind::kSample;
  record.user = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
  std::uint64_t address = 0;
  for (; count > 0 && take(bytes, address); --count) {
    if (address < PERF_CONTEXT_MAX) {
      record.kernel.push_back(address);
    }
  }
  return count == 0;
}

}  // namespace

bool parse_record(std::span<const std::byte> bytes, RingRecord& record) {
  record.kernel.clear();
  perf_event_header header{};
  if (!take(bytes, header) || bytes.size() + sizeof header != header.size) {
    return false;
  }
  if (header.type == PERF_RECORD_SAMPLE) {
    return parse_sample(bytes, header.misc, record);
  }
  SampleId id{};
  if (bytes.size() < sizeof id) {
    return false;
  }
  std::memcpy(&id, bytes.last(sizeof id).data(), sizeof id);
  record.pid = id.pid;
  record.tid = id.tid;
  record.time = id.time;
  switch (header.type) {
    case PERF_RECORD_SWITCH_CPU_WIDE:
      record.kind = (header.misc & PERF_RECORD_MISC_SWITCH_OUT) == 0 ? RingRecord::Kind::kIn
                    : (header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0
                        ? RingRecord::Kind::kPreempted
                        : RingRecord::Kind::kOut;
      return true;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT: {
      struct {
        std::uint32_t pid, parent_pid, tid, parent_tid;
      } task{};
      record.kind =
          header.type == PERF_RECORD_FORK ? RingRecord::Kind::kStart : RingRecord::Kind::kExit;
      if (!take(bytes, task)) {
        return false;
      }
      record.pid = task.pid;
      record.tid = task.tid;
      return true;
    }
    case PERF_RECORD_LOST: {
      std::uint64_t event = 0;
      record.kind = RingRecord::Kind::kLost;
      return take(bytes, event) && take(bytes, record.lost);
    }
    default:
      return false;
  }
}

EventRings::Memory EventRings::map_ring(int event) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (auto bytes = kLargestRing; bytes >= kSmallestRing; bytes /= 2) {
    void* const memory =
        ::mmap(nullptr, page + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    if (memory != MAP_FAILED) {
      return Memory{memory, Unmap{page + bytes}};
    }
    if (errno != EPERM && errno != ENOMEM) {
      break;
    }
  }
  return Memory{nullptr, Unmap{}};
}

void EventRings::Unmap::operator()(void* memory) const { ::munmap(memory, size); }

std::string EventRings::add(int processor, std::chrono::nanoseconds period, EventRings& rings) {
  auto clock = common();
  clock.config = PERF_COUNT_SW_CPU_CLOCK;
  clock.sample_period = static_cast<std::uint64_t>(period.count());
  clock.exclude_idle = 1;
  auto switches = common();
  switches.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
  switches.sample_period = 1;
  switches.context_switch = 1;
  switches.task = 1;
  Processor one;
  one.clock = open_event(clock, processor);
  if (!one.clock.valid()) {
    return errno == ENODEV || errno == ENXIO ? "" : why_not(errno);  // offline
  }
  one.switches = open_event(switches, processor);
  if (!one.switches.valid()) {
    return why_not(errno);
  }
  one.memory = map_ring(one.clock.get());
  if (!one.memory) {
    return "cannot map a ring of perf: " + base::errno_text(errno);
  }
  std::uint64_t id = 0;
  if (::ioctl(one.switches.get(), PERF_EVENT_IOC_SET_OUTPUT, one.clock.get()) != 0 ||
      ::ioctl(one.switches.get(), PERF_EVENT_IOC_ID, &id) != 0) {
    return "cannot join two events of perf: " + base::errno_text(errno);
  }
  rings.switch_ids_.push_back(id);
  rings.processors_.push_back(std::move(one));
  return "";
}

std::variant<EventRings, std::string> EventRings::open(std::chrono::nanoseconds period) {
  EventRings rings;
  const auto configured = ::sysconf(_SC_NPROCESSORS_CONF);
  for (int processor = 0; processor < configured; ++processor) {
    if (auto why = add(processor, period, rings); !why.empty()) {
      return why;
    }
  }
  if (rings.processors_.empty()) {
    return "no processor can be sampled";
  }
  std::ranges::sort(rings.switch_ids_);
  return rings;
}

void EventRings::enable() {
  for (const auto& one : processors_) {
    ::ioctl(one.switches.get(), PERF_EVENT_IOC_ENABLE, 0);
    ::ioctl(one.clock.get(), PERF_EVENT_IOC_ENABLE, 0);
  }
}

void EventRings::disable() {
  for (const auto& one : processors_) {
    ::ioctl(one.clock.get(), PERF_EVENT_IOC_DISABLE, 0);
    ::ioctl(one.switches.get(), PERF_EVENT_IOC_DISABLE, 0);
  }
}

bool EventRings::is_switch(std::uint64_t event) const {
  return std::ranges::binary_search(switch_ids_, event);
}

// The kernel writes the head, this process the tail: perf_event_open(2), "MMAP layout".
void EventRings::read(const std::function<void(const RingRecord&)>& take) {
  for (const auto& one : processors_) {
    auto* const page = static_cast<perf_event_mmap_page*>(one.memory.get());
    const auto* const data = static_cast<const std::byte*>(one.memory.get()) + page->data_offset;
    const auto head = std::atomic_ref{page->data_head}.load(std::memory_order_acquire);
    const auto size = static_cast<std::size_t>(page->data_size);
    auto tail = page->data_tail;
    while (head - tail >= sizeof(perf_event_header)) {
      const auto at = static_cast<std::size_t>(tail % size);  // records are multiples of 8
      perf_event_header header{};
      std::memcpy(&header, data + at, sizeof header);
      if (header.size < sizeof header || header.size > head - tail) {
        tail = head;
        break;
      }
      record_.resize(header.size);
      const auto first = std::min<std::size_t>(header.size, size - at);
      std::memcpy(record_.data(), data + at, first);
      std::memcpy(record_.data() + first, data, header.size - first);
      if (parse_record(record_, parsed_)) {
        take(parsed_);
      }
      tail += header.size;
    }
    std::atomic_ref{page->data_tail}.store(tail, std::memory_order_release);
  }
}

}  // namespace pyinject::why
