// The unwind tables of a file that a target has mapped.
#include "elf/eh_frame.hpp"
#include "fuzz/fuzz.hpp"

namespace pyinject::fuzz {
using base::ElfAddress;

void run(Input input) {
  const ElfAddress address{input.take<std::uint64_t>()};
  const auto bytes = input.rest();
  const elf::EhFrame table{{bytes.begin(), bytes.end()}, address};
  const auto& functions = table.functions();
  require(functions.size() <= bytes.size() / 8, "every function takes some bytes");
  require(std::ranges::is_sorted(functions, {}, &elf::UnwoundFunction::begin), "in their order");
  std::size_t left = 256;
  for (const auto& function : functions) {
    for (const auto skip : {std::uint64_t{0}, function.size / 2, function.size - 1}) {
      const ElfAddress pc{function.begin.value() + skip};
      const auto row = table.row_at(pc);
      require(
          !row || std::ranges::any_of(functions, [pc](const auto& f) { return f.contains(pc); }),
          "only functions have rows");
    }
    if (--left == 0) {
      return;
    }
  }
  require(!functions.empty() || !table.row_at(address), "without functions there is no row");
}

}  // namespace pyinject::fuzz
