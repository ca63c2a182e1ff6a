#include "why/lines.hpp"

#include "base/source_path.hpp"

#include <algorithm>

namespace pyinject::why {

Line line_of(const Recording& recording, std::uint32_t stack) {
  const auto& lines = recording.stacks.lines(stack);
  const auto own = std::ranges::find_if(lines, [&](const Line& line) {
    return line.function != 0 && !base::is_standard_library(recording.names.text(line.file));
  });
  return own != lines.end() ? *own : lines.empty() ? Line{} : lines.front();
}

Spent spent_at(const Recording& recording, std::uint32_t stack, std::uint64_t time) {
  const auto line = line_of(recording, stack);
  return {.function = recording.names.text(line.function),
          .file = recording.names.text(line.file),
          .line = line.line,
          .detail = {},
          .time = time};
}

}  // namespace pyinject::why
