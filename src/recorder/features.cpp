#include "recorder/features.hpp"

#include "base/file.hpp"
#include "base/host_name.hpp"
#include "base/text.hpp"
#include "perfdata/build_id_table.hpp"
#include "perfdata/file_header.hpp"
#include "procfs/machine_facts.hpp"
#include "pyinject/version.hpp"
#include "recorder/contents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>

#include <sys/utsname.h>
#include <unistd.h>

namespace pyinject::recorder {

namespace {

// linux, tools/perf/util/header.h, HEADER_*.
enum Bit : unsigned {
  kHostName = 3,
  kRelease = 4,
  kVersion = 5,
  kMachine = 6,
  kProcessors = 7,
  kProcessor = 8,
  kProcessorId = 9,
  kMemory = 10,
  kCommandLine = 11,
  kTopology = 13,
  kSampleTime = 21,
  kClock = 23,
};

FeatureContents text_feature(unsigned bit, std::string_view text) {
  Contents contents;
  contents.padded(text);
  return {.bit = bit, .bytes = contents.take()};
}

FeatureContents describe_events(std::span<const OpenEvent> events) {
  Contents contents;
  contents.number(static_cast<std::uint32_t>(events.size()));
  contents.number(static_cast<std::uint32_t>(sizeof(perf_event_attr)));
  for (const auto& event : events) {
    contents.number(event.attr);
    contents.number(static_cast<std::uint32_t>(event.ids.size()));
    contents.padded(event.name);
    contents.append(std::as_bytes(std::span{event.ids}));
  }
  return {.bit = perfdata::kFeatureEventDescription, .bytes = contents.take()};
}

FeatureContents command_line(std::span<const std::string> words) {
  Contents contents;
  contents.number(static_cast<std::uint32_t>(words.size()));
  for (const auto& word : words) {
    contents.padded(word);
  }
  return {.bit = kCommandLine, .bytes = contents.take()};
}

std::string topology_of(int cpu, const char* name) {
  const auto text =
      base::read_file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/{}", cpu, name));
  return text ? std::string{base::trim(*text)} : "";
}

FeatureContents topology(int processors) {
  std::set<std::string> cores;
  std::set<std::string> threads;
  for (int cpu = 0; cpu < processors; ++cpu) {
    cores.insert(topology_of(cpu, "core_siblings_list"));
    threads.insert(topology_of(cpu, "thread_siblings_list"));
  }
  Contents contents;
  for (auto* const lists : {&cores, &threads}) {
    lists->erase("");
    contents.number(static_cast<std::uint32_t>(lists->size()));
    std::ranges::for_each(*lists, [&contents](const auto& list) { contents.padded(list); });
  }
  for (int cpu = 0; cpu < processors; ++cpu) {
    for (const auto* const name : {"core_id", "physical_package_id"}) {
      contents.number(base::parse_number<std::int32_t>(topology_of(cpu, name)).value_or(0));
    }
  }
  return {.bit = kTopology, .bytes = contents.take()};
}

FeatureContents times(const RecordingFacts& facts) {
  Contents contents;
  contents.number(facts.first_time);
  contents.number(facts.last_time);
  return {.bit = kSampleTime, .bytes = contents.take()};
}

void add_clock(const RecordingFacts& facts, std::vector<FeatureContents>& features) {
  if (!facts.clock) {
    return;
  }
  timespec resolution{};
  ::clock_getres(*facts.clock, &resolution);
  Contents clock;
  clock.number(static_cast<std::uint64_t>(resolution.tv_nsec));
  features.push_back({.bit = kClock, .bytes = clock.take()});
  Contents data;
  data.number(std::uint32_t{1});
  data.number(static_cast<std::uint32_t>(*facts.clock));
  data.number(facts.begin.wall_time);
  data.number(facts.begin.clock_time);
  features.push_back({.bit = perfdata::kFeatureClockData, .bytes = data.take()});
}

void add_machine(std::vector<FeatureContents>& features) {
  utsname names{};
  ::uname(&names);
  features.push_back(text_feature(kHostName, base::host_name()));
  features.push_back(text_feature(kRelease, names.release));
  features.push_back(text_feature(kVersion, "perf-pyinject " PYINJECT_VERSION));
  features.push_back(text_feature(kMachine, names.machine));
  const auto all = static_cast<std::uint32_t>(std::max(::sysconf(_SC_NPROCESSORS_CONF), 1L));
  Contents processors;
  processors.number(all);
  processors.number(static_cast<std::uint32_t>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L)));
  features.push_back({.bit = kProcessors, .bytes = processors.take()});
  const auto machine = procfs::read_machine_facts();
  if (!machine.processor.empty()) {
    features.push_back(text_feature(kProcessor, machine.processor));
    features.push_back(text_feature(kProcessorId, machine.processor_id));
  }
  if (machine.memory_kilobytes != 0) {
    Contents contents;
    contents.number(machine.memory_kilobytes);
    features.push_back({.bit = kMemory, .bytes = contents.take()});
  }
  features.push_back(topology(static_cast<int>(all)));
}

FeatureContents build_ids(const std::vector<perfdata::BuildId>& ids) {
  Contents contents;
  std::vector<std::byte> one;
  for (const auto& id : ids) {
    perfdata::make_build_id(id, one);
    contents.append(one);
  }
  return {.bit = perfdata::kFeatureBuildId, .bytes = contents.take()};
}

}  // namespace

std::vector<FeatureContents> make_features(const RecordingFacts& facts) {
  std::vector<FeatureContents> features;
  add_machine(features);
  features.push_back(command_line(facts.command_line));
  features.push_back(describe_events(facts.events));
  features.push_back(times(facts));
  add_clock(facts, features);
  if (!facts.build_ids.empty()) {
    features.push_back(build_ids(facts.build_ids));
  }
  if (auto formats = tracing_data(facts.events); !formats.empty()) {
    features.push_back({.bit = perfdata::kFeatureTracingData, .bytes = std::move(formats)});
  }
  return features;
}

}  // namespace pyinject::recorder
