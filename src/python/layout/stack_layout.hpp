// Offsets in the parts of a Python stack: frames, code objects, names and lines.
#pragma once

#include <array>
#include <cstdint>

namespace pyinject::python {

// Values of _PyInterpreterFrame.owner (enum _frameowner).
struct FrameOwners {
  std::uint8_t generator = 0;
  std::uint8_t first_entry = 0;  // this and above: an entry frame, without a Python function
  bool operator==(const FrameOwners&) const = default;
};

// The state word of a str, and the position of its characters if they are not ASCII.
struct TextForm {
  std::uint32_t kind_shift = 0;  // of PyASCIIObject.state: the size of a character in bytes
  std::uint32_t kind_mask = 0;   // after that shift
  std::uint32_t compact = 0;     // bits of the state word
  std::uint32_t ascii = 0;
  std::uint32_t utf8_fields = 0;  // bytes of PyCompactUnicodeObject before its characters
  bool operator==(const TextForm&) const = default;

  // The same form with BITS instead of two before the kind: free-threaded builds store whether the
  // text is interned in a byte (3.14 and later).
  [[nodiscard]] constexpr TextForm after(std::uint32_t bits) const {
    const auto shift = bits - 2;
    return {.kind_shift = kind_shift + shift,
            .kind_mask = kind_mask,
            .compact = compact << shift,
            .ascii = ascii << shift,
            .utf8_fields = utf8_fields};
  }
};

// Opcodes of byte code, as bits.
using OpcodeSet = std::array<std::uint64_t, 4>;

// Offsets in bytes. From 3.13 on, they come from the target's own _Py_DebugOffsets.
struct StackLayout {
  // In PyThreadState.
  std::uint64_t previous_thread = 0;
  std::uint64_t native_thread_id = 0;  // gettid() of the thread in its own pid namespace
  std::uint64_t current_frame = 0;    // the innermost frame, or (3.12) a struct that starts with it
  bool frame_in_cframe = false;       // 3.12: the C frame's _PyCFrame
  std::uint64_t previous_cframe = 0;  // in that struct
  // In _PyInterpreterFrame.
  std::uint64_t frame_size = 0;  // of its fixed part
  std::uint64_t executable = 0;
  std::uint64_t executable_tags = 0;  // bits of that word that are not part of the pointer
  std::uint64_t previous = 0;
  std::uint64_t instruction = 0;
  std::uint64_t owner = 0;
  FrameOwners owners = {};
  // End of its evaluation stack: stored while the frame waits for a call made by the same
  // evaluator. While it runs: null, or -1 if this is an index (3.12, 3.13).
  std::uint64_t stack_end = 0;
  bool stack_end_is_index = false;
  // In PyCodeObject.
  std::uint64_t file_name = 0;
  std::uint64_t qualified_name = 0;
  std::uint64_t line_table = 0;
  std::uint64_t first_line = 0;
  std::uint64_t byte_code = 0;
  // Free-threaded builds from 3.14 on: each thread has a copy of its own of the byte code. In
  // PyCodeObject, a pointer to the number of copies and their addresses, the first of which is that
  // of BYTE_CODE; in _PyInterpreterFrame, an int, the copy to which INSTRUCTION belongs. 0: none.
  std::uint64_t thread_byte_code = 0;
  std::uint64_t byte_code_index = 0;
  // In all objects; in those of variable size; in bytes; in str.
  std::uint64_t type = 0;
  std::uint64_t item_count = 0;
  std::uint64_t bytes_data = 0;
  std::uint64_t text_length = 0;
  std::uint64_t text_state = 0;
  std::uint64_t ascii_data = 0;
  TextForm text_form = {};
  std::uint64_t int_digits = 0;  // in int
  bool operator==(const StackLayout&) const = default;
};

}  // namespace pyinject::python
