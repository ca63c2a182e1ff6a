#include "elf/eh_frame.hpp"

#include "base/byte_cursor.hpp"

#include <algorithm>
#include <map>
#include <string_view>

namespace pyinject::elf {
using base::ByteCursor;

namespace {

constexpr std::size_t kMostCommon = 100'000;
constexpr std::uint64_t kMostProgram = 64U << 10U;  // bytes; real programs have some dozens

// DW_EH_PE_*: format in the lower half, base in the upper half.
constexpr PointerEncoding kAbsolute = 0x00;
constexpr PointerEncoding kFormUnsigned4 = 0x03;
constexpr PointerEncoding kFormUnsigned8 = 0x04;
constexpr PointerEncoding kFormSigned4 = 0x0b;
constexpr PointerEncoding kFormSigned8 = 0x0c;
constexpr PointerEncoding kRelativeToItself = 0x10;
constexpr PointerEncoding kOmitted = 0xff;

// Reads a value in one of the formats above; fails for others, which x86-64 compilers do not use.
std::uint64_t value_of(ByteCursor& cursor, PointerEncoding encoding) {
  switch (encoding & 0x0fU) {
    case kAbsolute:
    case kFormUnsigned8:
    case kFormSigned8:
      return cursor.number<std::uint64_t>();
    case kFormUnsigned4:
      return cursor.number<std::uint32_t>();
    case kFormSigned4:
      return static_cast<std::uint64_t>(std::int64_t{cursor.number<std::int32_t>()});
    default:
      cursor.fail();
      return 0;
  }
}

// An entry without its length; BYTES start with the field that distinguishes the two kinds.
struct Entry {
  std::uint64_t offset = 0;  // of that field
  std::span<const std::byte> bytes;
};

class Parser {
 public:
  Parser(std::span<const std::byte> bytes, base::ElfAddress address, std::size_t most_functions)
      : bytes_{bytes}, address_{address}, most_functions_{most_functions} {}

  void run(std::vector<CommonInformation>& common, std::vector<UnwoundFunction>& functions) {
    ByteCursor cursor{bytes_};
    while (functions.size() < most_functions_ && common.size() < kMostCommon) {
      const std::uint64_t begin = bytes_.size() - cursor.left().size();
      std::uint64_t length = cursor.number<std::uint32_t>();
      if (length == 0xffffffff) {
        length = cursor.number<std::uint64_t>();
      }
      const Entry entry{bytes_.size() - cursor.left().size(), cursor.take(length)};
      if (cursor.failed() || length < sizeof(std::uint32_t)) {
        return;  // a length of zero marks the end; otherwise damaged
      }
      ByteCursor fields{entry.bytes};
      const auto back = fields.number<std::uint32_t>();
      if (back == 0) {
        if (const auto parsed = parse_common(fields)) {
          known_.emplace(begin, common.size());
          common.push_back(*parsed);
        }
      } else if (const auto found = known_.find(entry.offset - back); found != known_.end()) {
        if (auto function = parse_function(fields, common[found->second])) {
          function->common = found->second;
          functions.push_back(*function);
        }
      }
    }
  }

 private:
  static std::optional<CommonInformation> parse_common(ByteCursor fields) {
    CommonInformation common;
    const auto version = fields.number<std::uint8_t>();
    const auto rest = fields.left();
    const auto end = std::ranges::find(rest, std::byte{0});
    if ((version != 1 && version != 3) || end == rest.end()) {
      return std::nullopt;
    }
    const auto letters = fields.take(static_cast<std::uint64_t>(end - rest.begin()));
    (void)fields.take(1);
    common.code_alignment = fields.unsigned_leb();
    common.data_alignment = fields.signed_leb();
    (void)(version == 1 ? fields.number<std::uint8_t>() : fields.unsigned_leb());  // x86-64: 16
    if (!letters.empty()) {
      common.augmented = letters.front() == std::byte{'z'};
      ByteCursor data{fields.take(fields.unsigned_leb())};
      if (!common.augmented || !parse_augmentation(letters.subspan(1), data, common)) {
        return std::nullopt;
      }
    }
    common.program = fields.left();
    return fields.failed() || common.program.size() > kMostProgram ? std::nullopt
                                                                   : std::optional{common};
  }

  static bool parse_augmentation(std::span<const std::byte> letters, ByteCursor& data,
                                 CommonInformation& common) {
    for (const auto letter : letters) {
      switch (static_cast<char>(letter)) {
        case 'R':
          common.encoding = data.number<PointerEncoding>();
          break;
        case 'P':  // a personality routine with its encoding
          (void)value_of(data, data.number<PointerEncoding>());
          break;
        case 'L':
          (void)data.number<PointerEncoding>();
          break;
        case 'S':
          common.signal_frame = true;
          break;
        default:
          return false;
      }
    }
    return !data.failed();
  }

  [[nodiscard]] std::optional<UnwoundFunction> parse_function(
      ByteCursor fields, const CommonInformation& common) const {
    UnwoundFunction function;
    const auto relative = common.encoding & 0xf0U;
    const std::uint64_t place = address_.value() + offset_of(fields);
    const auto begin = value_of(fields, common.encoding);
    function.size = value_of(fields, common.encoding & 0x07U);  // a size is unsigned
    if (common.augmented) {
      (void)fields.take(fields.unsigned_leb());
    }
    function.program = fields.left();
    const bool known = relative == 0 || relative == kRelativeToItself;
    if (fields.failed() || !known || common.encoding == kOmitted ||
        function.program.size() > kMostProgram) {
      return std::nullopt;
    }
    function.begin = base::ElfAddress{begin + (relative == 0 ? 0 : place)};
    return function;
  }

  [[nodiscard]] std::uint64_t offset_of(const ByteCursor& cursor) const {
    return static_cast<std::uint64_t>(cursor.left().data() - bytes_.data());
  }

  std::span<const std::byte> bytes_;
  base::ElfAddress address_;
  std::size_t most_functions_;
  std::map<std::uint64_t, std::size_t> known_;  // by offset
};

// The end of the entries, which is after a length of zero, or how much of the section must be read
// to find it.
struct EntriesEnd {
  bool found = false;
  std::uint64_t at = 0;  // if not found: read at least this much
};
EntriesEnd end_of_entries(std::span<const std::byte> bytes) {
  ByteCursor cursor{bytes};
  while (true) {
    const auto at = bytes.size() - cursor.left().size();
    std::uint64_t length = cursor.number<std::uint32_t>();
    if (length == 0 && !cursor.failed()) {
      return {.found = true, .at = bytes.size() - cursor.left().size()};
    }
    length = length == 0xffffffff ? cursor.number<std::uint64_t>() : length;
    const auto begin = bytes.size() - cursor.left().size();
    if (cursor.failed() || length > bytes.size() - begin) {
      const auto behind = begin + length;
      return {.found = false, .at = cursor.failed() || behind < begin ? at : behind};
    }
    (void)cursor.take(length);
  }
}

// A sparse file is cheap to make: keeps only the part of a section before the end of the table.
std::optional<std::vector<std::byte>> read_entries(const ElfFile& file, const Section& section,
                                                   base::Allowance& memory) {
  constexpr std::uint64_t kFirst = 256U << 10U;
  constexpr std::uint64_t kTimes = 4;
  for (std::uint64_t size = kFirst;;) {
    const auto part = std::min(size, section.size);
    if (part > memory.left()) {
      (void)memory.take(part);
      return std::nullopt;
    }
    auto bytes = file.read_at(section.address, static_cast<std::size_t>(part));
    const auto end = bytes ? end_of_entries(*bytes) : EntriesEnd{};
    if (end.found) {
      bytes->resize(end.at);
      bytes->shrink_to_fit();
    }
    if (!bytes || end.found || part == section.size) {
      return bytes && memory.take(bytes->size()) ? std::move(bytes) : std::nullopt;
    }
    size = std::max(size * kTimes, end.at);
  }
}

}  // namespace

std::optional<EhFrame> EhFrame::of(const ElfFile& file, base::Allowance& memory) {
  const auto section = file.section(".eh_frame");
  if (!section || !section->in_file) {
    return std::nullopt;
  }
  auto bytes = read_entries(file, *section, memory);
  if (!bytes) {
    return std::nullopt;
  }
  // Sorting them takes the same amount again.
  const auto most = memory.left() / (2 * sizeof(UnwoundFunction));
  EhFrame table{std::move(*bytes), section->address,
                static_cast<std::size_t>(std::min<std::uint64_t>(most, kMostFunctions))};
  return memory.take(table.memory()) ? std::optional{std::move(table)} : std::nullopt;
}

EhFrame::EhFrame(std::vector<std::byte> bytes, base::ElfAddress address, std::size_t most_functions)
    : bytes_{std::move(bytes)} {
  Parser{bytes_, address, most_functions}.run(common_, functions_);
  functions_.shrink_to_fit();
  if (!std::ranges::is_sorted(functions_, {}, &UnwoundFunction::begin)) {
    std::ranges::stable_sort(functions_, {}, &UnwoundFunction::begin);
  }
  // If BOLT rewrites a function in place, its new entry comes before the old one (llvm-bolt 19,
  // without relocations).
  functions_.erase(
      std::unique(functions_.begin(), functions_.end(),
                  [](const auto& left, const auto& right) { return left.begin == right.begin; }),
      functions_.end());
}

const UnwoundFunction* EhFrame::function_at(base::ElfAddress pc) const {
  const auto behind = std::ranges::upper_bound(functions_, pc, {}, &UnwoundFunction::begin);
  return behind == functions_.begin() || !std::prev(behind)->contains(pc) ? nullptr
                                                                          : &*std::prev(behind);
}

std::optional<UnwindRow> EhFrame::row_at(base::ElfAddress pc, base::Allowance& steps) const {
  const auto* const function = function_at(pc);
  return function == nullptr ? std::nullopt
                             : run_unwind_programs(common_[function->common], *function, pc, steps);
}

std::uint64_t EhFrame::memory() const {
  return functions_.capacity() * sizeof(UnwoundFunction) +
         common_.capacity() * sizeof(CommonInformation);
}

}  // namespace pyinject::elf
