// Reads a target's built-in objects: types, attributes, dictionaries, sequences. Pure: any memory
// in, values out. Nothing is trusted: all sizes are limited, and all pointers may lead anywhere.
#pragma once

#include "memory/process_memory.hpp"
#include "pyinject/base/remote_address.hpp"
#include "python/layout/object_layout.hpp"
#include "python/layout/stack_layout.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace pyinject::python {

// Reads each type once, so an object of this class must not live longer than types can be assumed
// to do.
class RemoteObjects {
 public:
  static constexpr std::uint64_t kWord = sizeof(std::uint64_t);
  // Longer containers are not read.
  static constexpr std::uint64_t kMostItems = std::uint64_t{1} << 17U;

  struct Item {
    base::RemoteAddress key;
    base::RemoteAddress value;
  };

  RemoteObjects(const memory::MemoryReader& memory, const StackLayout& stack,
                const ObjectLayout& layout)
      : memory_{memory}, stack_{stack}, layout_{layout} {}

  // The word at AT, if it can point to an object.
  [[nodiscard]] std::optional<base::RemoteAddress> object_at(base::RemoteAddress at) const;

  // What OBJECT's class is derived from, or is.
  enum class Kind {
    kNone,  // of these
    kInt,
    kFloat,
    kStr,
    kBytes,
    kList,
    kTuple,
    kSet,  // or a frozenset
    kDict,
    kException,
    kClass,
  };
  [[nodiscard]] Kind kind_of(base::RemoteAddress object) const;

  // tp_name of OBJECT's type, which is "_thread.lock" for a type that C code defines, and "Thread"
  // for a class in Python. Empty: no object.
  [[nodiscard]] std::string type_name(base::RemoteAddress object) const;
  // tp_name of TYPE itself.
  [[nodiscard]] std::string name_of_type(base::RemoteAddress type) const {
    return type_at(type).name;
  }
  // Whether OBJECT's type or one of its base types has this tp_name.
  [[nodiscard]] bool is_a(base::RemoteAddress object, std::string_view name) const;
  // Whether OBJECT has CPython's own type of this name: no program can define one.
  [[nodiscard]] bool is_static(base::RemoteAddress object, std::string_view name) const;
  // tp_basicsize of OBJECT's type; 0: no object.
  [[nodiscard]] std::uint64_t instance_size(base::RemoteAddress object) const;

  // The value of a str, or of an int from 0 to 2^64 - 1.
  [[nodiscard]] std::optional<std::string> text(base::RemoteAddress object) const;
  [[nodiscard]] std::optional<std::uint64_t> number(base::RemoteAddress object) const;
  // The C string to which the pointer at AT leads, up to 128 bytes.
  [[nodiscard]] std::optional<std::string> c_text(base::RemoteAddress at) const;

  // All items of a dict, all elements of a set, a list or a tuple. nullopt: OBJECT is none, has
  // room for more than MOST, or changed while it was read.
  [[nodiscard]] std::optional<std::vector<Item>> items(base::RemoteAddress dict) const;
  [[nodiscard]] std::optional<std::vector<base::RemoteAddress>> elements(
      base::RemoteAddress object, std::uint64_t most = kMostItems) const;

  // The first ones, at most MOST, of COUNT. nullopt: OBJECT is none, or changed while it was read.
  struct Elements {
    std::vector<base::RemoteAddress> first;
    std::uint64_t count = 0;
    bool all = false;  // nothing is left out
  };
  struct Items {
    std::vector<Item> first;
    std::uint64_t count = 0;
  };
  [[nodiscard]] std::optional<Elements> first_elements(base::RemoteAddress object,
                                                       std::size_t most) const;
  [[nodiscard]] std::optional<Items> first_items(base::RemoteAddress dict, std::size_t most) const;

  // The value of a dict's item with a str KEY, which must be ASCII.
  [[nodiscard]] std::optional<base::RemoteAddress> item(base::RemoteAddress dict,
                                                        std::string_view key) const;
  // The value of an instance's own attribute; not one of its class.
  [[nodiscard]] std::optional<base::RemoteAddress> attribute(base::RemoteAddress object,
                                                             std::string_view name) const;
  // The value of a module's global variable.
  [[nodiscard]] std::optional<base::RemoteAddress> global(base::RemoteAddress module,
                                                          std::string_view name) const;

  [[nodiscard]] const memory::MemoryReader& memory() const { return memory_; }
  [[nodiscard]] const ObjectLayout& layout() const { return layout_; }
  [[nodiscard]] const StackLayout& stack() const { return stack_; }

 private:
  struct Type {
    std::string name;
    std::uint64_t flags = 0;
    std::uint64_t instance_size = 0;
  };
  [[nodiscard]] std::optional<base::RemoteAddress> type_of(base::RemoteAddress object) const;
  [[nodiscard]] std::uint64_t flags_of(base::RemoteAddress object) const;
  // Whether TYPE or one of its base types fits.
  [[nodiscard]] bool any_base(base::RemoteAddress type,
                              const std::function<bool(const Type&)>& fits) const;
  // Reads each type once. The result is valid until the next call.
  [[nodiscard]] const Type& type_at(base::RemoteAddress type) const;
  // VALUES: the first of the values of a dict that shares its keys; null: the keys have them. MOST
  // entries are read, of which some may be empty; kMostItems: all, or none.
  [[nodiscard]] std::optional<std::vector<Item>> items(base::RemoteAddress keys,
                                                       base::RemoteAddress values,
                                                       std::uint64_t most) const;
  [[nodiscard]] std::optional<std::vector<Item>> items(base::RemoteAddress dict,
                                                       std::uint64_t most) const;
  [[nodiscard]] std::optional<Elements> first_elements_of_set(base::RemoteAddress set,
                                                              std::size_t most) const;
  [[nodiscard]] std::optional<base::RemoteAddress> find(const std::vector<Item>& items,
                                                        std::string_view key) const;
  // COUNT words at AT.
  [[nodiscard]] std::optional<std::vector<std::uint64_t>> words(base::RemoteAddress at,
                                                                std::uint64_t count) const;

  const memory::MemoryReader& memory_;
  const StackLayout& stack_;
  const ObjectLayout& layout_;
  mutable std::unordered_map<std::uint64_t, Type> types_;  // mutable: caching is not observable
};

}  // namespace pyinject::python
