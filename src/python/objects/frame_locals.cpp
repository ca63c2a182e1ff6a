#include "python/objects/frame_locals.hpp"

#include "python/objects/value_text.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pyinject::python {

namespace {

using base::RemoteAddress;

// Bits of co_localspluskinds (Include/internal/pycore_code.h).
constexpr auto kCellOrFree = std::byte{0x40U | 0x80U};
// Bits of co_flags.
constexpr std::uint32_t kTakesArguments = 0x4;  // *args
constexpr std::uint32_t kTakesKeywords = 0x8;   // **kwargs
constexpr std::size_t kMostVariables = 100;
constexpr int kReads = 3;

class Frame {
 public:
  Frame(const RemoteObjects& objects, RemoteAddress frame, RemoteAddress code)
      : objects_{objects}, frame_{frame}, code_{code} {}

  [[nodiscard]] std::optional<Locals> locals() const;

 private:
  using Words = std::vector<std::uint64_t>;

  [[nodiscard]] std::optional<std::uint32_t> field(std::uint64_t offset) const {
    return objects_.memory().read_value<std::uint32_t>(code_ + offset);
  }
  [[nodiscard]] std::size_t count_arguments() const;
  // The first COUNT variables. nullopt: the frame is that of another function.
  [[nodiscard]] std::optional<Words> words(std::size_t count) const;
  [[nodiscard]] std::vector<std::byte> kinds(std::size_t count) const;

  const RemoteObjects& objects_;
  RemoteAddress frame_;
  RemoteAddress code_;
};

std::size_t Frame::count_arguments() const {
  const auto& layout = objects_.layout();
  const auto flags = field(layout.code_flags).value_or(0);
  std::size_t count = field(layout.argument_count).value_or(0);
  count += field(layout.keyword_count).value_or(0);
  return count + ((flags & kTakesArguments) != 0 ? 1 : 0) + ((flags & kTakesKeywords) != 0 ? 1 : 0);
}

std::optional<Frame::Words> Frame::words(std::size_t count) const {
  const auto& memory = objects_.memory();
  const auto& stack = objects_.stack();
  Words words(count);
  const auto executes = memory.read_value<std::uint64_t>(frame_ + stack.executable);
  if (!executes || (*executes & ~stack.executable_tags) != code_.value() ||
      (count != 0 &&
       !memory.read(frame_ + objects_.layout().locals, std::as_writable_bytes(std::span{words})))) {
    return std::nullopt;
  }
  return words;
}

std::vector<std::byte> Frame::kinds(std::size_t count) const {
  const auto at = objects_.object_at(code_ + objects_.layout().local_kinds);
  std::vector<std::byte> kinds(count);
  const bool read =
      at && objects_.memory().read(*at + objects_.stack().bytes_data, std::span{kinds});
  return read ? kinds : std::vector<std::byte>(count);
}

std::optional<Locals> Frame::locals() const {
  const auto& layout = objects_.layout();
  const auto all = field(layout.local_count);
  const auto names_at = objects_.object_at(code_ + layout.local_names);
  const auto names = names_at ? objects_.first_elements(*names_at, kMostVariables) : std::nullopt;
  if (!all || !names || names->count != *all) {
    return std::nullopt;
  }
  const auto count = names->first.size();
  const auto kind = kinds(count);
  const auto arguments = count_arguments();
  auto before = words(count);
  for (int attempt = 0; before && attempt < kReads; ++attempt) {
    Locals locals{.variables = {}, .left_out = *all - count};
    for (std::size_t i = 0; i < count; ++i) {
      RemoteAddress value{(*before)[i] & ~objects_.stack().executable_tags};
      // A variable that an inner function uses, once the function has made the cell.
      if ((kind[i] & kCellOrFree) != std::byte{} && objects_.is_static(value, "cell")) {
        value = objects_.object_at(value + layout.cell_content).value_or(RemoteAddress{});
      }
      if (!value.is_null()) {  // it has a value now
        locals.variables.push_back({.name = objects_.text(names->first[i]).value_or("?"),
                                    .value = value_text(objects_, value),
                                    .argument = i < arguments});
      }
    }
    // What it referred to before and after, it kept alive.
    auto after = words(count);
    if (before == after) {
      return locals;
    }
    before = std::move(after);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Locals> frame_locals(const RemoteObjects& objects, RemoteAddress frame,
                                   RemoteAddress code) {
  return Frame{objects, frame, code}.locals();
}

}  // namespace pyinject::python
