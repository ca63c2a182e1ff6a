#include "python/objects/remote_objects.hpp"

#include "python/stacks/remote_text.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

namespace pyinject::python {

namespace {

using base::RemoteAddress;

// Bits of PyTypeObject.tp_flags, the same in 3.12 to 3.15 (Include/object.h).
constexpr std::uint64_t kInlineValues = std::uint64_t{1} << 2U;
constexpr std::uint64_t kManagedDict = std::uint64_t{1} << 4U;
constexpr std::uint64_t kHeapType = std::uint64_t{1} << 9U;
constexpr std::uint64_t kInt = std::uint64_t{1} << 24U;
constexpr std::uint64_t kList = std::uint64_t{1} << 25U;
constexpr std::uint64_t kTuple = std::uint64_t{1} << 26U;
constexpr std::uint64_t kBytes = std::uint64_t{1} << 27U;
constexpr std::uint64_t kStr = std::uint64_t{1} << 28U;
constexpr std::uint64_t kDict = std::uint64_t{1} << 29U;
constexpr std::uint64_t kException = std::uint64_t{1} << 30U;
constexpr std::uint64_t kClass = std::uint64_t{1} << 31U;

// Values of PyDictKeysObject.dk_kind (enum DictKeysKind).
constexpr std::uint8_t kGeneralKeys = 0;
constexpr std::uint8_t kSplitKeys = 2;

std::vector<RemoteAddress> without_nulls(const std::vector<std::uint64_t>& words) {
  std::vector<RemoteAddress> addresses;
  addresses.reserve(words.size());
  for (const auto word : words) {
    if (word != 0) {
      addresses.emplace_back(word);
    }
  }
  return addresses;
}

}  // namespace

std::optional<RemoteAddress> RemoteObjects::object_at(RemoteAddress at) const {
  const auto found = memory_.read_pointer(at);
  return found && !found->is_null() && found->value() % kWord == 0 ? found : std::nullopt;
}

std::optional<RemoteAddress> RemoteObjects::type_of(RemoteAddress object) const {
  return object.is_null() ? std::nullopt : object_at(object + stack_.type);
}

std::uint64_t RemoteObjects::flags_of(RemoteAddress object) const {
  const auto type = type_of(object);
  return type ? type_at(*type).flags : 0;
}

const RemoteObjects::Type& RemoteObjects::type_at(RemoteAddress type) const {
  constexpr std::size_t kMostTypes = 4096;
  if (types_.size() > kMostTypes) {
    types_.clear();
  }
  const auto [known, added] = types_.try_emplace(type.value());
  if (added) {
    const auto number = [this](RemoteAddress at) {
      return memory_.read_value<std::uint64_t>(at).value_or(0);
    };
    known->second = {.name = c_text(type + layout_.type_name).value_or(""),
                     .flags = number(type + layout_.type_flags),
                     .instance_size = number(type + layout_.instance_size)};
  }
  return known->second;
}

std::optional<std::string> RemoteObjects::c_text(RemoteAddress at) const {
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kMostName = 128;
  const auto begin = memory_.read_pointer(at);
  if (!begin || begin->is_null()) {
    return std::nullopt;
  }
  std::array<char, kMostName> name{};
  // Up to the end of the page, which may be the last readable one, then the rest.
  const auto first = std::min<std::size_t>(kMostName, kPage - begin->value() % kPage);
  auto bytes = std::as_writable_bytes(std::span{name});
  if (!memory_.read(*begin, bytes.first(first))) {
    return std::nullopt;
  }
  auto* end = std::find(name.begin(), name.begin() + first, '\0');
  if (end == name.begin() + first && first < kMostName &&
      memory_.read(*begin + first, bytes.subspan(first))) {
    end = std::find(name.begin(), name.end(), '\0');
  }
  return std::string{name.begin(), end};
}

std::string RemoteObjects::type_name(RemoteAddress object) const {
  const auto type = type_of(object);
  return type ? type_at(*type).name : std::string{};
}

bool RemoteObjects::any_base(RemoteAddress type,
                             const std::function<bool(const Type&)>& fits) const {
  constexpr std::uint64_t kMostBases = 64;
  if (fits(type_at(type))) {
    return true;
  }
  const auto order = object_at(type + layout_.type_order);
  if (!order) {
    return false;
  }
  const auto count = memory_.read_value<std::uint64_t>(*order + stack_.item_count).value_or(0);
  const auto bases = words(*order + layout_.tuple_items, std::min(count, kMostBases));
  return bases && std::ranges::any_of(*bases, [&](std::uint64_t base) {
           return base != 0 && fits(type_at(RemoteAddress{base}));
         });
}

bool RemoteObjects::is_a(RemoteAddress object, std::string_view name) const {
  const auto type = type_of(object);
  return type && any_base(*type, [name](const Type& base) { return base.name == name; });
}

RemoteObjects::Kind RemoteObjects::kind_of(RemoteAddress object) const {
  constexpr auto kFlagsOfKinds =
      std::to_array<std::pair<std::uint64_t, Kind>>({{kInt, Kind::kInt},
                                                     {kList, Kind::kList},
                                                     {kTuple, Kind::kTuple},
                                                     {kBytes, Kind::kBytes},
                                                     {kStr, Kind::kStr},
                                                     {kDict, Kind::kDict},
                                                     {kException, Kind::kException},
                                                     {kClass, Kind::kClass}});
  const auto type = type_of(object);
  const auto flags = type ? type_at(*type).flags : 0;
  for (const auto& [flag, kind] : kFlagsOfKinds) {
    if ((flags & flag) != 0) {
      return kind;
    }
  }
  // A class of the program can have these names, but is no static type.
  const auto derives = [&](std::string_view name) {
    return type && any_base(*type, [name](const Type& base) {
             return base.name == name && (base.flags & kHeapType) == 0;
           });
  };
  return derives("float")                         ? Kind::kFloat
         : derives("set") || derives("frozenset") ? Kind::kSet
                                                  : Kind::kNone;
}

bool RemoteObjects::is_static(RemoteAddress object, std::string_view name) const {
  const auto type = type_of(object);
  const auto* const found = type ? &type_at(*type) : nullptr;
  return found != nullptr && (found->flags & kHeapType) == 0 && found->name == name;
}

std::uint64_t RemoteObjects::instance_size(RemoteAddress object) const {
  const auto type = type_of(object);
  return type ? type_at(*type).instance_size : 0;
}

std::optional<std::string> RemoteObjects::text(RemoteAddress object) const {
  return (flags_of(object) & kStr) != 0 ? read_text(memory_, stack_, object) : std::nullopt;
}

std::optional<std::uint64_t> RemoteObjects::number(RemoteAddress object) const {
  // Digits of 30 bits. The tag: their number, and in two of the lowest three bits the sign.
  constexpr std::uint64_t kMostDigits = 3;
  constexpr unsigned kBits = 30;
  constexpr std::uint64_t kNegative = 2;
  const auto tag = memory_.read_value<std::uint64_t>(object + layout_.int_tag);
  if ((flags_of(object) & kInt) == 0 || !tag || (*tag & 3U) == kNegative ||
      *tag >> 3U > kMostDigits) {
    return std::nullopt;
  }
  std::uint64_t value = 0;
  for (std::uint64_t i = 0; i < *tag >> 3U; ++i) {
    const auto digit = memory_.read_value<std::uint32_t>(
        object + (layout_.int_digits + i * sizeof(std::uint32_t)));
    if (!digit || (i == 2 && *digit > 0xfU)) {
      return std::nullopt;
    }
    value |= std::uint64_t{*digit} << (kBits * i);
  }
  return value;
}

std::optional<std::vector<std::uint64_t>> RemoteObjects::words(RemoteAddress at,
                                                               std::uint64_t count) const {
  if (count > 3 * kMostItems) {
    return std::nullopt;
  }
  std::vector<std::uint64_t> words(count);
  if (count != 0 && !memory_.read(at, std::as_writable_bytes(std::span{words}))) {
    return std::nullopt;
  }
  return words;
}

std::optional<std::vector<RemoteObjects::Item>> RemoteObjects::items(RemoteAddress keys,
                                                                     RemoteAddress values,
                                                                     std::uint64_t most) const {
  constexpr std::uint8_t kMostLog2 = 27;
  const auto log2 = memory_.read_value<std::uint8_t>(keys + layout_.keys_log2_index_bytes);
  const auto kind = memory_.read_value<std::uint8_t>(keys + layout_.keys_kind);
  const auto all = memory_.read_value<std::uint64_t>(keys + layout_.keys_count);
  if (!log2 || !kind || !all || *log2 > kMostLog2 || *kind > kSplitKeys ||
      (values.is_null() == (*kind == kSplitKeys)) || (*all > kMostItems && most == kMostItems)) {
    return std::nullopt;
  }
  const auto count = std::min(*all, most);
  // An entry is its hash (only of general keys), key and value.
  const std::uint64_t before = *kind == kGeneralKeys ? 1 : 0;
  const std::uint64_t size = before + 2;
  const auto entries =
      words(keys + layout_.keys_indices + (std::uint64_t{1} << *log2), count * size);
  if (!entries) {
    return std::nullopt;
  }
  std::optional<std::vector<std::uint64_t>> separate;
  if (!values.is_null()) {
    separate = words(values, count);
    if (!separate) {
      return std::nullopt;
    }
  }
  std::vector<Item> items;
  for (std::uint64_t i = 0; i < count; ++i) {
    const RemoteAddress key{(*entries)[i * size + before]};
    const RemoteAddress value{separate ? (*separate)[i] : (*entries)[i * size + before + 1]};
    if (!key.is_null() && !value.is_null()) {
      items.push_back({.key = key, .value = value});
    }
  }
  return items;
}

std::optional<std::vector<RemoteObjects::Item>> RemoteObjects::items(RemoteAddress dict,
                                                                     std::uint64_t most) const {
  const auto keys = memory_.read_pointer(dict + layout_.dict_keys);
  const auto values = memory_.read_pointer(dict + layout_.dict_values);
  if ((flags_of(dict) & kDict) == 0 || !keys || keys->is_null() || !values) {
    return std::nullopt;
  }
  return items(*keys, values->is_null() ? *values : *values + layout_.first_value, most);
}

std::optional<std::vector<RemoteObjects::Item>> RemoteObjects::items(RemoteAddress dict) const {
  return items(dict, kMostItems);
}

std::optional<RemoteObjects::Items> RemoteObjects::first_items(RemoteAddress dict,
                                                               std::size_t most) const {
  constexpr std::size_t kRemoved = 100;  // entries of removed items before and between them
  const auto count = memory_.read_value<std::uint64_t>(dict + layout_.head);  // ma_used
  auto first = items(dict, most + kRemoved);
  if (!first || !count) {
    return std::nullopt;
  }
  first->resize(std::min(first->size(), most));
  return Items{.first = std::move(*first), .count = *count};
}

// A set is a hash table of keys and hashes. An empty place has no key; that of a removed key has
// one whose hash is -1.
std::optional<RemoteObjects::Elements> RemoteObjects::first_elements_of_set(
    RemoteAddress set, std::size_t most) const {
  constexpr std::uint64_t kPlacesAtOnce = 1024;
  constexpr std::uint64_t kPlacesPerElement = 64;  // CPython fills at least one of ten
  const auto mask = memory_.read_value<std::uint64_t>(set + layout_.set_mask);
  const auto count = memory_.read_value<std::uint64_t>(set + (layout_.set_mask - kWord));  // used
  const auto table = memory_.read_pointer(set + layout_.set_table);
  if (!mask || !count || !table || *mask == ~std::uint64_t{0}) {
    return std::nullopt;
  }
  Elements found{.first = {}, .count = *count};
  const auto end = std::min({*mask + 1, kMostItems, kPlacesPerElement * most});
  for (std::uint64_t begin = 0; begin < end; begin += kPlacesAtOnce) {
    const auto entries =
        words(*table + 2 * begin * kWord, 2 * std::min(kPlacesAtOnce, end - begin));
    if (!entries) {
      return std::nullopt;
    }
    for (std::size_t i = 0; i + 1 < entries->size(); i += 2) {
      if ((*entries)[i] == 0 || (*entries)[i + 1] == ~std::uint64_t{0}) {
        continue;
      }
      if (found.first.size() == most) {
        return found;
      }
      found.first.emplace_back((*entries)[i]);
    }
  }
  found.all = end == *mask + 1;
  return found;
}

std::optional<RemoteObjects::Elements> RemoteObjects::first_elements(RemoteAddress object,
                                                                     std::size_t most) const {
  const auto kind = kind_of(object);
  if (kind == Kind::kSet) {
    return first_elements_of_set(object, most);
  }
  if (kind != Kind::kList && kind != Kind::kTuple) {
    return std::nullopt;
  }
  const auto count = memory_.read_value<std::uint64_t>(object + stack_.item_count);
  const auto begin = kind == Kind::kList ? memory_.read_pointer(object + layout_.list_items)
                                         : std::optional{object + layout_.tuple_items};
  const auto found =
      count && begin ? words(*begin, std::min<std::uint64_t>(*count, most)) : std::nullopt;
  return found ? std::optional{Elements{
                     .first = without_nulls(*found), .count = *count, .all = *count <= most}}
               : std::nullopt;
}

std::optional<std::vector<RemoteAddress>> RemoteObjects::elements(RemoteAddress object,
                                                                  std::uint64_t most) const {
  auto found = first_elements(object, most);
  return found && found->all ? std::optional{std::move(found->first)} : std::nullopt;
}

std::optional<RemoteAddress> RemoteObjects::find(const std::vector<Item>& items,
                                                 std::string_view key) const {
  constexpr std::size_t kMostKey = 64;
  constexpr std::size_t kBatch = 512;
  const std::size_t size = stack_.ascii_data + std::min(key.size(), kMostKey);
  std::vector<std::byte> heads(size * std::min(items.size(), kBatch));
  const auto field = [&](std::span<const std::byte> head, std::uint64_t offset, auto value) {
    std::memcpy(&value, head.data() + offset, sizeof value);
    return value;
  };
  for (std::size_t begin = 0; begin < items.size(); begin += kBatch) {
    const std::size_t count = std::min(kBatch, items.size() - begin);
    std::vector<memory::ReadPiece> pieces;
    for (std::size_t i = 0; i < count; ++i) {
      pieces.push_back(
          {.from = items[begin + i].key, .into = std::span{heads}.subspan(i * size, size)});
    }
    memory_.read_each(pieces);
    for (std::size_t i = 0; i < count; ++i) {
      const auto head = std::span<const std::byte>{pieces[i].into};
      if (pieces[i].done && field(head, stack_.text_length, std::uint64_t{}) == key.size() &&
          (field(head, stack_.text_state, std::uint32_t{}) & stack_.text_form.ascii) != 0 &&
          std::memcmp(head.data() + stack_.ascii_data, key.data(),
                      std::min(key.size(), kMostKey)) == 0 &&
          text(items[begin + i].key) == key) {
        return items[begin + i].value;
      }
    }
  }
  return std::nullopt;
}

std::optional<RemoteAddress> RemoteObjects::item(RemoteAddress dict, std::string_view key) const {
  const auto all = items(dict);
  return all ? find(*all, key) : std::nullopt;
}

std::optional<RemoteAddress> RemoteObjects::attribute(RemoteAddress object,
                                                      std::string_view name) const {
  const auto type = type_of(object);
  if (!type) {
    return std::nullopt;
  }
  const auto flags = flags_of(object);
  if ((flags & kManagedDict) == 0) {
    constexpr std::int64_t kMostOffset = 4096;
    const auto offset = memory_.read_value<std::int64_t>(*type + layout_.dict_offset).value_or(0);
    const auto dict = offset > 0 && offset < kMostOffset
                          ? object_at(object + static_cast<std::uint64_t>(offset))
                          : std::nullopt;
    return dict ? item(*dict, name) : std::nullopt;
  }
  const auto dict = memory_.read_pointer(object - layout_.managed_dict);
  if (!dict) {
    return std::nullopt;
  }
  RemoteAddress values;
  if (!layout_.values_follow && dict->value() % 2 != 0) {
    values = *dict + 1;
  } else if (!dict->is_null()) {
    return item(*dict, name);
  } else if (layout_.values_follow && (flags & kInlineValues) != 0) {
    values = object + (instance_size(object) + layout_.first_value);
  }
  const auto keys = object_at(*type + layout_.cached_keys);
  const auto all = keys && !values.is_null() ? items(*keys, values, kMostItems) : std::nullopt;
  return all ? find(*all, name) : std::nullopt;
}

std::optional<RemoteAddress> RemoteObjects::global(RemoteAddress module,
                                                   std::string_view name) const {
  const auto dict = is_a(module, "module") ? object_at(module + layout_.module_dict) : std::nullopt;
  return dict ? item(*dict, name) : std::nullopt;
}

}  // namespace pyinject::python
