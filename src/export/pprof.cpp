#include "export/deflate.hpp"
#include "export/event_values.hpp"
#include "export/intern_table.hpp"
#include "pyinject/export/formats.hpp"
#include "report/clock.hpp"
#include "report/machinery.hpp"
#include "report/marks.hpp"
#include "report/names.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <protozero/pbf_writer.hpp>

namespace pyinject::exports {

namespace {

using protozero::pbf_writer;
using report::Profile;

// Numbers of the fields, from proto/profile.proto.
namespace field {
namespace profile {
constexpr protozero::pbf_tag_type kSampleType = 1;
constexpr protozero::pbf_tag_type kSample = 2;
constexpr protozero::pbf_tag_type kMapping = 3;
constexpr protozero::pbf_tag_type kLocation = 4;
constexpr protozero::pbf_tag_type kFunction = 5;
constexpr protozero::pbf_tag_type kStringTable = 6;
constexpr protozero::pbf_tag_type kTimeNanos = 9;
constexpr protozero::pbf_tag_type kDurationNanos = 10;
constexpr protozero::pbf_tag_type kPeriodType = 11;
constexpr protozero::pbf_tag_type kPeriod = 12;
constexpr protozero::pbf_tag_type kComment = 13;
constexpr protozero::pbf_tag_type kDefaultSampleType = 14;
}  // namespace profile
namespace value_type {
constexpr protozero::pbf_tag_type kType = 1;
constexpr protozero::pbf_tag_type kUnit = 2;
}  // namespace value_type
namespace sample {
constexpr protozero::pbf_tag_type kLocationId = 1;
constexpr protozero::pbf_tag_type kValue = 2;
constexpr protozero::pbf_tag_type kLabel = 3;
}  // namespace sample
namespace label {
constexpr protozero::pbf_tag_type kKey = 1;
constexpr protozero::pbf_tag_type kStr = 2;
constexpr protozero::pbf_tag_type kNum = 3;
}  // namespace label
namespace mapping {
constexpr protozero::pbf_tag_type kId = 1;
constexpr protozero::pbf_tag_type kMemoryStart = 2;
constexpr protozero::pbf_tag_type kMemoryLimit = 3;
constexpr protozero::pbf_tag_type kFilename = 5;
constexpr protozero::pbf_tag_type kBuildId = 6;
constexpr protozero::pbf_tag_type kHasFunctions = 7;
}  // namespace mapping
namespace location {
constexpr protozero::pbf_tag_type kId = 1;
constexpr protozero::pbf_tag_type kMappingId = 2;
constexpr protozero::pbf_tag_type kAddress = 3;
constexpr protozero::pbf_tag_type kLine = 4;
}  // namespace location
namespace line {
constexpr protozero::pbf_tag_type kFunctionId = 1;
constexpr protozero::pbf_tag_type kLine = 2;
}  // namespace line
namespace function {
constexpr protozero::pbf_tag_type kId = 1;
constexpr protozero::pbf_tag_type kName = 2;
constexpr protozero::pbf_tag_type kSystemName = 3;
constexpr protozero::pbf_tag_type kFilename = 4;
}  // namespace function
}  // namespace field

// The format's sums are signed; a file may claim any period. SUM is not negative.
std::int64_t saturated_sum(std::int64_t sum, std::uint64_t period) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const auto room = static_cast<std::uint64_t>(kMost - sum);
  return period > room ? kMost : sum + static_cast<std::int64_t>(period);
}

class PprofWriter {
 public:
  explicit PprofWriter(const Profile& profile)
      : profile_{profile}, values_{values_of_events(profile)}, uses_{profile} {}

  [[nodiscard]] std::string write();

 private:
  std::int64_t string(const std::string& text) { return strings_.number(text); }
  void write_type(protozero::pbf_tag_type tag, const std::string& type, const std::string& unit);
  void write_types();
  void write_samples();
  // Samples of one thread with the same stack, marks included, and use of time.
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::string_view>;
  void write_sample(const Key& key, const std::vector<std::int64_t>& values);
  void write_label(pbf_writer& sample, const std::string& key, const std::string& value);
  void write_label(pbf_writer& sample, const std::string& key, std::int64_t number);
  [[nodiscard]] std::vector<std::size_t> order_of_objects() const;
  void write_tables();
  void write_duration();

  const Profile& profile_;
  std::string data_;
  pbf_writer out_{data_};
  InternTable strings_{""};
  std::vector<EventValues> values_;
  report::Uses uses_;
};

void PprofWriter::write_type(protozero::pbf_tag_type tag, const std::string& type,
                             const std::string& unit) {
  pbf_writer value{out_, tag};
  value.add_int64(field::value_type::kType, string(type));
  value.add_int64(field::value_type::kUnit, string(unit));
}

void PprofWriter::write_types() {
  for (const auto& value : values_) {
    write_type(field::profile::kSampleType, value.count, "count");
    write_type(field::profile::kSampleType, value.sum, value.unit);
  }
  if (!values_.empty()) {
    write_type(field::profile::kPeriodType, values_.front().sum, values_.front().unit);
    out_.add_int64(field::profile::kDefaultSampleType, string(values_.front().sum));
  }
}

void PprofWriter::write_label(pbf_writer& sample, const std::string& key,
                              const std::string& value) {
  if (!value.empty()) {
    pbf_writer label{sample, field::sample::kLabel};
    label.add_int64(field::label::kKey, string(key));
    label.add_int64(field::label::kStr, string(value));
  }
}

void PprofWriter::write_label(pbf_writer& sample, const std::string& key, std::int64_t number) {
  pbf_writer label{sample, field::sample::kLabel};
  label.add_int64(field::label::kKey, string(key));
  label.add_int64(field::label::kNum, number);
}

void PprofWriter::write_sample(const Key& key, const std::vector<std::int64_t>& values) {
  const auto& [thread, stack, use] = key;
  auto frames = frames_of(profile_, stack);
  const auto marks = take_marks(profile_, frames);
  for (auto& frame : frames) {
    ++frame;  // identifiers begin at 1
  }
  const auto& who = profile_.threads[thread];
  pbf_writer sample{out_, field::profile::kSample};
  sample.add_packed_uint64(field::sample::kLocationId, frames.begin(), frames.end());
  sample.add_packed_int64(field::sample::kValue, values.begin(), values.end());
  write_label(sample, "pid", who.pid);
  write_label(sample, "tid", who.tid);
  write_label(sample, "process", who.process);
  write_label(sample, "thread", who.name);
  write_label(sample, "task", marks.task_or_greenlet());
  write_label(sample, "gil", marks.gil);
  write_label(sample, "wait", marks.wait);
  write_label(sample, "use", std::string{use});
}

void PprofWriter::write_samples() {
  std::map<Key, std::vector<std::int64_t>> values;
  for (const auto& sample : profile_.samples) {
    auto& sums = values[{sample.thread, sample.stack, uses_.of(sample)}];
    sums.resize(2 * values_.size());
    const auto first = 2 * std::size_t{sample.event};
    ++sums[first];
    sums[first + 1] = saturated_sum(sums[first + 1], sample.period);
  }
  for (const auto& [key, sums] : values) {
    write_sample(key, sums);
  }
}

// Readers take the first mapping for the program.
std::vector<std::size_t> PprofWriter::order_of_objects() const {
  std::vector<std::size_t> order(profile_.objects.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_partition(order.begin(), order.end(), [&](std::size_t number) {
    const auto& path = profile_.objects[number].path;
    return std::string_view{path}.substr(path.rfind('/') + 1).starts_with("python");
  });
  return order;
}

void PprofWriter::write_tables() {
  for (const auto i : order_of_objects()) {
    const auto& object = profile_.objects[i];
    pbf_writer mapping{out_, field::profile::kMapping};
    mapping.add_uint64(field::mapping::kId, i + 1);
    // Addresses are those of the file, not of a process.
    mapping.add_uint64(field::mapping::kMemoryStart, 0);
    mapping.add_uint64(field::mapping::kMemoryLimit, std::numeric_limits<std::int64_t>::max());
    mapping.add_int64(field::mapping::kFilename, string(object.path));
    mapping.add_int64(field::mapping::kBuildId, string(object.build_id));
    mapping.add_bool(field::mapping::kHasFunctions, true);
  }
  for (std::size_t i = 0; i < profile_.frames.size(); ++i) {
    const auto& frame = profile_.frames[i];
    const auto& function = profile_.functions[frame.function];
    pbf_writer location{out_, field::profile::kLocation};
    location.add_uint64(field::location::kId, i + 1);
    if ((function.kind == report::Kind::kNative || function.kind == report::Kind::kKernel) &&
        function.object < profile_.objects.size()) {
      location.add_uint64(field::location::kMappingId, function.object + std::uint64_t{1});
      location.add_uint64(field::location::kAddress, function.address);
    }
    pbf_writer line{location, field::location::kLine};
    line.add_uint64(field::line::kFunctionId, frame.function + std::uint64_t{1});
    line.add_int64(field::line::kLine, frame.line);
  }
  for (std::size_t i = 0; i < profile_.functions.size(); ++i) {
    const auto& function = profile_.functions[i];
    const auto name = string(name_of(profile_, function));
    pbf_writer message{out_, field::profile::kFunction};
    message.add_uint64(field::function::kId, i + 1);
    message.add_int64(field::function::kName, name);
    message.add_int64(field::function::kSystemName, name);
    message.add_int64(field::function::kFilename, string(file_of(profile_, function)));
  }
}

void PprofWriter::write_duration() {
  if (profile_.samples.empty()) {
    return;
  }
  if (const auto begin = wall_time(profile_.clock, profile_.samples.front().time)) {
    out_.add_int64(field::profile::kTimeNanos, static_cast<std::int64_t>(*begin));
  }
  out_.add_int64(
      field::profile::kDurationNanos,
      static_cast<std::int64_t>(profile_.samples.back().time - profile_.samples.front().time));
  std::uint64_t sum = 0;
  std::uint64_t count = 0;
  for (const auto& sample : profile_.samples) {
    if (sample.event == 0) {
      sum += std::min(sample.period, std::numeric_limits<std::uint64_t>::max() - sum);
      ++count;
    }
  }
  if (count > 0) {
    out_.add_int64(field::profile::kPeriod, static_cast<std::int64_t>(sum / count));
  }
}

std::string PprofWriter::write() {
  write_types();
  write_samples();
  write_tables();
  write_duration();
  for (const auto& note : profile_.notes) {
    out_.add_int64(field::profile::kComment, string(note));
  }
  for (const auto& text : strings_.texts()) {
    out_.add_string(field::profile::kStringTable, text);
  }
  return gzipped(data_);
}

}  // namespace

void write_pprof(const Profile& profile, const Sink& out) { out(PprofWriter{profile}.write()); }

}  // namespace pyinject::exports
