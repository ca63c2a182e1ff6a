#include "perfdata/event_description.hpp"

#include "base/byte_cursor.hpp"

#include <cstdint>
#include <string_view>

#include <linux/perf_event.h>

namespace pyinject::perfdata {

namespace {

struct Description {
  std::size_t attributes = 0;  // their offset
  std::size_t attributes_size = 0;
  std::span<const std::byte> name = {};
};

// Calls EACH for each event. False: damaged.
bool for_each(std::span<const std::byte> bytes,
              const std::function<void(const Description&)>& each) {
  base::ByteCursor cursor{bytes};
  const auto number = cursor.number<std::uint32_t>();
  const auto size = cursor.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < number; ++i) {
    Description one{.attributes = bytes.size() - cursor.left().size(), .attributes_size = size};
    if (cursor.take(size).size() < PERF_ATTR_SIZE_VER0 || cursor.failed()) {
      return false;
    }
    const auto ids = cursor.number<std::uint32_t>();
    one.name = cursor.take(cursor.number<std::uint32_t>());
    cursor.take(std::uint64_t{ids} * sizeof(std::uint64_t));
    if (cursor.failed()) {
      return false;
    }
    each(one);
  }
  return !cursor.failed();
}

}  // namespace

std::vector<std::string> event_names(std::span<const std::byte> description) {
  std::vector<std::string> names;
  (void)for_each(description, [&names](const Description& one) {
    const std::string_view padded{reinterpret_cast<const char*>(one.name.data()), one.name.size()};
    names.emplace_back(padded.substr(0, padded.find('\0')));
  });
  return names;
}

bool change_all(std::span<std::byte> description,
                const std::function<void(std::span<std::byte> attributes)>& change) {
  return for_each(description, [&](const Description& one) {
    change(description.subspan(one.attributes, one.attributes_size));
  });
}

}  // namespace pyinject::perfdata
