#include "e2e/perf_attributes.hpp"

#include "perfdata/input.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <variant>

#include <linux/perf_event.h>

namespace pyinject::test {

namespace {

using perfdata::Event;

std::vector<Event> events_in(const std::string& file) {
  auto opened = perfdata::Input::open(file);
  if (const auto* const why = std::get_if<perfdata::UnsupportedFile>(&opened)) {
    throw base::Error{file + ": " + why->why};
  }
  return std::get<perfdata::Input>(opened).events();
}

// The bits that ask for side-band records.
perf_event_attr side_band(const std::vector<Event>& events) {
  perf_event_attr all{};
  for (const auto& event : events) {
    const auto& attr = event.attr;
    all.mmap |= attr.mmap;
    all.mmap_data |= attr.mmap_data;
    all.mmap2 |= attr.mmap2;
    all.build_id |= attr.build_id;
    all.comm |= attr.comm;
    all.comm_exec |= attr.comm_exec;
    all.task |= attr.task;
    all.context_switch |= attr.context_switch;
    all.namespaces |= attr.namespaces;
    all.cgroup |= attr.cgroup;
    all.ksymbol |= attr.ksymbol;
    all.bpf_event |= attr.bpf_event;
    all.text_poke |= attr.text_poke;
  }
  return all;
}

void without_side_band(perf_event_attr& attr) {
  attr.mmap = attr.mmap_data = attr.mmap2 = attr.build_id = 0;
  attr.comm = attr.comm_exec = attr.task = attr.context_switch = 0;
  attr.namespaces = attr.cgroup = attr.ksymbol = attr.bpf_event = attr.text_poke = 0;
}

void compare(const std::string& name, const perf_event_attr& perfs, const perf_event_attr& ours,
             std::vector<std::string>& differences) {
  using Words = std::array<std::uint64_t, sizeof(perf_event_attr) / sizeof(std::uint64_t)>;
  Words one{};
  Words other{};
  std::memcpy(one.data(), &perfs, sizeof one);
  std::memcpy(other.data(), &ours, sizeof other);
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (one.at(i) != other.at(i)) {
      differences.push_back(fmt::format("{}: word {} of perf_event_attr: {:#x}, {:#x}", name, i,
                                        one.at(i), other.at(i)));
    }
  }
}

// Changes PERFS to what it has to be in a recording of ours.
void expect_changes(perf_event_attr& perfs, const perf_event_attr& ours, bool copies) {
  // CLOCK_MONOTONIC, unless another clock was asked for: frames are read at times of that clock.
  if (perfs.use_clockid == 0) {
    perfs.use_clockid = 1;
    perfs.clockid = CLOCK_MONOTONIC;
  }
  // Post-processing replaces copied stacks by callchains.
  constexpr std::uint64_t kCopied = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  if ((perfs.sample_type & kCopied) == kCopied) {
    perfs.sample_type &= ~kCopied;
    perfs.sample_regs_user = perfs.sample_stack_user = 0;
    perfs.exclude_callchain_user = 0;
  } else if ((perfs.sample_type & PERF_SAMPLE_CALLCHAIN) == 0) {
    // No call graph was asked for: the tool chooses the kernel's part, or frame pointers.
    perfs.exclude_callchain_user = ours.exclude_callchain_user;
    // perf obeys --user-callchains only in events with callchains.
    perfs.exclude_callchain_kernel = ours.exclude_callchain_kernel;
    if (copies) {  // as perf does for --call-graph dwarf
      perfs.sample_type |= ours.sample_type & (PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_SRC);
    }
  }
  perfs.sample_type |= PERF_SAMPLE_CALLCHAIN;
  // Samples without times could not be matched with stacks (--per-thread).
  perfs.sample_type |= PERF_SAMPLE_TIME;
  // There is a second event, so samples have ids: perf chooses which.
  constexpr std::uint64_t kIds = PERF_SAMPLE_ID | PERF_SAMPLE_IDENTIFIER;
  perfs.sample_type = (perfs.sample_type & ~kIds) | (ours.sample_type & kIds);
}

}  // namespace

std::vector<std::string> attribute_differences(const std::string& perfs, const std::string& ours,
                                               bool copies) {
  auto expected = events_in(perfs);
  auto events = events_in(ours);
  std::vector<std::string> differences;
  auto asked = side_band(expected);
  const auto got = side_band(events);
  if (copies) {
    asked.mmap_data = got.mmap_data;
  }
  compare("side-band records of all events", asked, got, differences);

  // The tool adds an event for side-band records, which is on before the others.
  std::erase_if(expected, [](const Event& event) { return event.is_dummy(); });
  std::erase_if(events, [](const Event& event) { return event.is_dummy(); });
  if (expected.size() != events.size()) {
    differences.push_back(fmt::format("{} events, {}", expected.size(), events.size()));
    return differences;
  }
  for (std::size_t i = 0; i < events.size(); ++i) {
    auto& attr = expected[i].attr;
    without_side_band(attr);
    without_side_band(events[i].attr);
    expect_changes(attr, events[i].attr, copies);
    compare(events[i].name, attr, events[i].attr, differences);
    if (expected[i].name != events[i].name) {
      differences.push_back(fmt::format("{}, {}", expected[i].name, events[i].name));
    }
  }
  return differences;
}

}  // namespace pyinject::test
