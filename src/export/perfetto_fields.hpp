// Numbers of the fields of Perfetto's traces, from Perfetto v58.2: protos/perfetto/trace/
// trace.proto, trace_packet.proto, trace_packet_defaults.proto, clock_snapshot.proto,
// interned_data/interned_data.proto, profiling/profile_common.proto,
// profiling/profile_packet.proto, track_event/{track_descriptor, process_descriptor,
// thread_descriptor, track_event, debug_annotation}.proto;
// protos/perfetto/common/perf_events.proto.
#pragma once

#include <cstdint>

#include <protozero/types.hpp>

namespace pyinject::exports::perfetto {

constexpr protozero::pbf_tag_type kPacket = 1;  // of Trace

namespace packet {
constexpr protozero::pbf_tag_type kClockSnapshot = 6;
constexpr protozero::pbf_tag_type kTimestamp = 8;
constexpr protozero::pbf_tag_type kSequence = 10;  // trusted_packet_sequence_id
constexpr protozero::pbf_tag_type kTrackEvent = 11;
constexpr protozero::pbf_tag_type kInternedData = 12;
constexpr protozero::pbf_tag_type kSequenceFlags = 13;
constexpr protozero::pbf_tag_type kTimestampClock = 58;
constexpr protozero::pbf_tag_type kDefaults = 59;
constexpr protozero::pbf_tag_type kTrackDescriptor = 60;
constexpr protozero::pbf_tag_type kPerfSample = 66;
constexpr std::uint32_t kStateCleared = 1;  // of kSequenceFlags: the first packet
constexpr std::uint32_t kNeedsState = 2;
}  // namespace packet
namespace defaults {
constexpr protozero::pbf_tag_type kPerfSample = 12;
constexpr protozero::pbf_tag_type kTimestampClock = 58;
}  // namespace defaults
namespace perf_sample_defaults {
constexpr protozero::pbf_tag_type kTimebase = 1;
}  // namespace perf_sample_defaults
namespace timebase {
constexpr protozero::pbf_tag_type kCounter = 4;
constexpr protozero::pbf_tag_type kRawEvent = 5;
constexpr protozero::pbf_tag_type kName = 10;
}  // namespace timebase
namespace clock_snapshot {
constexpr protozero::pbf_tag_type kClocks = 1;
constexpr protozero::pbf_tag_type kPrimary = 2;
constexpr protozero::pbf_tag_type kClockId = 1;    // of an entry
constexpr protozero::pbf_tag_type kClockTime = 2;  // likewise
// BuiltinClock.
constexpr std::uint32_t kRealtime = 1;
constexpr std::uint32_t kMonotonic = 3;
constexpr std::uint32_t kMonotonicRaw = 5;
constexpr std::uint32_t kBoottime = 6;
constexpr std::uint32_t kPerf = 10;
}  // namespace clock_snapshot
namespace interned {
constexpr protozero::pbf_tag_type kFunctionNames = 5;
constexpr protozero::pbf_tag_type kFrames = 6;
constexpr protozero::pbf_tag_type kCallstacks = 7;
constexpr protozero::pbf_tag_type kBuildIds = 16;
constexpr protozero::pbf_tag_type kMappingPaths = 17;
constexpr protozero::pbf_tag_type kSourcePaths = 18;
constexpr protozero::pbf_tag_type kMappings = 19;
constexpr protozero::pbf_tag_type kId = 1;    // iid, of all of them
constexpr protozero::pbf_tag_type kText = 2;  // of an InternedString
}  // namespace interned
namespace mapping {
constexpr protozero::pbf_tag_type kBuildId = 2;
constexpr protozero::pbf_tag_type kPath = 7;
}  // namespace mapping
namespace frame {
constexpr protozero::pbf_tag_type kFunctionName = 2;
constexpr protozero::pbf_tag_type kMapping = 3;
constexpr protozero::pbf_tag_type kRelativePc = 4;
constexpr protozero::pbf_tag_type kSourcePath = 5;
constexpr protozero::pbf_tag_type kLine = 6;
constexpr protozero::pbf_tag_type kKind = 7;
constexpr std::uint32_t kNative = 1;
constexpr std::uint32_t kKernel = 2;
constexpr std::uint32_t kInterpreted = 3;
}  // namespace frame
namespace callstack {
constexpr protozero::pbf_tag_type kFrames = 2;  // the outermost first
}  // namespace callstack
namespace perf_sample {
constexpr protozero::pbf_tag_type kPid = 2;
constexpr protozero::pbf_tag_type kTid = 3;
constexpr protozero::pbf_tag_type kCallstack = 4;
constexpr protozero::pbf_tag_type kTimebaseCount = 6;
}  // namespace perf_sample
namespace track {
constexpr protozero::pbf_tag_type kUuid = 1;
constexpr protozero::pbf_tag_type kName = 2;
constexpr protozero::pbf_tag_type kProcess = 3;
constexpr protozero::pbf_tag_type kThread = 4;
constexpr protozero::pbf_tag_type kParent = 5;
}  // namespace track
namespace process {
constexpr protozero::pbf_tag_type kPid = 1;
constexpr protozero::pbf_tag_type kName = 6;
}  // namespace process
namespace thread {
constexpr protozero::pbf_tag_type kPid = 1;
constexpr protozero::pbf_tag_type kTid = 2;
constexpr protozero::pbf_tag_type kName = 5;
}  // namespace thread
namespace track_event {
constexpr protozero::pbf_tag_type kDebugAnnotation = 4;
constexpr protozero::pbf_tag_type kType = 9;
constexpr protozero::pbf_tag_type kTrack = 11;
constexpr protozero::pbf_tag_type kCategory = 22;
constexpr protozero::pbf_tag_type kName = 23;
constexpr protozero::pbf_tag_type kCallstack = 56;
constexpr std::uint32_t kSliceBegin = 1;
constexpr std::uint32_t kSliceEnd = 2;
}  // namespace track_event
namespace debug_annotation {
constexpr protozero::pbf_tag_type kString = 6;
constexpr protozero::pbf_tag_type kName = 10;
}  // namespace debug_annotation

}  // namespace pyinject::exports::perfetto
