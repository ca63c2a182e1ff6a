#include "procfs/kernel_symbols.hpp"

#include "base/file.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace pyinject::procfs {

// "ffffffff81000000 T _text" or, of a module, "ffffffffc0000000 t name\t[module]".
KernelSymbols KernelSymbols::parse(std::string_view text) {
  KernelSymbols symbols;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto blank = line.find(' ');
    if (blank == std::string_view::npos || line.size() < blank + 4 || line[blank + 2] != ' ') {
      continue;
    }
    const char kind = line[blank + 1];
    if (kind != 't' && kind != 'T' && kind != 'w' && kind != 'W') {
      continue;
    }
    const auto begin = base::parse_number<std::uint64_t>(line.substr(0, blank), 16).value_or(0);
    auto name = line.substr(blank + 3);
    name = name.substr(0, name.find('\t'));
    if (begin != 0 && !name.empty()) {
      symbols.functions_.push_back({.begin = begin,
                                    .name = static_cast<std::uint32_t>(symbols.names_.size()),
                                    .size = static_cast<std::uint32_t>(name.size())});
      symbols.names_ += name;
    }
  }
  std::ranges::stable_sort(symbols.functions_, {}, &Function::begin);
  return symbols;
}

KernelSymbols KernelSymbols::read() {
  constexpr std::size_t kMostOfTable = std::size_t{64} << 20;
  const auto text = base::read_file("/proc/kallsyms", kMostOfTable);
  return text ? parse(*text) : KernelSymbols{};
}

bool KernelSymbols::readable() {
  constexpr std::size_t kBeginning = std::size_t{256} << 10U;  // per-CPU variables come first
  const auto text = base::read_file("/proc/kallsyms", kBeginning);
  return text && !parse(*text).empty();
}

std::string_view KernelSymbols::name(std::uint64_t address) const {
  const auto after = std::ranges::upper_bound(functions_, address, {}, &Function::begin);
  if (after == functions_.begin()) {
    return {};
  }
  // Of several names of the same function, the first one.
  const auto first =
      std::ranges::lower_bound(functions_, std::prev(after)->begin, {}, &Function::begin);
  return std::string_view{names_}.substr(first->name, first->size);
}

bool KernelSymbols::has(std::string_view name, std::uint64_t address) const {
  const auto first = std::ranges::lower_bound(functions_, address, {}, &Function::begin);
  const auto last = std::ranges::upper_bound(functions_, address, {}, &Function::begin);
  return std::any_of(first, last, [&](const Function& function) {
    return std::string_view{names_}.substr(function.name, function.size) == name;
  });
}

}  // namespace pyinject::procfs
