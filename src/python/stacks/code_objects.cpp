#include "python/stacks/code_objects.hpp"

#include "python/stacks/remote_text.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace pyinject::python {

namespace {

constexpr std::size_t kManyBytes = std::size_t{64} << 20U;   // start again with an empty cache
constexpr std::size_t kMostBytes = std::size_t{256} << 20U;  // absolute limit
constexpr std::uint64_t kUnit = 2;                           // bytes per instruction

template <typename Value>
Value field(std::span<const std::byte> head, std::uint64_t offset) {
  Value value{};
  std::memcpy(&value, head.data() + offset, sizeof value);
  return value;
}

bool equal(std::span<const std::byte> one, std::span<const std::byte> other) {
  return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size()) == 0;
}

std::size_t bytes_of(const CodeNames& names) {
  return sizeof names + names.qualname.size() + names.file.size();
}

std::size_t bytes_of(const CodeObject& object) {
  return sizeof object - sizeof object.names + bytes_of(object.names) +
         object.lines.size() * sizeof(std::uint64_t) + object.head.size();
}

}  // namespace

CodeObjects::CodeObjects(const memory::MemoryReader& memory, const StackLayout& layout,
                         base::RemoteAddress code_type)
    : memory_{memory},
      layout_{layout},
      code_type_{code_type},
      head_size_{
          std::max({layout.type + 8, layout.item_count + 8, layout.file_name + 8,
                    layout.qualified_name + 8, layout.line_table + 8, layout.first_line + 4})} {}

void CodeObjects::begin_round() {
  ++round_;
  for (const auto& [serial, names] : replaced_) {
    bytes_ -= bytes_of(names);
  }
  replaced_.clear();
  if (bytes_ > kManyBytes) {
    forget();
  }
}

void CodeObjects::forget() {
  for (auto& [address, object] : known_) {
    replace(object);
  }
  known_.clear();
}

void CodeObjects::replace(CodeObject& object) {
  bytes_ -= bytes_of(object);
  if (object.round == round_) {
    bytes_ += bytes_of(object.names);
    replaced_.emplace(object.serial, std::move(object.names));
  }
}

void CodeObjects::recognise(std::span<const base::RemoteAddress> codes) {
  heads_.resize(codes.size() * head_size_);
  pieces_.clear();
  for (std::size_t i = 0; i < codes.size(); ++i) {
    pieces_.push_back(
        {.from = codes[i], .into = std::span{heads_}.subspan(i * head_size_, head_size_)});
  }
  memory_.read_each(pieces_);
  for (const auto& piece : pieces_) {
    const auto known = known_.find(piece.from.value());
    if (piece.done && known != known_.end() && equal(known->second.head, constant(piece.into))) {
      known->second.round = round_;
    }
  }
}

bool CodeObjects::look_at(std::span<const base::RemoteAddress> codes) {
  recognise(codes);
  for (const auto& piece : pieces_) {
    if (!piece.done) {
      return false;
    }
    const auto known = known_.find(piece.from.value());
    if (known != known_.end()) {
      if (equal(known->second.head, constant(piece.into))) {
        continue;
      }
      replace(known->second);
      known_.erase(known);
    }
    auto object = read(piece.from, piece.into);
    if (!object) {
      return false;
    }
    object->serial = ++last_serial_;
    object->round = round_;
    const auto head = constant(piece.into);
    object->head.assign(head.begin(), head.end());
    bytes_ += bytes_of(*object);
    known_.emplace(piece.from.value(), std::move(*object));
  }
  return true;
}

std::span<const std::byte> CodeObjects::constant(std::span<const std::byte> head) const {
  return head.subspan(layout_.type);
}

std::optional<CodeObject> CodeObjects::read(base::RemoteAddress code,
                                            std::span<const std::byte> head) const {
  if (field<std::uint64_t>(head, layout_.type) != code_type_.value() || bytes_ > kMostBytes) {
    return std::nullopt;
  }
  auto qualname = read_text(
      memory_, layout_, base::RemoteAddress{field<std::uint64_t>(head, layout_.qualified_name)});
  auto file = read_text(memory_, layout_,
                        base::RemoteAddress{field<std::uint64_t>(head, layout_.file_name)});
  const auto first_line = field<std::int32_t>(head, layout_.first_line);
  CodeObject object;
  object.names.first_line = static_cast<std::uint32_t>(std::max(first_line, 0));
  object.lines = read_lines(base::RemoteAddress{field<std::uint64_t>(head, layout_.line_table)},
                            object.names.first_line);
  object.code_bytes = kUnit * field<std::uint64_t>(head, layout_.item_count);
  // All the data read belongs to one object if the object is still unchanged.
  std::vector<std::byte> again(head.size());
  if (!qualname || !file || !memory_.read(code, again) || !equal(constant(head), constant(again))) {
    return std::nullopt;
  }
  object.names.qualname = std::move(*qualname);
  object.names.file = std::move(*file);
  return object;
}

LineTable CodeObjects::read_lines(base::RemoteAddress table, std::uint32_t first_line) const {
  const auto size = memory_.read_value<std::uint64_t>(table + layout_.item_count);
  if (table.is_null() || !size) {
    return {};
  }
  std::vector<std::byte> bytes(std::min<std::uint64_t>(*size, LineTable::kMostBytes));
  return memory_.read(table + layout_.bytes_data, bytes) ? LineTable{bytes, first_line}
                                                         : LineTable{};
}

const CodeObject* CodeObjects::find(base::RemoteAddress code) const {
  const auto known = known_.find(code.value());
  return known == known_.end() || known->second.round != round_ ? nullptr : &known->second;
}

const CodeNames* CodeObjects::names(base::RemoteAddress code, std::uint64_t serial) const {
  if (const auto* const known = find(code); known != nullptr && known->serial == serial) {
    return &known->names;
  }
  const auto replaced = replaced_.find(serial);
  return replaced == replaced_.end() ? nullptr : &replaced->second;
}

std::uint32_t CodeObjects::line(const CodeObject& object, base::RemoteAddress code,
                                base::RemoteAddress address) const {
  const std::uint64_t begin = (code + layout_.byte_code).value();
  if (address.value() + kUnit == begin) {
    return object.names.first_line;  // 3.12, call not started: instruction before the first
  }
  const std::uint64_t offset = address.value() - begin;
  return offset < object.code_bytes ? object.lines.line_at(offset) : 0;
}

}  // namespace pyinject::python
