#include "python/layout/map_writer.hpp"

#include "python/layout/function_ranges.hpp"

#include <array>
#include <string_view>

namespace pyinject::python {

std::vector<CodeRange> map_writer_ranges(const Target& target) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"PyUnstable_PerfMapState_Init", "PyUnstable_WritePerfMapEntry"});
  return function_ranges(target, kNames);
}

}  // namespace pyinject::python
