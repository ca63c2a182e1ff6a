#include "python/layout/stack_layout.hpp"

#include <fmt/format.h>

#include <string_view>

namespace pyinject::python {

std::string implausible(const StackLayout& layout) {
  struct Field {
    std::string_view name;
    std::uint64_t offset;
    std::uint64_t size;
    std::uint64_t room;
  };
  constexpr std::uint64_t kMostThread = 2048;
  constexpr std::uint64_t kMostFrame = 256;
  constexpr std::uint64_t kMostCode = 512;
  constexpr std::uint64_t kMostHeader = 64;
  if (layout.frame_size > kMostFrame) {
    return fmt::format("frames of {} bytes", layout.frame_size);
  }
  for (const auto& [name, offset, size, room] :
       {Field{"previous thread", layout.previous_thread, 8, kMostThread},
        Field{"native thread id", layout.native_thread_id, 8, kMostThread},
        Field{"current frame", layout.current_frame, 8, kMostThread},
        Field{"a frame's code", layout.executable, 8, layout.frame_size},
        Field{"a frame's previous one", layout.previous, 8, layout.frame_size},
        Field{"a frame's instruction", layout.instruction, 8, layout.frame_size},
        Field{"a frame's owner", layout.owner, 1, layout.frame_size},
        Field{"a frame's stack end", layout.stack_end, layout.stack_end_is_index ? 4U : 8U,
              layout.frame_size},
        Field{"a code's file", layout.file_name, 8, layout.byte_code},
        Field{"a code's name", layout.qualified_name, 8, layout.byte_code},
        Field{"a code's lines", layout.line_table, 8, layout.byte_code},
        Field{"a code's first line", layout.first_line, 4, layout.byte_code},
        Field{"byte code", layout.byte_code, 2, kMostCode},
        Field{"an object's type", layout.type, 8, kMostHeader},
        Field{"an object's size", layout.item_count, 8, kMostHeader},
        Field{"the content of bytes", layout.bytes_data, 1, kMostHeader},
        Field{"a text's length", layout.text_length, 8, kMostHeader},
        Field{"a text's state", layout.text_state, 4, kMostHeader},
        Field{"a text's content", layout.ascii_data, 1, kMostHeader}}) {
    if (offset > room || size > room - offset || offset % size != 0) {
      return fmt::format("{} at {}", name, offset);
    }
  }
  return {};
}

}  // namespace pyinject::python
