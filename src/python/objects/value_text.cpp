#include "python/objects/value_text.hpp"

#include "python/stacks/remote_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pyinject::python {

namespace {

using base::RemoteAddress;

constexpr std::size_t kMostCharacters = 200;  // then the rest is left out
constexpr std::size_t kMostOfText = 120;      // of one str or bytes
constexpr std::size_t kMostItems = 20;        // of one container
constexpr int kMostDepth = 5;

// Decimal digits of the absolute value with these DIGITS of 30 bits, the highest first.
std::string decimal(std::vector<std::uint32_t> digits) {
  constexpr std::uint64_t kPart = 1'000'000'000;
  std::vector<std::uint32_t> parts;  // of nine decimal digits, the lowest first
  while (!digits.empty()) {
    std::uint64_t rest = 0;
    for (auto& digit : digits) {
      const auto value = (rest << 30U) | digit;
      digit = static_cast<std::uint32_t>(value / kPart);
      rest = value % kPart;
    }
    parts.push_back(static_cast<std::uint32_t>(rest));
    digits.erase(digits.begin(),
                 std::ranges::find_if(digits, [](std::uint32_t digit) { return digit != 0; }));
  }
  std::string text = parts.empty() ? "0" : std::to_string(parts.back());
  while (parts.size() > 1) {
    parts.pop_back();
    text += fmt::format("{:09}", parts.back());
  }
  return text;
}

// As float.__repr__(): the shortest digits that mean this number.
std::string float_text(double value) {
  if (std::isnan(value)) {
    return "nan";
  }
  if (std::isinf(value)) {
    return value < 0 ? "-inf" : "inf";
  }
  auto text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) {
    text += ".0";
  }
  return text;
}

// Between QUOTES, with a backslash before what they cannot have between them. IS_BYTES: only ASCII.
std::string quoted(std::string_view text, bool is_bytes) {
  const char quote =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"'
                                                                                            : '\'';
  std::string result{quote};
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (character == quote || character == '\\') {
      result += '\\';
      result += character;
    } else if (character == '\n' || character == '\r' || character == '\t') {
      result += character == '\n' ? "\\n" : character == '\r' ? "\\r" : "\\t";
    } else if (byte < ' ' || byte == 0x7f || (is_bytes && byte > 0x7f)) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += character;
    }
  }
  return result + quote;
}

class Writer {
 public:
  explicit Writer(const RemoteObjects& objects) : objects_{objects}, head_{objects.layout().head} {}

  void value(RemoteAddress object, int depth);
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  using Kind = RemoteObjects::Kind;

  [[nodiscard]] bool full() const { return text_.size() >= kMostCharacters; }
  [[nodiscard]] std::optional<std::string> integer(RemoteAddress object) const;
  [[nodiscard]] std::optional<std::string> text(RemoteAddress object) const;
  [[nodiscard]] std::optional<std::string> bytes(RemoteAddress object) const;
  // COUNT bytes at DATA.
  [[nodiscard]] std::optional<std::string> bytes_at(std::optional<RemoteAddress> data,
                                                    std::uint64_t count) const;
  [[nodiscard]] std::optional<double> number(RemoteAddress object, std::uint64_t offset) const;
  [[nodiscard]] std::string name_at(RemoteAddress at) const;
  // False: not read.
  [[nodiscard]] bool simple(RemoteAddress object, Kind kind);
  // DERIVED: its class is one of the program, whose name is around it.
  [[nodiscard]] bool container(RemoteAddress object, Kind kind, bool derived, int depth);
  void sequence(const RemoteObjects::Elements& elements, int depth);
  void dict(const RemoteObjects::Items& items, int depth);
  [[nodiscard]] bool special(RemoteAddress object, std::string_view type, int depth);
  [[nodiscard]] bool function(RemoteAddress object, std::string_view type);
  // The values at the start of an object.
  void arguments(RemoteAddress object, std::size_t count, int depth);

  const RemoteObjects& objects_;
  std::uint64_t head_;
  std::string text_;
  std::vector<RemoteAddress> open_;  // the containers around the value
};

std::optional<std::string> Writer::integer(RemoteAddress object) const {
  constexpr std::uint64_t kMostDigits = 20;
  constexpr unsigned kBits = 30;
  const auto& memory = objects_.memory();
  const auto tag = memory.read_value<std::uint64_t>(object + objects_.layout().int_tag);
  if (!tag) {
    return std::nullopt;
  }
  const auto count = *tag >> 3U;  // below: two bits for the sign, and one that is not for the value
  const std::string_view sign = (*tag & 3U) == 2 ? "-" : "";
  if (count > kMostDigits) {
    return fmt::format("<int of some {} bits>", count * kBits);
  }
  std::vector<std::uint32_t> digits(count);
  if (count != 0 && !memory.read(object + objects_.layout().int_digits,
                                 std::as_writable_bytes(std::span{digits}))) {
    return std::nullopt;
  }
  const bool valid = std::ranges::all_of(
      digits, [](std::uint32_t digit) { return digit < std::uint32_t{1} << kBits; });
  std::ranges::reverse(digits);
  return valid ? std::optional{fmt::format("{}{}", sign, decimal(std::move(digits)))}
               : std::nullopt;
}

std::optional<std::string> Writer::text(RemoteAddress object) const {
  const auto read = read_text_start(objects_.memory(), objects_.stack(), object, kMostOfText);
  return read ? std::optional{quoted(read->text, false) + (read->whole ? "" : "...")}
              : std::nullopt;
}

std::optional<std::string> Writer::bytes_at(std::optional<RemoteAddress> data,
                                            std::uint64_t count) const {
  std::string read(std::min<std::uint64_t>(count, kMostOfText), '\0');
  if (!read.empty() &&
      (!data || !objects_.memory().read(*data, std::as_writable_bytes(std::span{read})))) {
    return std::nullopt;
  }
  return "b" + quoted(read, true) + (count > read.size() ? "..." : "");
}

std::optional<std::string> Writer::bytes(RemoteAddress object) const {
  const auto& stack = objects_.stack();
  const auto count = objects_.memory().read_value<std::uint64_t>(object + stack.item_count);
  return count ? bytes_at(object + stack.bytes_data, *count) : std::nullopt;
}

std::optional<double> Writer::number(RemoteAddress object, std::uint64_t offset) const {
  return objects_.memory().read_value<double>(object + head_ + offset);
}

std::string Writer::name_at(RemoteAddress at) const {
  const auto name = objects_.object_at(at);
  return name ? objects_.text(*name).value_or("?") : "?";
}

bool Writer::simple(RemoteAddress object, Kind kind) {
  const auto read = kind == Kind::kInt     ? integer(object)
                    : kind == Kind::kStr   ? text(object)
                    : kind == Kind::kBytes ? bytes(object)
                                           : std::nullopt;
  text_ += read.value_or("");
  return read.has_value();
}

void Writer::sequence(const RemoteObjects::Elements& elements, int depth) {
  for (std::size_t i = 0; i < elements.first.size() && !full(); ++i) {
    text_ += i == 0 ? "" : ", ";
    value(elements.first[i], depth + 1);
  }
  if (elements.first.size() < elements.count && !full()) {
    text_ += fmt::format("{}... {} in all", elements.first.empty() ? "" : ", ", elements.count);
  }
}

void Writer::dict(const RemoteObjects::Items& items, int depth) {
  for (std::size_t i = 0; i < items.first.size() && !full(); ++i) {
    text_ += i == 0 ? "" : ", ";
    value(items.first[i].key, depth + 1);
    text_ += ": ";
    value(items.first[i].value, depth + 1);
  }
  if (items.first.size() < items.count && !full()) {
    text_ += fmt::format("{}... {} in all", items.first.empty() ? "" : ", ", items.count);
  }
}

bool Writer::container(RemoteAddress object, Kind kind, bool derived, int depth) {
  const bool tuple = kind == Kind::kTuple;
  const std::string_view around = kind == Kind::kList ? "[]" : !tuple ? "{}" : derived ? "" : "()";
  const auto begin = around.substr(0, around.size() / 2);
  const auto end = around.substr(around.size() / 2);
  if (depth >= kMostDepth || std::ranges::find(open_, object) != open_.end()) {
    text_ += fmt::format("{}...{}", begin, end);
    return true;
  }
  std::optional<RemoteObjects::Elements> elements;
  std::optional<RemoteObjects::Items> items;
  if (kind == Kind::kDict) {
    items = objects_.first_items(object, kMostItems);
  } else {
    elements = objects_.first_elements(object, kMostItems);
  }
  if (!elements && !items) {
    return false;
  }
  if (kind == Kind::kSet && elements->count == 0) {
    text_ += derived ? "" : "set()";
    return true;
  }
  open_.push_back(object);
  text_ += begin;
  if (items) {
    dict(*items, depth);
  } else {
    sequence(*elements, depth);
    text_ += tuple && !derived && elements->count == 1 ? "," : "";
  }
  text_ += end;
  open_.pop_back();
  return true;
}

void Writer::arguments(RemoteAddress object, std::size_t count, int depth) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = object + (head_ + i * RemoteObjects::kWord);
    text_ += i == 0 ? "" : ", ";
    value(objects_.object_at(at).value_or(RemoteAddress{}), depth + 1);
  }
}

bool Writer::function(RemoteAddress object, std::string_view type) {
  const auto& layout = objects_.layout();
  const auto address = object.value();
  // The qualified names: in PyFunctionObject before the code, in PyGenObject five words before the
  // frame (the same in 3.12 to 3.15).
  if (type == "function") {
    text_ += fmt::format("<function {} at 0x{:x}>",
                         name_at(object + (layout.function_code - RemoteObjects::kWord)), address);
  } else if (type == "method") {
    const auto function = objects_.object_at(object + layout.method_function);
    const auto self = objects_.object_at(object + layout.method_self);
    if (!function || !self || !objects_.is_static(*function, "function")) {
      return false;
    }
    text_ += fmt::format("<bound method {} of {} at 0x{:x}>",
                         name_at(*function + (layout.function_code - RemoteObjects::kWord)),
                         objects_.type_name(*self), self->value());
  } else if (type == "builtin_function_or_method") {
    const auto method = objects_.object_at(object + layout.builtin_method);
    const auto name = method ? objects_.c_text(*method) : std::nullopt;
    if (!name) {
      return false;
    }
    text_ += fmt::format("<built-in function {}>", *name);
  } else if (type == "generator" || type == "coroutine" || type == "async_generator") {
    text_ +=
        fmt::format("<{} {} at 0x{:x}>", type,
                    name_at(object + (layout.generator_frame - 5 * RemoteObjects::kWord)), address);
  } else {
    return false;
  }
  return true;
}

bool Writer::special(RemoteAddress object, std::string_view type, int depth) {
  constexpr auto kSingle = std::to_array<std::pair<std::string_view, std::string_view>>(
      {{"NoneType", "None"}, {"ellipsis", "Ellipsis"}, {"NotImplementedType", "NotImplemented"}});
  const auto* const single =
      std::ranges::find(kSingle, type, &std::pair<std::string_view, std::string_view>::first);
  if (single != kSingle.end()) {
    text_ += single->second;
    return true;
  }
  if (type == "bool") {
    text_ += objects_.number(object).value_or(0) != 0 ? "True" : "False";
    return true;
  }
  if (type == "complex") {
    const auto real = number(object, 0);
    const auto imaginary = number(object, sizeof(double));
    if (!real || !imaginary) {
      return false;
    }
    text_ += fmt::format("complex({}, {})", float_text(*real), float_text(*imaginary));
    return true;
  }
  if (type == "range" || type == "slice") {
    text_ += fmt::format("{}(", type);
    arguments(object, 3, depth);
    text_ += ")";
    return true;
  }
  if (type == "bytearray") {
    const auto& stack = objects_.stack();
    const auto count = objects_.memory().read_value<std::uint64_t>(object + stack.item_count);
    // PyByteArrayObject: the number, the size that is allocated, the buffer, and the first byte.
    const auto begin =
        objects_.memory().read_pointer(object + (stack.item_count + 3 * RemoteObjects::kWord));
    const auto read = count ? bytes_at(begin, *count) : std::nullopt;
    text_ += read ? fmt::format("bytearray({})", *read) : "";
    return read.has_value();
  }
  if (type == "module") {
    const auto name = objects_.global(object, "__name__");
    text_ += fmt::format("<module {}>", name ? text(*name).value_or("?") : "?");
    return true;
  }
  return function(object, type);
}

void Writer::value(RemoteAddress object, int depth) {
  if (full()) {
    text_ += "...";
    return;
  }
  const auto type = objects_.type_name(object);
  if (type.empty()) {
    text_ += "?";
    return;
  }
  const auto kind = objects_.kind_of(object);
  const bool own = objects_.is_static(object, type);  // no class of the program
  const auto begin = text_.size();
  if (own && special(object, type, depth)) {
    return;
  }
  text_.resize(begin);
  if (kind == Kind::kClass) {
    text_ += fmt::format("<class {}>", quoted(objects_.name_of_type(object), false));
    return;
  }
  const bool derived =
      !own || (type != "int" && type != "str" && type != "bytes" && type != "list" &&
               type != "tuple" && type != "set" && type != "dict" && type != "float");
  text_ += derived ? type + "(" : "";
  bool done = false;
  if (kind == Kind::kException) {
    // PyBaseExceptionObject: its dictionary and its arguments.
    const auto arguments = objects_.object_at(object + (head_ + RemoteObjects::kWord));
    const auto elements =
        arguments ? objects_.first_elements(*arguments, kMostItems) : std::nullopt;
    if (elements) {
      sequence(*elements, depth);
      done = true;
    }
  } else if (kind == Kind::kFloat) {
    const auto read = number(object, 0);
    text_ += read ? float_text(*read) : "";
    done = read.has_value();
  } else if (kind != Kind::kNone) {
    done = simple(object, kind) || container(object, kind, derived, depth);
  }
  if (done) {
    text_ += derived ? ")" : "";
    return;
  }
  text_.resize(begin);
  text_ += fmt::format("<{} at 0x{:x}>", type, object.value());
}

}  // namespace

std::string value_text(const RemoteObjects& objects, base::RemoteAddress object) {
  Writer writer{objects};
  writer.value(object, 0);
  return writer.take();
}

}  // namespace pyinject::python
