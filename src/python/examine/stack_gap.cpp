#include "python/examine/stack_gap.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include <elf.h>

namespace pyinject::python {

namespace {

constexpr std::size_t kMostPlatform = 64;   // bytes of its name; "x86_64" on this machine
constexpr std::uint64_t kRandomBytes = 16;  // at AT_RANDOM
constexpr std::uint64_t kLargestGap = 8192 + 16;

}  // namespace

std::optional<FirstStack> parse_first_stack(std::string_view auxv, base::RemoteAddress vectors,
                                            base::RemoteAddress arguments) {
  FirstStack stack{.random = {}, .platform = {}, .vectors = vectors, .arguments = arguments};
  Elf64_auxv_t entry{};
  for (; auxv.size() >= sizeof entry; auxv.remove_prefix(sizeof entry)) {
    std::memcpy(&entry, auxv.data(), sizeof entry);
    if (entry.a_type == AT_RANDOM) {
      stack.random = base::RemoteAddress{entry.a_un.a_val};
    } else if (entry.a_type == AT_PLATFORM) {
      stack.platform = base::RemoteAddress{entry.a_un.a_val};
    }
  }
  const bool all = !stack.random.is_null() && !stack.platform.is_null() && !vectors.is_null() &&
                   !arguments.is_null();
  return all ? std::optional{stack} : std::nullopt;
}

std::optional<UnusedMemory> stack_gap(const memory::MemoryReader& memory,
                                      const std::vector<procfs::Mapping>& maps,
                                      const FirstStack& stack) {
  // In ascending order, as create_elf_tables() puts them.
  if (stack.vectors >= stack.random ||
      stack.random.value() + kRandomBytes > stack.platform.value() ||
      stack.platform >= stack.arguments ||
      stack.arguments.value() - stack.platform.value() > kMostPlatform + kLargestGap) {
    return std::nullopt;
  }
  const auto* const mapping = procfs::find_mapping(maps, stack.vectors);
  if (mapping == nullptr || mapping->path != "[stack]" || !mapping->writable || mapping->shared ||
      !mapping->contains(stack.arguments)) {
    return std::nullopt;
  }
  std::array<std::byte, kMostPlatform> name{};
  const auto most =
      std::min<std::uint64_t>(name.size(), stack.arguments.value() - stack.platform.value());
  if (!memory.read(stack.platform, std::span{name}.first(most))) {
    return std::nullopt;
  }
  const auto end =
      std::find(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(most), std::byte{0});
  const auto length = static_cast<std::uint64_t>(end - name.begin());
  if (length == 0 || length == most) {
    return std::nullopt;
  }
  const auto begin = stack.platform + (length + 1);
  return UnusedMemory{.begin = begin, .size = stack.arguments.value() - begin.value()};
}

}  // namespace pyinject::python
