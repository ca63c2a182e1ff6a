#include "pyinject/python/evaluator.hpp"

#include "python/layout/function_ranges.hpp"

#include <array>
#include <string_view>

namespace pyinject::python {

std::vector<CodeRange> evaluator_ranges(const Target& target) {
  constexpr auto kName = std::to_array<std::string_view>({"_PyEval_EvalFrameDefault"});
  return function_ranges(target, kName);
}

}  // namespace pyinject::python
