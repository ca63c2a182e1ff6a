// The unwind tables of a file that a target has mapped.
#include "elf/eh_frame.hpp"
#include "elf/unwind_expression.hpp"
#include "fuzz/fuzz.hpp"

namespace pyinject::fuzz {
using base::ElfAddress;

namespace {

constexpr std::uint64_t kMostSteps = 1'000'000;  // the limit for a sample
constexpr std::size_t kMostFrames = 2048;        // 16 KiB of stack hold that many addresses

// All registers and words have values.
class AnyValues : public elf::ExpressionContext {
 public:
  [[nodiscard]] std::optional<std::uint64_t> register_value(std::uint64_t number) const override {
    return number;
  }
  [[nodiscard]] std::optional<std::uint64_t> word_at(std::uint64_t address) const override {
    return address;
  }
};

// A stack that returns into the same function again and again.
void unwind(const elf::EhFrame& table, const elf::UnwoundFunction& function) {
  base::Allowance steps{kMostSteps};
  const auto row = table.row_at(function.begin, steps);
  for (std::size_t frame = 0; row && frame < kMostFrames && !steps.exhausted(); ++frame) {
    for (const auto& saved : row->registers) {
      (void)elf::evaluate(saved.expression, AnyValues{}, steps, 0);
    }
  }
}

}  // namespace

void run(Input input) {
  const ElfAddress address{input.take<std::uint64_t>()};
  const auto bytes = input.rest();
  const elf::EhFrame table{{bytes.begin(), bytes.end()}, address};
  const auto& functions = table.functions();
  require(functions.size() <= bytes.size() / 8, "every function takes some bytes");
  require(std::ranges::is_sorted(functions, {}, &elf::UnwoundFunction::begin), "in their order");
  std::size_t left = 256;
  base::Allowance steps{kMostSteps};
  for (const auto& function : functions) {
    for (const auto skip : {std::uint64_t{0}, function.size / 2, function.size - 1}) {
      const ElfAddress pc{function.begin.value() + skip};
      const auto row = table.row_at(pc, steps);
      require(
          !row || std::ranges::any_of(functions, [pc](const auto& f) { return f.contains(pc); }),
          "only functions have rows");
    }
    if (--left == 0) {
      break;
    }
  }
  require(!functions.empty() || !table.row_at(address, steps), "without functions there is no row");
  if (!functions.empty()) {
    unwind(table, functions.front());
  }
}

}  // namespace pyinject::fuzz
