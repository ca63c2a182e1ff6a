#include "pyinject/python/evaluator.hpp"

#include "python/layout/function_ranges.hpp"
#include "python/layout/inlined_evaluators.hpp"
#include "python/layout/interpreter_file.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <variant>

namespace pyinject::python {

std::vector<CodeRange> evaluator_ranges(const Target& target) {
  constexpr auto kName = std::to_array<std::string_view>({"_PyEval_EvalFrameDefault"});
  const auto opened = open_interpreter(target);
  const auto* const file = std::get_if<elf::ElfFile>(&opened);
  if (file == nullptr) {
    return {};
  }
  auto extents = function_extents(*file, kName);
  std::ranges::copy(inlined_evaluators(*file, extents), std::back_inserter(extents));
  std::ranges::sort(extents, {}, &elf::CodeExtent::begin);
  std::vector<CodeRange> ranges;
  ranges.reserve(extents.size());
  for (const auto& extent : extents) {
    ranges.push_back(placed(extent, target));
  }
  return ranges;
}

}  // namespace pyinject::python
