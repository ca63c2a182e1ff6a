#include "export/otlp.hpp"

#include "base/text.hpp"
#include "export/event_values.hpp"
#include "export/otlp_dictionary.hpp"
#include "export/otlp_fields.hpp"
#include "pyinject/export/formats.hpp"
#include "pyinject/version.hpp"
#include "report/clock.hpp"
#include "report/marks.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <protozero/pbf_writer.hpp>

namespace pyinject::exports {

namespace {

using protozero::pbf_writer;
using report::Profile;
using report::Unit;

// Samples of one thread with the same stack and marks.
struct Observations {
  std::vector<std::int64_t> values;
  std::vector<std::uint64_t> times;  // by CLOCK_REALTIME; empty: unknown
};

// How samples of an event are written. Receivers accept several values in one sample only for
// waits (Grafana Pyroscope, pkg/ingester/otlp/convert.go, 2026).
enum class Shape {
  kCounted,  // times; each stands for the period of the profile
  kWaits,    // a time and a length each
  kSums,     // one sum, no times: periods differ
};

std::int64_t to_signed(std::uint64_t number) {
  return static_cast<std::int64_t>(
      std::min<std::uint64_t>(number, std::numeric_limits<std::int64_t>::max()));
}

class OtlpWriter {
 public:
  OtlpWriter(const Profile& profile, std::span<const ResourceAttribute> resource,
             const ProfileId& id)
      : profile_{profile},
        resource_{resource},
        id_{id},
        dictionary_{profile, stacks_},
        values_{values_of_events(profile)} {}

  [[nodiscard]] std::string write();

 private:
  using Key = std::array<std::uint32_t, 3>;  // thread, stack, marks
  using Groups = std::map<Key, Observations>;
  struct Summary {
    std::uint64_t count = 0;
    std::uint64_t sum = 0;
    bool same_periods = true;
  };

  void write_resource(pbf_writer& out) const;
  void write_profile(pbf_writer& out, std::uint32_t event);
  void write_type(pbf_writer& profile, protozero::pbf_tag_type tag, std::string_view type,
                  std::string_view unit);
  void write_header(pbf_writer& profile, std::uint32_t event, Shape shape, const Summary& summary);
  void write_id(pbf_writer& profile, std::uint32_t event) const;
  void write_sample(pbf_writer& profile, const Key& key, const Observations& observations,
                    Shape shape);
  [[nodiscard]] std::vector<std::uint32_t> attributes_of(const Key& key);
  [[nodiscard]] Summary summary_of(std::uint32_t event) const;
  [[nodiscard]] Groups groups_of(std::uint32_t event) const;

  const Profile& profile_;
  std::span<const ResourceAttribute> resource_;
  ProfileId id_;
  report::UnmarkedStacks stacks_{profile_};
  OtlpDictionary dictionary_;
  std::vector<EventValues> values_;
};

void write_attribute(pbf_writer& resource, const std::string& key, const std::string& value) {
  pbf_writer attribute{resource, otlp::resource::kAttributes};
  attribute.add_string(otlp::key_value::kKey, key);
  pbf_writer{attribute, otlp::key_value::kValue}.add_string(otlp::any_value::kString,
                                                            base::printable(value));
}

void OtlpWriter::write_resource(pbf_writer& out) const {
  pbf_writer resource{out, otlp::resource_profiles::kResource};
  for (const auto& [key, value] : resource_) {
    write_attribute(resource, key, value);
  }
  constexpr std::string_view kService = "service.name";
  const auto& threads = profile_.threads;
  const bool one_name = !threads.empty() && !threads.front().process.empty() &&
                        std::ranges::all_of(threads, [&](const report::Thread& thread) {
                          return thread.process == threads.front().process;
                        });
  if (one_name &&
      std::ranges::find(resource_, kService, &ResourceAttribute::key) == resource_.end()) {
    write_attribute(resource, std::string{kService}, threads.front().process);
  }
}

void OtlpWriter::write_type(pbf_writer& profile, protozero::pbf_tag_type tag, std::string_view type,
                            std::string_view unit) {
  pbf_writer value{profile, tag};
  value.add_uint32(otlp::value_type::kType, dictionary_.string(type));
  value.add_uint32(otlp::value_type::kUnit, dictionary_.string(unit));
}

void OtlpWriter::write_header(pbf_writer& profile, std::uint32_t event, Shape shape,
                              const Summary& summary) {
  const auto& value = values_[event];
  if (shape == Shape::kWaits) {
    write_type(profile, otlp::profile::kSampleType, "off_cpu", "nanoseconds");
  } else if (shape == Shape::kCounted) {
    write_type(profile, otlp::profile::kSampleType, "samples", "count");
  } else {
    write_type(profile, otlp::profile::kSampleType, value.sum, value.unit);
  }
  const auto& samples = profile_.samples;
  if (const auto begin = wall_time(profile_.clock, samples.front().time)) {
    profile.add_fixed64(otlp::profile::kTime, *begin);
  }
  // The last sample is before the end.
  profile.add_uint64(otlp::profile::kDuration, samples.back().time - samples.front().time + 1);
  if (shape != Shape::kWaits) {
    write_type(profile, otlp::profile::kPeriodType, value.sum, value.unit);
    profile.add_int64(otlp::profile::kPeriod, to_signed(summary.sum / summary.count));
  }
}

// IDs differ by the event.
void OtlpWriter::write_id(pbf_writer& profile, std::uint32_t event) const {
  if (id_ == ProfileId{}) {
    return;
  }
  auto id = id_;
  id.back() ^= static_cast<unsigned char>(event);
  id[id.size() - 2] ^= static_cast<unsigned char>(event >> 8U);
  profile.add_bytes(otlp::profile::kId, reinterpret_cast<const char*>(id.data()), id.size());
}

std::vector<std::uint32_t> OtlpWriter::attributes_of(const Key& key) {
  const auto& thread = profile_.threads[key[0]];
  const auto& marks = stacks_.all_marks()[key[2]];
  std::vector<std::uint32_t> attributes{
      dictionary_.attribute("process.pid", thread.pid),
      dictionary_.attribute("process.executable.name", thread.process),
      dictionary_.attribute("thread.id", thread.tid),
      dictionary_.attribute("thread.name", thread.name),
      dictionary_.attribute("pyinject.task", marks.task_or_greenlet()),
      dictionary_.attribute("pyinject.gil", marks.gil),
      dictionary_.attribute("pyinject.wait", marks.wait)};
  std::erase(attributes, 0U);
  return attributes;
}

void OtlpWriter::write_sample(pbf_writer& profile, const Key& key, const Observations& observations,
                              Shape shape) {
  const auto attributes = attributes_of(key);
  const auto stack = dictionary_.stack(key[1]);
  pbf_writer sample{profile, otlp::profile::kSamples};
  if (stack != 0) {
    sample.add_uint32(otlp::sample::kStack, stack);
  }
  sample.add_packed_uint32(otlp::sample::kAttributes, attributes.begin(), attributes.end());
  const auto& [values, times] = observations;
  if (shape == Shape::kSums || times.empty()) {
    std::uint64_t sum = shape == Shape::kCounted ? values.size() : 0;
    for (const auto value : values) {
      sum += shape == Shape::kCounted ? 0 : static_cast<std::uint64_t>(value);
      sum = std::min<std::uint64_t>(sum, std::numeric_limits<std::int64_t>::max());
    }
    const auto total = to_signed(sum);
    sample.add_packed_int64(otlp::sample::kValues, &total, &total + 1);
    return;
  }
  if (shape == Shape::kWaits) {
    sample.add_packed_int64(otlp::sample::kValues, values.begin(), values.end());
  }
  sample.add_packed_fixed64(otlp::sample::kTimestamps, times.begin(), times.end());
}

OtlpWriter::Summary OtlpWriter::summary_of(std::uint32_t event) const {
  Summary summary;
  std::optional<std::uint64_t> first;
  for (const auto& sample : profile_.samples) {
    if (sample.event == event) {
      summary.same_periods = sample.period == first.value_or(sample.period) && summary.same_periods;
      first = sample.period;
      summary.sum +=
          std::min(sample.period, std::numeric_limits<std::uint64_t>::max() - summary.sum);
      ++summary.count;
    }
  }
  return summary;
}

OtlpWriter::Groups OtlpWriter::groups_of(std::uint32_t event) const {
  Groups groups;
  for (const auto& sample : profile_.samples) {
    if (sample.event != event) {
      continue;
    }
    auto& group = groups[{sample.thread, stacks_.node(sample.stack), stacks_.marks(sample.stack)}];
    group.values.push_back(to_signed(sample.period));
    if (const auto time = wall_time(profile_.clock, sample.time)) {
      group.times.push_back(*time);
    }
  }
  return groups;
}

void OtlpWriter::write_profile(pbf_writer& out, std::uint32_t event) {
  const auto summary = summary_of(event);
  if (summary.count == 0) {
    return;
  }
  auto shape = Shape::kSums;
  if (profile_.events[event].unit == Unit::kWaits) {
    shape = Shape::kWaits;
  } else if (profile_.events[event].unit == Unit::kNanoseconds && summary.same_periods) {
    shape = Shape::kCounted;
  }
  pbf_writer profile{out, otlp::scope_profiles::kProfiles};
  write_header(profile, event, shape, summary);
  write_id(profile, event);
  for (const auto& [key, observations] : groups_of(event)) {
    write_sample(profile, key, observations, shape);
  }
}

std::string OtlpWriter::write() {
  std::string data;
  pbf_writer request{data};
  {
    pbf_writer of_resource{request, otlp::request::kResourceProfiles};
    write_resource(of_resource);
    pbf_writer of_scope{of_resource, otlp::resource_profiles::kScopeProfiles};
    {
      pbf_writer scope{of_scope, otlp::scope_profiles::kScope};
      scope.add_string(otlp::scope::kName, "perf-pyinject");
      scope.add_string(otlp::scope::kVersion, PYINJECT_VERSION);
    }
    for (std::uint32_t event = 0; event < profile_.events.size(); ++event) {
      write_profile(of_scope, event);
    }
  }
  {
    pbf_writer dictionary{request, otlp::request::kDictionary};
    dictionary_.write(dictionary);
  }
  return data;
}

}  // namespace

std::string otlp_request(const Profile& profile, std::span<const ResourceAttribute> resource,
                         const ProfileId& id) {
  return OtlpWriter{profile, resource, id}.write();
}

void write_otlp(const Profile& profile, const Sink& out) { out(otlp_request(profile, {})); }

}  // namespace pyinject::exports
