#include "export/perfetto_stacks.hpp"

#include "base/text.hpp"
#include "export/perfetto_fields.hpp"
#include "report/names.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

namespace pyinject::exports {

namespace {

using protozero::pbf_writer;
using report::Kind;

void write_string(pbf_writer& data, protozero::pbf_tag_type tag, std::uint64_t id,
                  const std::string& text) {
  pbf_writer message{data, tag};
  message.add_uint64(perfetto::interned::kId, id);
  message.add_bytes(perfetto::interned::kText, text);
}

// "ab12" as two bytes.
std::string bytes_of(std::string_view hexadecimal) {
  constexpr int kBase = 16;
  std::string bytes;
  for (; hexadecimal.size() >= 2; hexadecimal.remove_prefix(2)) {
    const auto byte = base::parse_number<unsigned>(hexadecimal.substr(0, 2), kBase);
    bytes += static_cast<char>(byte.value_or(0));
  }
  return bytes;
}

std::uint32_t kind_of(Kind kind) {
  switch (kind) {
    case Kind::kPython:
      return perfetto::frame::kInterpreted;
    case Kind::kNative:
      return perfetto::frame::kNative;
    case Kind::kKernel:
      return perfetto::frame::kKernel;
    case Kind::kMark:
      break;
  }
  return 0;
}

}  // namespace

PerfettoStacks::PerfettoStacks(const report::Profile& profile, const report::UnmarkedStacks& stacks)
    : profile_{profile},
      unmarked_{stacks},
      stacks_(stacks.nodes().size()),
      frames_(profile.frames.size()),
      functions_(profile.functions.size()) {}

std::uint64_t PerfettoStacks::write_function(pbf_writer& data, std::uint32_t function) {
  const std::uint64_t id = std::uint64_t{function} + 1;
  if (!functions_[function]) {
    functions_[function] = true;
    write_string(data, perfetto::interned::kFunctionNames, id,
                 name_of(profile_, profile_.functions[function]));
  }
  return id;
}

// Readers before v58 drop a stack if a frame has no mapping: Python functions have their source
// file as one. Its addresses are 0: those of a frame are the file's, not a process's.
std::uint64_t PerfettoStacks::write_mapping(pbf_writer& data, const report::Function& function) {
  const auto path = file_of(profile_, function);
  const bool native = function.kind == Kind::kNative || function.kind == Kind::kKernel;
  const auto build_id = native && function.object < profile_.objects.size()
                            ? bytes_of(profile_.objects[function.object].build_id)
                            : std::string{};
  const auto known = mappings_.texts().size();
  const std::uint64_t id = std::uint64_t{mappings_.number(path + '\0' + build_id)} + 1;
  if (mappings_.texts().size() != known) {
    write_string(data, perfetto::interned::kMappingPaths, id, path);
    if (!build_id.empty()) {
      write_string(data, perfetto::interned::kBuildIds, id, build_id);
    }
    pbf_writer mapping{data, perfetto::interned::kMappings};
    mapping.add_uint64(perfetto::interned::kId, id);
    mapping.add_uint64(perfetto::mapping::kPath, id);
    if (!build_id.empty()) {
      mapping.add_uint64(perfetto::mapping::kBuildId, id);
    }
  }
  return id;
}

std::uint64_t PerfettoStacks::write_source(pbf_writer& data, const std::string& file) {
  const auto known = sources_.texts().size();
  const std::uint64_t id = std::uint64_t{sources_.number(file)} + 1;
  if (sources_.texts().size() != known) {
    write_string(data, perfetto::interned::kSourcePaths, id, file);
  }
  return id;
}

void PerfettoStacks::write_frame(pbf_writer& data, std::uint32_t frame) {
  if (frames_[frame]) {
    return;
  }
  frames_[frame] = true;
  const auto [number, line] = profile_.frames[frame];
  const auto& function = profile_.functions[number];
  const bool python = function.kind == Kind::kPython;
  const auto name = write_function(data, number);
  const auto mapping = write_mapping(data, function);
  const auto source = python ? write_source(data, function.file) : 0;
  pbf_writer message{data, perfetto::interned::kFrames};
  message.add_uint64(perfetto::interned::kId, std::uint64_t{frame} + 1);
  message.add_uint64(perfetto::frame::kFunctionName, name);
  message.add_uint64(perfetto::frame::kMapping, mapping);
  // Readers take frames of one function with the same address for the same frame.
  message.add_uint64(perfetto::frame::kRelativePc, python ? line : function.address);
  if (python) {
    message.add_uint64(perfetto::frame::kSourcePath, source);
  }
  if (line != 0) {
    message.add_uint32(perfetto::frame::kLine, line);
  }
  if (const auto kind = kind_of(function.kind); kind != 0) {
    message.add_uint32(perfetto::frame::kKind, kind);
  }
}

std::uint64_t PerfettoStacks::write(pbf_writer& packet, std::uint32_t node) {
  const std::uint64_t id = node;
  if (stacks_[node] || node == 0) {
    return id;
  }
  stacks_[node] = true;
  path_.clear();
  for (auto inner = node; inner != 0; inner = unmarked_.nodes()[inner].caller) {
    path_.push_back(unmarked_.nodes()[inner].frame);
  }
  std::ranges::reverse(path_);
  pbf_writer data{packet, perfetto::packet::kInternedData};
  for (const auto frame : path_) {
    write_frame(data, frame);
  }
  pbf_writer callstack{data, perfetto::interned::kCallstacks};
  callstack.add_uint64(perfetto::interned::kId, id);
  for (const auto frame : path_) {
    callstack.add_uint64(perfetto::callstack::kFrames, std::uint64_t{frame} + 1);
  }
  return id;
}

}  // namespace pyinject::exports
