#include "base/text.hpp"
#include "export/perfetto_fields.hpp"
#include "export/perfetto_stacks.hpp"
#include "export/thread_states.hpp"
#include "pyinject/export/formats.hpp"
#include "report/clock.hpp"
#include "report/marks.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <protozero/pbf_writer.hpp>

namespace pyinject::exports {

namespace {

using protozero::pbf_writer;
using report::Profile;
using report::Unit;
namespace packet_field = perfetto::packet;

struct PerfCounter {
  std::string_view name;
  std::uint32_t counter;  // PerfEvents.Counter
};
constexpr auto kPerfCounters = std::to_array<PerfCounter>({{"cpu-clock", 1},
                                                           {"page-faults", 2},
                                                           {"task-clock", 3},
                                                           {"context-switches", 4},
                                                           {"cpu-migrations", 5},
                                                           {"minor-faults", 6},
                                                           {"major-faults", 7},
                                                           {"cycles", 10},
                                                           {"cpu-cycles", 10},
                                                           {"instructions", 11},
                                                           {"cache-references", 12},
                                                           {"cache-misses", 13},
                                                           {"branches", 14},
                                                           {"branch-misses", 15}});

// By StateKind.
constexpr std::array<const char*, kStateKinds> kTrackNames{"GIL", "Tasks", "GC", "Waits"};

std::uint32_t clock_id(const report::Clock& clock) {
  switch (clock.id.value_or(-1)) {
    case CLOCK_REALTIME:
      return perfetto::clock_snapshot::kRealtime;
    case CLOCK_MONOTONIC:
      return perfetto::clock_snapshot::kMonotonic;
    case CLOCK_MONOTONIC_RAW:
      return perfetto::clock_snapshot::kMonotonicRaw;
    case CLOCK_BOOTTIME:
      return perfetto::clock_snapshot::kBoottime;
    default:
      return perfetto::clock_snapshot::kPerf;
  }
}

// Packets with the same interned data and defaults.
struct Sequence {
  std::uint32_t id = 0;
  PerfettoStacks stacks;
  std::uint64_t counter = 0;  // the sum of all periods so far
};

class PerfettoWriter {
 public:
  PerfettoWriter(const Profile& profile, const Sink& out) : profile_{profile}, out_{out} {}

  void write();

 private:
  using ThreadId = std::pair<std::uint32_t, std::uint32_t>;  // pid, tid
  struct ThreadTrack {
    std::uint64_t uuid = 0;
    std::string name;
    ThreadStates states;
  };

  // FILL adds fields to a packet of SEQUENCE at TIME.
  template <typename Fill>
  void packet(std::uint32_t sequence, std::uint64_t time, std::uint32_t flags, const Fill& fill);
  void write_clocks();
  void begin_sequences();
  void write_defaults(std::uint32_t sequence, const report::Event* event);
  void take_threads();
  void write_sample(const report::Sample& sample);
  void write_process(std::uint32_t pid, const std::string& name);
  void write_thread(const ThreadId& id, const ThreadTrack& thread);
  void write_tracks();
  void write_states(const ThreadTrack& thread, std::size_t kind);
  void write_slice(std::uint64_t track, const State& state, std::uint64_t end);
  void write_track(std::uint64_t uuid, std::uint64_t parent, const char* name);
  void flush(std::size_t most);

  const Profile& profile_;
  const Sink& out_;
  report::UnmarkedStacks stacks_{profile_};
  std::uint64_t interval_ = interval_of(profile_);
  std::uint64_t begin_ = 0;
  std::string data_;
  std::uint64_t tracks_ = 0;
  std::vector<Sequence> sequences_;  // of slices, then of each event
  std::map<std::uint32_t, std::string> processes_;
  std::map<ThreadId, ThreadTrack> threads_;
};

void PerfettoWriter::flush(std::size_t most) {
  if (data_.size() > most) {
    out_(data_);
    data_.clear();
  }
}

template <typename Fill>
void PerfettoWriter::packet(std::uint32_t sequence, std::uint64_t time, std::uint32_t flags,
                            const Fill& fill) {
  constexpr std::size_t kPiece = std::size_t{256} << 10U;
  {
    pbf_writer trace{data_};
    pbf_writer message{trace, perfetto::kPacket};
    message.add_uint64(packet_field::kTimestamp, time);
    message.add_uint32(packet_field::kSequence, sequence);
    message.add_uint32(packet_field::kSequenceFlags, flags);
    fill(message);
  }
  flush(kPiece);
}

void PerfettoWriter::write_clocks() {
  const auto id = clock_id(profile_.clock);
  packet(1, begin_, packet_field::kStateCleared, [&](pbf_writer& message) {
    message.add_uint32(packet_field::kTimestampClock, id);
    pbf_writer snapshot{message, packet_field::kClockSnapshot};
    const auto add = [&](std::uint32_t clock, std::uint64_t time) {
      pbf_writer entry{snapshot, perfetto::clock_snapshot::kClocks};
      entry.add_uint32(perfetto::clock_snapshot::kClockId, clock);
      entry.add_uint64(perfetto::clock_snapshot::kClockTime, time);
    };
    add(id, begin_);
    if (const auto wall = wall_time(profile_.clock, begin_);
        wall && id != perfetto::clock_snapshot::kRealtime) {
      add(perfetto::clock_snapshot::kRealtime, *wall);
    }
    snapshot.add_uint32(perfetto::clock_snapshot::kPrimary, id);
  });
}

// EVENT: null for slices.
void PerfettoWriter::write_defaults(std::uint32_t sequence, const report::Event* event) {
  packet(sequence, begin_, packet_field::kStateCleared, [&](pbf_writer& message) {
    pbf_writer defaults{message, packet_field::kDefaults};
    defaults.add_uint32(perfetto::defaults::kTimestampClock, clock_id(profile_.clock));
    if (event == nullptr) {
      return;
    }
    pbf_writer samples{defaults, perfetto::defaults::kPerfSample};
    pbf_writer timebase{samples, perfetto::perf_sample_defaults::kTimebase};
    const auto known = std::ranges::find(kPerfCounters, event->name, &PerfCounter::name);
    if (known != kPerfCounters.end()) {
      timebase.add_enum(perfetto::timebase::kCounter, static_cast<std::int32_t>(known->counter));
    } else {
      timebase.add_message(perfetto::timebase::kRawEvent, std::string{});
    }
    timebase.add_string(perfetto::timebase::kName, event->name);
  });
}

void PerfettoWriter::begin_sequences() {
  sequences_.reserve(profile_.events.size() + 1);
  for (std::size_t i = 0; i <= profile_.events.size(); ++i) {
    const auto id = static_cast<std::uint32_t>(i + 1);
    sequences_.push_back({.id = id, .stacks = {profile_, stacks_}});
    const auto* const event = i == 0 ? nullptr : &profile_.events[i - 1];
    if (event == nullptr || event->unit != Unit::kWaits) {
      write_defaults(id, event);
    }
  }
}

void PerfettoWriter::take_threads() {
  for (const auto& thread : profile_.threads) {
    auto& process = processes_[thread.pid];
    process = thread.process.empty() ? process : thread.process;
    const auto [entry, fresh] =
        threads_.try_emplace({thread.pid, thread.tid},
                             ThreadTrack{.uuid = 0, .name = {}, .states = ThreadStates{interval_}});
    entry->second.name = thread.name;  // the latest one
  }
}

void PerfettoWriter::write_sample(const report::Sample& sample) {
  const auto& thread = profile_.threads[sample.thread];
  const auto unit = profile_.events[sample.event].unit;
  threads_.at({thread.pid, thread.tid})
      .states.add(sample, unit, stacks_.all_marks()[stacks_.marks(sample.stack)],
                  stacks_.collects(sample.stack));
  if (unit == Unit::kWaits) {
    return;
  }
  auto& sequence = sequences_[sample.event + std::size_t{1}];
  sequence.counter +=
      std::min(sample.period, std::numeric_limits<std::uint64_t>::max() - sequence.counter);
  packet(sequence.id, sample.time, packet_field::kNeedsState, [&](pbf_writer& message) {
    const auto callstack = sequence.stacks.write(message, stacks_.node(sample.stack));
    pbf_writer fields{message, packet_field::kPerfSample};
    fields.add_uint32(perfetto::perf_sample::kPid, thread.pid);
    fields.add_uint32(perfetto::perf_sample::kTid, thread.tid);
    if (callstack != 0) {
      fields.add_uint64(perfetto::perf_sample::kCallstack, callstack);
    }
    fields.add_uint64(perfetto::perf_sample::kTimebaseCount, sequence.counter);
  });
}

void PerfettoWriter::write_track(std::uint64_t uuid, std::uint64_t parent, const char* name) {
  packet(1, begin_, packet_field::kNeedsState, [&](pbf_writer& message) {
    pbf_writer track{message, packet_field::kTrackDescriptor};
    track.add_uint64(perfetto::track::kUuid, uuid);
    track.add_uint64(perfetto::track::kParent, parent);
    track.add_string(perfetto::track::kName, name);
  });
}

void PerfettoWriter::write_slice(std::uint64_t track, const State& state, std::uint64_t end) {
  packet(1, state.begin, packet_field::kNeedsState, [&](pbf_writer& message) {
    const auto callstack = sequences_.front().stacks.write(message, stacks_.node(state.stack));
    pbf_writer slice{message, packet_field::kTrackEvent};
    slice.add_enum(perfetto::track_event::kType, perfetto::track_event::kSliceBegin);
    slice.add_uint64(perfetto::track_event::kTrack, track);
    slice.add_string(perfetto::track_event::kCategory, "python");
    slice.add_string(perfetto::track_event::kName, state.name);
    if (state.samples != 0) {
      pbf_writer seen{slice, perfetto::track_event::kDebugAnnotation};
      seen.add_string(perfetto::debug_annotation::kName, "seen in");
      seen.add_string(perfetto::debug_annotation::kString, base::counted(state.samples, "sample"));
    }
    if (callstack != 0) {
      slice.add_uint64(perfetto::track_event::kCallstack, callstack);
    }
  });
  packet(1, end, packet_field::kNeedsState, [&](pbf_writer& message) {
    pbf_writer slice{message, packet_field::kTrackEvent};
    slice.add_enum(perfetto::track_event::kType, perfetto::track_event::kSliceEnd);
    slice.add_uint64(perfetto::track_event::kTrack, track);
  });
}

// Slices of one track must not overlap, thus each kind has its own.
void PerfettoWriter::write_states(const ThreadTrack& thread, std::size_t kind) {
  const auto& states = thread.states.of(static_cast<StateKind>(kind));
  if (states.empty()) {
    return;
  }
  const auto track = ++tracks_;
  write_track(track, thread.uuid, kTrackNames.at(kind));
  for (std::size_t i = 0; i < states.size(); ++i) {
    auto end = states[i].end;
    // A sample stands for an interval: a state that one sample shows has a length, too.
    if (const auto is = static_cast<StateKind>(kind);
        is == StateKind::kGil || is == StateKind::kTask) {
      end = std::max(end, end + interval_);
      end = i + 1 < states.size() ? std::min(end, states[i + 1].begin) : end;
    }
    write_slice(track, states[i], end);
  }
}

void PerfettoWriter::write_process(std::uint32_t pid, const std::string& name) {
  packet(1, begin_, packet_field::kNeedsState, [&](pbf_writer& message) {
    pbf_writer track{message, packet_field::kTrackDescriptor};
    track.add_uint64(perfetto::track::kUuid, ++tracks_);
    pbf_writer process{track, perfetto::track::kProcess};
    process.add_uint32(perfetto::process::kPid, pid);
    process.add_string(perfetto::process::kName, name);
  });
}

void PerfettoWriter::write_thread(const ThreadId& id, const ThreadTrack& thread) {
  packet(1, begin_, packet_field::kNeedsState, [&](pbf_writer& message) {
    pbf_writer track{message, packet_field::kTrackDescriptor};
    track.add_uint64(perfetto::track::kUuid, thread.uuid);
    pbf_writer fields{track, perfetto::track::kThread};
    fields.add_uint32(perfetto::thread::kPid, id.first);
    fields.add_uint32(perfetto::thread::kTid, id.second);
    fields.add_string(perfetto::thread::kName, thread.name);
  });
}

void PerfettoWriter::write_tracks() {
  for (const auto& [pid, name] : processes_) {
    write_process(pid, name);
  }
  for (auto& [id, thread] : threads_) {
    thread.uuid = ++tracks_;
    write_thread(id, thread);
  }
}

void PerfettoWriter::write() {
  if (profile_.samples.empty()) {
    return;
  }
  begin_ = profile_.samples.front().time;
  write_clocks();
  begin_sequences();
  take_threads();
  write_tracks();
  for (const auto& sample : profile_.samples) {
    write_sample(sample);
  }
  for (const auto& [id, thread] : threads_) {
    for (std::size_t kind = 0; kind < kStateKinds; ++kind) {
      write_states(thread, kind);
    }
  }
  flush(0);
}

}  // namespace

void write_perfetto(const Profile& profile, const Sink& out) {
  PerfettoWriter{profile, out}.write();
}

}  // namespace pyinject::exports
