#include "perfdata/event_description.hpp"

#include "base/byte_cursor.hpp"

#include <cstdint>

#include <linux/perf_event.h>

namespace pyinject::perfdata {

bool change_all(std::span<std::byte> description,
                const std::function<void(std::span<std::byte> attributes)>& change) {
  base::ByteCursor cursor{description};
  const auto number = cursor.number<std::uint32_t>();
  const auto size = cursor.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < number; ++i) {
    const auto offset = description.size() - cursor.left().size();
    const auto attributes = cursor.take(size);
    if (cursor.failed() || attributes.size() < PERF_ATTR_SIZE_VER0) {
      return false;
    }
    change(description.subspan(offset, attributes.size()));
    const auto ids = cursor.number<std::uint32_t>();
    cursor.take(cursor.number<std::uint32_t>());  // the name
    cursor.take(std::uint64_t{ids} * sizeof(std::uint64_t));
    if (cursor.failed()) {
      return false;
    }
  }
  return !cursor.failed();
}

}  // namespace pyinject::perfdata
