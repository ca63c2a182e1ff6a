#include "perfdata/build_id_table.hpp"

#include "perfdata/byte_writer.hpp"

#include <algorithm>
#include <climits>

namespace pyinject::perfdata {

void make_build_id(const BuildId& id, std::vector<std::byte>& into) {
  constexpr std::size_t kMostId = 20;
  constexpr std::size_t kAlignment = 64;             // perf's NAME_ALIGN
  constexpr std::uint16_t kSizeIsGiven = 1U << 15U;  // PERF_RECORD_MISC_BUILD_ID_SIZE
  // In the table the type is 0.
  ByteWriter writer{into, 0, PERF_RECORD_MISC_USER | kSizeIsGiven};
  const auto bytes = Bytes{id.id}.first(std::min(id.id.size(), kMostId));
  writer.number(id.pid);
  writer.append(bytes);
  writer.zeros(kMostId - bytes.size());
  writer.number(static_cast<std::uint32_t>(bytes.size()));  // u8, and three reserved
  writer.text(id.file, PATH_MAX - 1, kAlignment);
  writer.finish();
}

}  // namespace pyinject::perfdata
