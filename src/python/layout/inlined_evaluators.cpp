#include "python/layout/inlined_evaluators.hpp"

#include "python/layout/code_probe.hpp"

#include <algorithm>
#include <optional>

namespace pyinject::python {

namespace {

constexpr std::uint64_t kMostWithoutInstructions = 8192;  // seen: 421 bytes; 48,000 with them
constexpr std::size_t kMostCopies = 64;
constexpr std::size_t kFromLoadToCall = 256;  // bytes
constexpr std::uint64_t kMostOfASegment = std::uint64_t{64} << 20U;

base::RemoteAddress unbiased(base::ElfAddress address) {
  return base::RemoteAddress{address.value()};
}

std::optional<base::RemoteAddress> table_of(const elf::ElfFile& file,
                                            std::span<const elf::CodeExtent> evaluator) {
  std::uint64_t size = 0;
  for (const auto& part : evaluator) {
    size += part.size;
  }
  if (size > kMostWithoutInstructions) {
    return std::nullopt;  // it calls through other tables, such as that of the binary operators
  }
  for (const auto& part : evaluator) {
    const auto code = file.read_at(part.begin, part.size);
    if (const auto call =
            code ? first_call_through_table(*code, unbiased(part.begin)) : std::nullopt) {
      return call->table;
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<elf::CodeExtent> inlined_evaluators(const elf::ElfFile& file,
                                                std::span<const elf::CodeExtent> evaluator) {
  const auto table = table_of(file, evaluator);
  std::vector<elf::CodeExtent> copies;
  if (!table) {
    return copies;
  }
  for (const auto& segment : file.segments()) {
    if (!segment.is_load() || !segment.executable() || segment.file_size > kMostOfASegment) {
      continue;
    }
    const auto read = file.read_at(segment.address, segment.file_size);
    if (!read) {
      continue;
    }
    const std::span<const std::byte> code{*read};
    for (const auto offset : uses_of_table(code, unbiased(segment.address), *table)) {
      const auto rest = code.subspan(offset);
      const auto call = first_call_through_table(rest.first(std::min(rest.size(), kFromLoadToCall)),
                                                 unbiased(segment.address) + offset);
      if (!call || call->table != *table || copies.size() == kMostCopies) {
        continue;
      }
      const elf::CodeExtent copy{.begin = base::ElfAddress{call->returns_to.value() - 1},
                                 .size = 2};
      if (std::ranges::none_of(evaluator,
                               [&copy](const auto& part) { return part.contains(copy.begin); }) &&
          std::ranges::find(copies, copy) == copies.end()) {
        copies.push_back(copy);
      }
    }
  }
  std::ranges::sort(copies, {}, &elf::CodeExtent::begin);
  return copies;
}

}  // namespace pyinject::python
