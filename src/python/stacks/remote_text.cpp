#include "python/stacks/remote_text.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace pyinject::python {

namespace {

constexpr std::uint32_t kReplacement = 0xfffd;

char byte_of(std::uint32_t bits) { return static_cast<char>(static_cast<unsigned char>(bits)); }

void append(std::string& text, std::uint32_t character) {
  if (character > 0x10ffff || (character >= 0xd800 && character <= 0xdfff)) {
    character = kReplacement;
  }
  if (character < 0x80) {
    text += byte_of(character);
    return;
  }
  if (character < 0x800) {
    text += byte_of(0xc0U | (character >> 6U));
  } else {
    if (character < 0x10000) {
      text += byte_of(0xe0U | (character >> 12U));
    } else {
      text += byte_of(0xf0U | (character >> 18U));
      text += byte_of(0x80U | ((character >> 12U) & 0x3fU));
    }
    text += byte_of(0x80U | ((character >> 6U) & 0x3fU));
  }
  text += byte_of(0x80U | (character & 0x3fU));
}

}  // namespace

std::string to_utf8(std::span<const std::byte> units, std::size_t width) {
  std::string text;
  for (; units.size() >= width; units = units.subspan(width)) {
    std::uint32_t character = 0;  // little-endian, like the target
    std::memcpy(&character, units.data(), width);
    const auto before = text.size();
    append(text, character);
    if (text.size() > kMostTextBytes) {
      text.resize(before);
      break;
    }
  }
  return text;
}

std::optional<TextStart> read_text_start(const memory::MemoryReader& memory,
                                         const StackLayout& layout, base::RemoteAddress text,
                                         std::size_t most) {
  const auto& form = layout.text_form;
  const auto state = memory.read_value<std::uint32_t>(text + layout.text_state);
  const auto length = memory.read_value<std::uint64_t>(text + layout.text_length);
  if (text.is_null() || !state || !length) {
    return std::nullopt;
  }
  const std::size_t width = (*state >> form.kind_shift) & form.kind_mask;
  const bool ascii = (*state & form.ascii) != 0;
  if ((width != 1 && width != 2 && width != 4) || (ascii && width != 1)) {
    return std::nullopt;
  }
  // Of a class derived from str: a pointer (PyUnicodeObject.data).
  const bool compact = (*state & form.compact) != 0;
  const auto data = text + (layout.ascii_data + (ascii && compact ? 0 : form.utf8_fields));
  const auto begin = compact ? std::optional{data} : memory.read_pointer(data);
  std::vector<std::byte> units(width * std::min<std::uint64_t>(*length, most));
  if (!begin || !memory.read(*begin, units)) {
    return std::nullopt;
  }
  return TextStart{.text = to_utf8(units, width), .whole = *length <= most};
}

std::optional<std::string> read_text(const memory::MemoryReader& memory, const StackLayout& layout,
                                     base::RemoteAddress text) {
  auto read = read_text_start(memory, layout, text, kMostTextBytes);
  return read ? std::optional{std::move(read->text)} : std::nullopt;
}

}  // namespace pyinject::python
