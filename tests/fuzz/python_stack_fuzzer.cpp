// The frames of a target, its code objects, their names and lines.
#include "fuzz/fuzz.hpp"
#include "python/layout/layout_facts.hpp"
#include "python/layout/runtime_layout.hpp"
#include "python/stacks/code_objects.hpp"
#include "python/stacks/frame_walk.hpp"
#include "python/stacks/line_table.hpp"
#include "python/stacks/page_cache.hpp"
#include "python/stacks/remote_text.hpp"
#include "python/stacks/stack_assembly.hpp"

#include <array>
#include <optional>
#include <vector>

namespace pyinject::fuzz {
namespace {

using base::RemoteAddress;

// The layout of a real Python, or one taken from the input.
std::optional<python::StackLayout> layout_of(Input& input) {
  constexpr std::uint8_t k312 = 0;
  if (input.take<std::uint8_t>() == k312) {
    const auto parsed = python::parse_layout({.major = 3, .minor = 12}, {});
    return std::get<python::RuntimeLayout>(parsed).stack;
  }
  python::StackLayout layout;
  for (auto* const field :
       {&layout.current_frame, &layout.frame_size, &layout.executable, &layout.executable_tags,
        &layout.previous, &layout.instruction, &layout.owner, &layout.file_name,
        &layout.qualified_name, &layout.line_table, &layout.first_line, &layout.byte_code,
        &layout.type, &layout.item_count, &layout.bytes_data, &layout.text_length,
        &layout.text_state, &layout.ascii_data}) {
    *field = input.take<std::uint16_t>();
  }
  layout.stack_end = layout.instruction + sizeof(std::uint64_t);
  layout.owners = python::kFrameOwners;
  layout.text_form = python::kTextForm;
  // As parse_layout() guarantees.
  const bool fits =
      layout.frame_size <= 256 && layout.executable + 8 <= layout.frame_size &&
      layout.previous + 8 <= layout.frame_size && layout.stack_end + 8 <= layout.frame_size &&
      layout.owner < layout.frame_size && layout.byte_code <= 512 &&
      layout.file_name + 8 <= layout.byte_code && layout.qualified_name + 8 <= layout.byte_code &&
      layout.line_table + 8 <= layout.byte_code && layout.first_line + 4 <= layout.byte_code &&
      layout.type <= 56 && layout.item_count <= 56;
  return fits ? std::optional{layout} : std::nullopt;
}

void check_text(std::span<const std::byte> units) {
  for (const std::size_t width : {1U, 2U, 4U}) {
    const auto text = python::to_utf8(units, width);
    require(text.size() <= python::kMostTextBytes, "names are bounded");
    require(text.size() <= units.size() / width * 4, "a character has at most four bytes");
  }
}

void check_lines(std::span<const std::byte> table) {
  const python::LineTable lines{table, 1};
  require(lines.size() <= table.size() + 1, "an entry has at least a byte");
  require(lines.line_at(table.size() * 16) == 0, "behind the table there are no lines");
  for (std::uint64_t offset = 0; offset < 64; ++offset) {
    require(lines.line_at(offset) <= 0x7fffffff, "a line is one of a file");
  }
}

void check_stack(const memory::MemoryReader& memory, const python::StackLayout& layout,
                 const python::RawStack& stack) {
  require(stack.frames.size() <= python::kMostFrames, "stacks are bounded");
  require(stack.frames.empty() || !stack.complete || stack.frames.back().outermost,
          "the last frame is the outermost of its group");
  std::vector<RemoteAddress> codes;
  for (const auto& frame : stack.frames) {
    require(!frame.code.is_null() && !frame.previous.is_null(), "a frame has code and a caller");
    if (codes.size() < 4) {
      codes.push_back(frame.code);
    }
  }
  const auto type =
      codes.empty() ? RemoteAddress{}
                    : memory.read_pointer(codes.front() + layout.type).value_or(RemoteAddress{});
  python::CodeObjects objects{memory, layout, type};
  objects.begin_round();
  for (const auto code : codes) {
    require(objects.look_at(std::array{code}) == (objects.find(code) != nullptr),
            "what was looked at is known");
  }
  const auto assembled = python::assembled(base::Tid{1}, stack, objects);
  require(assembled.frames.size() <= stack.frames.size(), "no frame is added");
  require(python::joined({stack, stack}).frames.size() <= python::kMostFrames,
          "joined stacks are bounded");
}

}  // namespace

void run(Input input) {
  const auto layout = layout_of(input);
  const RemoteAddress thread{input.take<std::uint32_t>()};
  check_text(input.rest());
  check_lines(input.rest());
  if (!layout) {
    return;
  }
  const HostileMemory memory{input.rest()};
  python::PageCache pages{memory};
  const auto stack = python::walk_frames(pages, *layout, thread);
  pages.refresh(pages.used());
  const auto again = python::walk_frames(pages, *layout, thread);
  require(stack.has_value() == again.has_value() && (!stack || python::same_calls(*stack, *again)),
          "what does not change is read the same twice");
  if (stack) {
    check_stack(memory, *layout, *stack);
  }
  const auto text = python::read_text(memory, *layout, thread + 8);
  require(!text || text->size() <= python::kMostTextBytes, "names are bounded");
}

}  // namespace pyinject::fuzz
