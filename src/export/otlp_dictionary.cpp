#include "export/otlp_dictionary.hpp"

#include "export/otlp_fields.hpp"
#include "report/names.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace pyinject::exports {

namespace {

using protozero::pbf_writer;
using report::Kind;

// The values of OpenTelemetry's semantic conventions. Empty: there is none.
std::string_view frame_type(Kind kind) {
  switch (kind) {
    case Kind::kPython:
      return "cpython";
    case Kind::kNative:
      return "native";
    case Kind::kKernel:
      return "kernel";
    case Kind::kMark:
      break;
  }
  return "";
}

void add_attribute(pbf_writer& message, protozero::pbf_tag_type tag, std::uint32_t attribute) {
  if (attribute != 0) {
    message.add_packed_int32(tag, &attribute, &attribute + 1);
  }
}

}  // namespace

OtlpDictionary::OtlpDictionary(const report::Profile& profile, const report::UnmarkedStacks& stacks)
    : profile_{profile}, unmarked_{stacks}, location_numbers_(profile.frames.size()) {}

std::uint32_t OtlpDictionary::attribute(std::string_view key, std::string_view value) {
  if (value.empty()) {
    return 0;
  }
  const auto text = base::printable(value, kLongestText);
  std::string encoded;
  pbf_writer message{encoded};
  message.add_uint32(otlp::attribute::kKey, string(key));
  pbf_writer{message, otlp::attribute::kValue}.add_string(otlp::any_value::kString, text);
  return attributes_.number(encoded);
}

std::uint32_t OtlpDictionary::attribute(std::string_view key, std::uint64_t value) {
  std::string encoded;
  pbf_writer message{encoded};
  message.add_uint32(otlp::attribute::kKey, string(key));
  pbf_writer{message, otlp::attribute::kValue}.add_int64(otlp::any_value::kInt,
                                                         static_cast<std::int64_t>(value));
  return attributes_.number(encoded);
}

// Addresses are those of the file, not of a process.
std::uint32_t OtlpDictionary::mapping(const report::Object& object) {
  std::string encoded;
  pbf_writer message{encoded};
  message.add_uint64(otlp::mapping::kLimit, std::numeric_limits<std::int64_t>::max());
  message.add_uint32(otlp::mapping::kFilename, string(object.path));
  add_attribute(message, otlp::mapping::kAttributes,
                attribute("process.executable.build_id.gnu", object.build_id));
  return mappings_.number(encoded);
}

std::uint32_t OtlpDictionary::function(const report::Function& function) {
  const auto name = string(name_of(profile_, function));
  std::string encoded;
  pbf_writer message{encoded};
  message.add_uint32(otlp::function::kName, name);
  message.add_uint32(otlp::function::kSystemName, name);
  message.add_uint32(otlp::function::kFilename, string(file_of(profile_, function)));
  return functions_.number(encoded);
}

std::uint32_t OtlpDictionary::location(std::uint32_t frame) {
  auto& number = location_numbers_[frame];
  if (number != 0) {
    return number;
  }
  const auto& function = function_of(profile_, frame);
  std::string encoded;
  pbf_writer message{encoded};
  if ((function.kind == Kind::kNative || function.kind == Kind::kKernel) &&
      function.object < profile_.objects.size()) {
    message.add_uint32(otlp::location::kMapping, mapping(profile_.objects[function.object]));
    message.add_uint64(otlp::location::kAddress, function.address);
  }
  {
    pbf_writer line{message, otlp::location::kLines};
    line.add_uint32(otlp::line::kFunction, this->function(function));
    line.add_int64(otlp::line::kLine, profile_.frames[frame].line);
  }
  add_attribute(message, otlp::location::kAttributes,
                attribute("profile.frame.type", frame_type(function.kind)));
  number = locations_.number(encoded);
  return number;
}

std::uint32_t OtlpDictionary::stack(std::uint32_t node) {
  const auto [entry, fresh] =
      stack_numbers_.try_emplace(node, static_cast<std::uint32_t>(stack_nodes_.size()));
  if (fresh) {
    stack_nodes_.push_back(node);
    for (auto inner = node; inner != 0; inner = unmarked_.nodes()[inner].caller) {
      location(unmarked_.nodes()[inner].frame);
    }
  }
  return entry->second;
}

void OtlpDictionary::write(pbf_writer& dictionary) const {
  const auto write_all = [&](protozero::pbf_tag_type tag, const InternTable& table) {
    for (const auto& entry : table.texts()) {
      dictionary.add_message(tag, entry);
    }
  };
  write_all(otlp::dictionary::kMappings, mappings_);
  write_all(otlp::dictionary::kLocations, locations_);
  write_all(otlp::dictionary::kFunctions, functions_);
  {
    // Decoders expect identifiers of full length, also in the zero value (profiles.proto).
    constexpr std::size_t kTraceId = 16;
    constexpr std::size_t kSpanId = 8;
    pbf_writer link{dictionary, otlp::dictionary::kLinks};
    link.add_bytes(otlp::link::kTraceId, std::string(kTraceId, '\0'));
    link.add_bytes(otlp::link::kSpanId, std::string(kSpanId, '\0'));
  }
  write_all(otlp::dictionary::kStrings, strings_);
  write_all(otlp::dictionary::kAttributes, attributes_);
  std::vector<std::uint32_t> locations;
  for (auto node : stack_nodes_) {
    locations.clear();
    for (; node != 0; node = unmarked_.nodes()[node].caller) {
      locations.push_back(location_numbers_[unmarked_.nodes()[node].frame]);
    }
    // A submessage that stays empty would not be written.
    std::string stack;
    pbf_writer{stack}.add_packed_uint32(otlp::stack::kLocations, locations.begin(),
                                        locations.end());
    dictionary.add_message(otlp::dictionary::kStacks, stack);
  }
}

}  // namespace pyinject::exports
