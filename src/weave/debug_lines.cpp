#include "weave/debug_lines.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace pyinject::weave {

namespace {

// Constants of the DWARF 4 standard, sections 7.5 and 7.21; <dwarf.h> belongs to elfutils.
constexpr std::uint16_t kVersion = 4;
constexpr std::uint8_t kAddressSize = 8;
constexpr std::uint8_t kTagCompileUnit = 0x11;
constexpr std::uint8_t kAtName = 0x03;
constexpr std::uint8_t kAtStatements = 0x10;
constexpr std::uint8_t kAtLowPc = 0x11;
constexpr std::uint8_t kAtHighPc = 0x12;
constexpr std::uint8_t kFormAddress = 0x01;
constexpr std::uint8_t kFormData8 = 0x07;
constexpr std::uint8_t kFormString = 0x08;
constexpr std::uint8_t kFormSectionOffset = 0x17;
constexpr std::uint8_t kExtended = 0;
constexpr std::uint8_t kEndSequence = 1;
constexpr std::uint8_t kSetAddress = 2;
constexpr std::uint8_t kCopy = 1;
constexpr std::uint8_t kAdvancePc = 2;
constexpr std::uint8_t kAdvanceLine = 3;
constexpr std::uint8_t kSetFile = 4;
// An opcode from this one on advances the address by (opcode - 13) / 4 and the line by the
// remainder - 1.
constexpr std::uint8_t kFirstSpecial = 13;
constexpr std::uint8_t kLineRange = 4;
constexpr std::int8_t kLineBase = -1;
constexpr std::uint8_t kNextLine = kFirstSpecial + kBytesOfLine * kLineRange - kLineBase + 1;
// Number of operands of the standard opcodes 1 to 12.
constexpr std::array<std::uint8_t, 12> kOperands{0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
// The size of a section has 32 bits; symbols beyond it get no lines.
constexpr std::size_t kMostDebugBytes = std::size_t{1} << 31U;
constexpr std::uint64_t kBeforeLines = 8;  // bytes, which belong to the first line, too

class Writer {
 public:
  template <typename Number>
  void number(Number value) {
    const auto bytes = std::as_bytes(std::span{&value, 1});
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void text(std::string_view text) {
    const auto bytes = std::as_bytes(std::span{text});
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    bytes_.push_back(std::byte{0});
  }
  void unsigned_leb(std::uint64_t value) {
    constexpr std::uint64_t kMore = 0x80;
    for (; value >= kMore; value >>= 7U) {
      number(static_cast<std::uint8_t>(value | kMore));
    }
    number(static_cast<std::uint8_t>(value));
  }
  void signed_leb(std::int64_t value) {
    constexpr std::int64_t kSign = 0x40;
    for (; value < -kSign || value >= kSign; value >>= 7U) {
      number(static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) | 0x80U));
    }
    number(static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) & 0x7fU));
  }
  // Stores the number of bytes that follow into the four bytes at AT.
  void close(std::size_t at) {
    const auto size = static_cast<std::uint32_t>(bytes_.size() - at - sizeof(std::uint32_t));
    std::memcpy(bytes_.data() + at, &size, sizeof size);
  }
  [[nodiscard]] std::size_t open() {
    number(std::uint32_t{0});
    return bytes_.size() - sizeof(std::uint32_t);
  }
  void align(std::size_t to) { bytes_.resize((bytes_.size() + to - 1) / to * to); }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

using Files = std::unordered_map<std::string_view, std::uint64_t>;

// File names in the header, numbered from 1.
Files write_line_header(Writer& line, std::span<const ImageSymbol* const> symbols) {
  line.number(kVersion);
  const auto length = line.open();
  line.number(std::uint8_t{1});  // minimum instruction length
  line.number(std::uint8_t{1});  // maximum operations per instruction
  line.number(std::uint8_t{1});  // each row begins a statement
  line.number(kLineBase);
  line.number(kLineRange);
  line.number(kFirstSpecial);
  line.number(kOperands);
  line.number(std::uint8_t{0});  // no directories
  Files files;
  for (const auto* const symbol : symbols) {
    const std::string_view file{symbol->file.c_str()};
    if (files.emplace(file, files.size() + 1).second) {
      line.text(file);
      for (int i = 0; i < 3; ++i) {
        line.unsigned_leb(0);  // directory, time, size
      }
    }
  }
  line.number(std::uint8_t{0});
  line.close(length);
  return files;
}

void write_lines_of(Writer& line, const ImageSymbol& symbol, std::uint64_t file) {
  line.number(kExtended);
  line.unsigned_leb(1 + sizeof symbol.address);
  line.number(kSetAddress);
  line.number(symbol.address);
  line.number(kSetFile);
  line.unsigned_leb(file);
  line.number(kAdvanceLine);
  line.signed_leb(std::int64_t{symbol.first_line} - 1);
  line.number(kCopy);
  auto at = symbol.address;
  if (symbol.last_line > symbol.first_line) {
    line.number(kAdvancePc);
    line.unsigned_leb(kBeforeLines);
    at += kBeforeLines;
    for (auto number = symbol.first_line; number < symbol.last_line; ++number) {
      line.number(kNextLine);
      at += kBytesOfLine;
    }
  }
  line.number(kAdvancePc);
  line.unsigned_leb(symbol.address + symbol.size - at);
  line.number(kExtended);
  line.unsigned_leb(1);
  line.number(kEndSequence);
}

std::vector<std::byte> make_abbreviations() {
  Writer abbrev;
  for (const std::uint8_t byte :
       {std::uint8_t{1}, kTagCompileUnit, std::uint8_t{0} /* no children */, kAtName, kFormString,
        kAtStatements, kFormSectionOffset, kAtLowPc, kFormAddress, kAtHighPc, kFormData8,
        std::uint8_t{0}, std::uint8_t{0}, std::uint8_t{0}}) {
    abbrev.number(byte);
  }
  return abbrev.take();
}

std::vector<std::byte> make_info(const AddressRange& all) {
  Writer info;
  const auto length = info.open();
  info.number(kVersion);
  info.number(std::uint32_t{0});  // offset of its abbreviations
  info.number(kAddressSize);
  info.unsigned_leb(1);
  info.text("python");
  info.number(std::uint32_t{0});  // offset of its line table
  info.number(all.begin);
  info.number(all.end - all.begin);
  info.close(length);
  return info.take();
}

std::vector<std::byte> make_aranges(const AddressRange& all) {
  constexpr std::uint16_t kArangesVersion = 2;
  Writer aranges;
  const auto length = aranges.open();
  aranges.number(kArangesVersion);
  aranges.number(std::uint32_t{0});  // offset of its unit
  aranges.number(kAddressSize);
  aranges.number(std::uint8_t{0});  // no segments
  aranges.align(std::size_t{2} * kAddressSize);
  for (const std::uint64_t number :
       {all.begin, all.end - all.begin, std::uint64_t{0}, std::uint64_t{0}}) {
    aranges.number(number);
  }
  aranges.close(length);
  return aranges.take();
}

bool has_lines(const ImageSymbol& symbol) {
  return symbol.first_line != 0 && symbol.first_line <= symbol.last_line && !symbol.file.empty() &&
         symbol.file.front() != '\0' &&
         symbol.size >
             kBeforeLines + kBytesOfLine * std::uint64_t{symbol.last_line - symbol.first_line};
}

}  // namespace

DebugLines make_debug_lines(std::span<const ImageSymbol> symbols) {
  std::vector<const ImageSymbol*> with_lines;
  for (const auto& symbol : symbols) {
    if (has_lines(symbol)) {
      with_lines.push_back(&symbol);
    }
  }
  if (with_lines.empty()) {
    return {};
  }
  std::ranges::sort(with_lines, {}, &ImageSymbol::address);
  Writer line;
  const auto length = line.open();
  const auto files = write_line_header(line, with_lines);
  for (const auto* const symbol : with_lines) {
    write_lines_of(line, *symbol, files.at(symbol->file.c_str()));
    if (line.size() > kMostDebugBytes) {
      break;
    }
  }
  line.close(length);
  const auto& last = *with_lines.back();
  const AddressRange all{.begin = with_lines.front()->address, .end = last.address + last.size};
  return {.abbrev = make_abbreviations(),
          .info = make_info(all),
          .line = line.take(),
          .aranges = make_aranges(all)};
}

}  // namespace pyinject::weave
