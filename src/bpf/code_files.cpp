#include "bpf/code_files.hpp"

#include "base/c_library.hpp"
#include "elf/elf_file.hpp"
#include "elf/function_names.hpp"
#include "elf/load_bias.hpp"
#include "procfs/open_mapped.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

namespace pyinject::bpf {

bool is_of_c(CodeKind kind, sample::Does does) {
  return kind == CodeKind::kC || (kind != CodeKind::kEvaluator &&
                                  (does == sample::Does::kCall || (does == sample::Does::kUnknown &&
                                                                   kind == CodeKind::kCLibrary)));
}

bool CodeFiles::is_interpreters(const procfs::Mapping& mapping) const {
  return mapping.path == target_.interpreter;
}

std::uint32_t CodeFiles::number(std::uint64_t address, const procfs::Mapping& mapping) {
  if (const auto known = numbers_.find(address); known != numbers_.end()) {
    return known->second;
  }
  if (codes_.size() >= kMostCodes) {
    return 0;
  }
  const auto file = std::ranges::find_if(files_, [&](const procfs::Mapping& each) {
    return each.begin == mapping.begin && each.path == mapping.path;
  });
  const auto number = static_cast<std::uint32_t>(codes_.size());
  codes_.push_back({.address = address, .file = static_cast<std::size_t>(file - files_.begin())});
  if (file == files_.end()) {
    files_.push_back(mapping);
  }
  numbers_.emplace(address, number);
  return number;
}

const procfs::Mapping* CodeFiles::mapping_of(base::RemoteAddress address) {
  constexpr std::chrono::milliseconds kPause{500};
  const auto* mapping = procfs::find_mapping(maps_, address);
  if (mapping == nullptr && again_.expired()) {
    maps_ = procfs::read_maps(target_.id.pid).value_or(std::vector<procfs::Mapping>{});
    again_ = base::Deadline::after(kPause);
    mapping = procfs::find_mapping(maps_, address);
  }
  const auto runs = [address](const python::CodeRange& range) {
    return range.begin <= address && address < range.end;
  };
  return mapping == nullptr || mapping->path.empty() || std::ranges::any_of(evaluator_, runs)
             ? nullptr
             : mapping;
}

CodeKind CodeFiles::kind_in(base::RemoteAddress address, const procfs::Mapping& mapping) const {
  const bool interpreter = target_.text_begin <= address && address < target_.text_end;
  return interpreter || is_interpreters(mapping) ? CodeKind::kInterpreter
         : base::is_c_library(mapping.path)      ? CodeKind::kCLibrary
                                                 : CodeKind::kC;
}

CodeKind CodeFiles::kind_of(std::uint64_t address) {
  const base::RemoteAddress at{address};
  const auto* const mapping = mapping_of(at);
  return mapping == nullptr ? CodeKind::kEvaluator : kind_in(at, *mapping);
}

CodeFiles::Place CodeFiles::find(std::uint64_t address) {
  const base::RemoteAddress at{address};
  const auto* const mapping = mapping_of(at);
  return mapping == nullptr
             ? Place{.kind = CodeKind::kEvaluator}
             : Place{.kind = kind_in(at, *mapping), .code = number(address, *mapping)};
}

void CodeFiles::name_in(std::size_t file, std::vector<std::string>& names) const {
  const auto& mapping = files_[file];
  std::vector<std::uint32_t> codes;
  for (std::uint32_t i = 1; i < codes_.size(); ++i) {
    if (codes_[i].file == file) {
      codes.push_back(i);
    }
  }
  std::vector<std::string> found(codes.size());
  auto opened = file < kMostFiles ? procfs::open_mapped_file(target_.id.pid, mapping)
                                  : procfs::NotOpened{.why = "too many files"};
  if (auto* const fd = std::get_if<base::UniqueFd>(&opened)) {
    auto parsed = elf::ElfFile::open(std::move(*fd));
    const auto* const elf = std::get_if<elf::ElfFile>(&parsed);
    const auto bias = elf == nullptr ? std::nullopt
                                     : elf::load_bias(elf->segments(), mapping.begin,
                                                      mapping.offset, mapping.executable);
    if (bias) {
      std::vector<base::ElfAddress> addresses;
      std::ranges::transform(codes, std::back_inserter(addresses), [&](std::uint32_t code) {
        return bias->remove(base::RemoteAddress{codes_[code].address});
      });
      found = elf::function_names(*elf, addresses);
    }
  }
  const auto base_name = mapping.path.substr(mapping.path.rfind('/') + 1);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    names[codes[i]] = is_interpreters(mapping) ? found[i]
                      : found[i].empty()       ? base_name
                                               : fmt::format("{} in {}", found[i], base_name);
  }
}

std::vector<std::string> CodeFiles::names() const {
  std::vector<std::string> names(codes_.size());
  for (std::size_t file = 0; file < files_.size(); ++file) {
    name_in(file, names);
  }
  return names;
}

}  // namespace pyinject::bpf
