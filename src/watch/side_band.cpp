#include "side_band.hpp"

#include "base/byte_cursor.hpp"
#include "events/attributes.hpp"
#include "perfdata/record.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include <linux/perf_event.h>
#include <sys/mman.h>

namespace pyinject::watch {

namespace {

// A process in a foreign pid namespace has no pid here: the kernel writes 0, or -1 after its exit.
std::optional<base::Pid> pid_of(std::uint32_t number) {
  if (number == 0 || number > std::uint32_t{std::numeric_limits<std::int32_t>::max()}) {
    return std::nullopt;
  }
  return base::Pid{static_cast<pid_t>(number)};
}

std::optional<ProcessEvent> event_of(const perfdata::Record& record) {
  ProcessEvent event;
  std::optional<base::Pid> pid;
  if (const auto task = perfdata::parse_task(record)) {
    pid = task->pid == task->tid ? pid_of(task->pid) : std::nullopt;
    event.change = record.type == PERF_RECORD_FORK ? Change::kForked : Change::kExited;
    if (event.change == Change::kForked) {
      event.parent = pid_of(task->parent_pid).value_or(base::Pid{});
    }
  } else if (auto command = perfdata::parse_command(record)) {
    pid = command->pid == command->tid ? pid_of(command->pid) : std::nullopt;
    event.change = command->exec ? Change::kExec : Change::kNamed;
    event.path = std::move(command->name);
  } else if (auto mapping = perfdata::parse_mapping(record)) {
    pid = (mapping->protection & PROT_EXEC) != 0 ? pid_of(mapping->pid) : std::nullopt;
    if (mapping->inode == 0) {
      event.change = Change::kGeneratedCode;
      event.pid = pid.value_or(base::Pid{});
      return pid ? std::optional{event} : std::nullopt;
    }
    event.change = Change::kMapped;
    event.file = {.device_major = mapping->major,
                  .device_minor = mapping->minor,
                  .inode = mapping->inode,
                  .generation = mapping->generation};
    event.path = std::move(mapping->file);
  }
  if (!pid) {
    return std::nullopt;
  }
  event.pid = *pid;
  return event;
}

}  // namespace

perf_event_attr side_band_event() {
  auto attr = events::software_event(PERF_COUNT_SW_DUMMY);
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

std::optional<SideBand> decode_side_band(std::span<const std::byte> record) {
  base::ByteCursor cursor{record};
  perfdata::Record plain;
  plain.type = cursor.number<std::uint32_t>();
  // No build ids were requested: the bit may be left over from another recording's record, which
  // the kernel has written before.
  plain.misc =
      static_cast<std::uint16_t>(cursor.number<std::uint16_t>() & ~PERF_RECORD_MISC_MMAP_BUILD_ID);
  const auto size = cursor.number<std::uint16_t>();
  SideBand result;
  if (cursor.failed() || size != record.size() || cursor.left().size() < sizeof result.time) {
    return std::nullopt;
  }
  // The sample id, which is only the time, is last.
  plain.bytes = record.first(record.size() - sizeof result.time);
  std::memcpy(&result.time, record.data() + plain.bytes.size(), sizeof result.time);
  if (plain.type == PERF_RECORD_LOST) {
    result.lost = true;
    return result;
  }
  auto event = event_of(plain);
  if (!event) {
    return std::nullopt;
  }
  result.event = std::move(*event);
  return result;
}

std::vector<SideBand> take_until(std::vector<SideBand>& held, std::uint64_t now) {
  const auto by_time = [](const SideBand& one, const SideBand& other) {
    return one.time < other.time;
  };
  std::stable_sort(held.begin(), held.end(), by_time);
  const auto end =
      std::find_if(held.begin(), held.end(), [now](const SideBand& one) { return one.time > now; });
  std::vector<SideBand> taken{std::make_move_iterator(held.begin()), std::make_move_iterator(end)};
  held.erase(held.begin(), end);
  return taken;
}

}  // namespace pyinject::watch
