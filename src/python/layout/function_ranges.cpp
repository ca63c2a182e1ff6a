#include "python/layout/function_ranges.hpp"

#include "elf/call_frame_info.hpp"
#include "python/layout/code_probe.hpp"
#include "python/layout/interpreter_file.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

namespace pyinject::python {

namespace {

constexpr std::size_t kMostParts = 16;
constexpr std::uint64_t kMostMachineCode = std::uint64_t{8} << 20U;  // limit on bytes disassembled

struct Part {
  elf::CodeExtent extent;
  std::vector<base::ElfAddress> jumps;  // that lead out of it
};

// A function that the compiler may have split. Jumps between its parts lead to inner addresses;
// jumps to another function (tail calls) only to its start.
class SplitFunction {
 public:
  SplitFunction(const elf::ElfFile& file, const elf::CallFrameInfo& table)
      : file_{file}, table_{table} {}

  [[nodiscard]] std::vector<elf::CodeExtent> parts(base::ElfAddress entry) {
    std::vector<Part> parts;
    if (auto first = part_at(entry)) {
      parts.push_back(std::move(*first));
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto jumps = parts[i].jumps;
      for (const auto jump : jumps) {
        if (parts.size() == kMostParts || is_in(parts, jump)) {
          continue;
        }
        auto other = part_at(jump);
        if (other && (jump != other->extent.begin || leads_into(*other, parts))) {
          parts.push_back(std::move(*other));
        }
      }
    }
    std::vector<elf::CodeExtent> extents;
    extents.reserve(parts.size());
    for (const auto& part : parts) {
      extents.push_back(part.extent);
    }
    std::ranges::sort(extents, {}, &elf::CodeExtent::begin);
    return extents;
  }

 private:
  static bool is_in(const std::vector<Part>& parts, base::ElfAddress address) {
    return std::ranges::any_of(
        parts, [address](const Part& part) { return part.extent.contains(address); });
  }

  static bool leads_into(const Part& part, const std::vector<Part>& parts) {
    return std::ranges::any_of(part.jumps, [&parts](base::ElfAddress jump) {
      return is_in(parts, jump) && std::ranges::none_of(parts, [jump](const Part& other) {
               return other.extent.begin == jump;
             });
    });
  }

  std::optional<Part> part_at(base::ElfAddress address) {
    const auto extent = table_.extent_at(address);
    if (!extent || extent->size > left_) {
      return std::nullopt;
    }
    const auto code = file_.read_at(extent->begin, extent->size);
    if (!code) {
      return std::nullopt;
    }
    left_ -= extent->size;
    Part part{.extent = *extent, .jumps = {}};
    for (const auto target : jumps_out_of(*code, base::RemoteAddress{extent->begin.value()})) {
      part.jumps.emplace_back(target.value());
    }
    return part;
  }

  const elf::ElfFile& file_;
  const elf::CallFrameInfo& table_;
  std::uint64_t left_ = kMostMachineCode;
};

}  // namespace

std::vector<CodeRange> parts_reached(const Target& target, std::string_view name) {
  constexpr std::uint64_t kMostOfAPart = std::uint64_t{64} << 10U;
  const auto opened = open_interpreter(target);
  const auto* const file = std::get_if<elf::ElfFile>(&opened);
  const auto table = file == nullptr ? std::nullopt : elf::CallFrameInfo::of(*file);
  if (!table) {
    return {};
  }
  std::vector<elf::CodeExtent> parts;
  const auto add = [&](base::ElfAddress address) {
    const auto extent = table->extent_at(address);
    if (extent && extent->size <= kMostOfAPart && parts.size() < kMostParts &&
        std::ranges::find(parts, *extent) == parts.end()) {
      parts.push_back(*extent);
    }
  };
  for (const auto& [_, symbol] : file->find_symbols(std::span{&name, 1})) {
    add(symbol.address);
  }
  const auto code =
      parts.empty() ? std::nullopt : file->read_at(parts.front().begin, parts.front().size);
  if (!code) {
    return {};
  }
  for (const auto jump : jumps_out_of(*code, base::RemoteAddress{parts.front().begin.value()})) {
    add(base::ElfAddress{jump.value()});
  }
  std::vector<CodeRange> ranges;
  ranges.reserve(parts.size());
  for (const auto& part : parts) {
    ranges.push_back(placed(part, target));
  }
  return ranges;
}

std::vector<elf::CodeExtent> function_extents(const elf::ElfFile& file,
                                              std::span<const std::string_view> names) {
  const auto table = elf::CallFrameInfo::of(file);
  std::vector<elf::CodeExtent> extents;
  if (table) {
    for (const auto& [name, symbol] : file.find_symbols(names)) {
      std::ranges::copy(SplitFunction{file, *table}.parts(symbol.address),
                        std::back_inserter(extents));
    }
  }
  return extents;
}

CodeRange placed(const elf::CodeExtent& extent, const Target& target) {
  const auto begin = target.bias.apply(extent.begin);
  return {.begin = begin, .end = begin + extent.size};
}

std::vector<CodeRange> function_ranges(const Target& target,
                                       std::span<const std::string_view> names) {
  const auto opened = open_interpreter(target);
  const auto* const file = std::get_if<elf::ElfFile>(&opened);
  std::vector<CodeRange> ranges;
  if (file != nullptr) {
    for (const auto& extent : function_extents(*file, names)) {
      ranges.push_back(placed(extent, target));
    }
  }
  return ranges;
}

}  // namespace pyinject::python
