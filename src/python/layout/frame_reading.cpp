#include "python/layout/frame_reading.hpp"

#include "python/layout/interpreter_file.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace pyinject::python {

std::variant<FrameReading, std::string> prepare_frame_reading(const Target& target) {
  return prepare_frame_reading(target, RunningProcess{target.id.pid});
}

std::variant<FrameReading, std::string> prepare_frame_reading(const Target& target,
                                                              const ProcessImage& image) {
  auto file = open_interpreter(target, image);
  if (auto* const why = std::get_if<std::string>(&file)) {
    return std::move(*why);
  }
  std::vector<std::byte> head(kDebugOffsetsBytes);
  if (!image.memory()->read(target.addresses.runtime, head)) {
    return std::string{"its memory cannot be read"};
  }
  auto layout = parse_layout(target.version, head);
  if (auto* const wrong = std::get_if<std::string>(&layout)) {
    return std::move(*wrong);
  }
  return FrameReading{.file = std::get<elf::ElfFile>(std::move(file)),
                      .layout = std::get<RuntimeLayout>(layout)};
}

}  // namespace pyinject::python
