#include "perfdata/build_id_table.hpp"

#include "base/byte_cursor.hpp"
#include "perfdata/byte_writer.hpp"
#include "perfdata/record_reader.hpp"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <utility>

namespace pyinject::perfdata {

namespace {

constexpr std::size_t kMostId = 20;
constexpr std::uint16_t kSizeIsGiven = 1U << 15U;  // PERF_RECORD_MISC_BUILD_ID_SIZE

std::optional<BuildId> build_id_of(const Record& record) {
  base::ByteCursor cursor{record.bytes};
  cursor.take(sizeof(perf_event_header));
  BuildId result{.pid = cursor.number<std::uint32_t>(), .id = {}, .file = {}};
  const auto id = cursor.take(kMostId);
  const auto size = cursor.number<std::uint32_t>() & 0xFFU;
  if (cursor.failed()) {
    return std::nullopt;
  }
  const bool given = (record.misc & kSizeIsGiven) != 0 && size <= kMostId;
  const auto used = id.first(given ? size : kMostId);
  result.id.assign(used.begin(), used.end());
  const auto file = cursor.left();
  const auto end = std::ranges::find(file, std::byte{0});
  result.file.assign(reinterpret_cast<const char*>(file.data()),
                     static_cast<std::size_t>(end - file.begin()));
  return result;
}

}  // namespace

std::vector<BuildId> parse_build_ids(Bytes table) {
  std::vector<BuildId> result;
  while (const auto record = first_record(table)) {
    auto entry = record->bytes.empty() ? std::nullopt : build_id_of(*record);
    if (!entry) {
      break;
    }
    result.push_back(*std::move(entry));
    table = table.subspan(record->bytes.size());
  }
  return result;
}

void make_build_id(const BuildId& id, std::vector<std::byte>& into) {
  constexpr std::size_t kAlignment = 64;  // perf's NAME_ALIGN
  // The type is 0 in the table.
  ByteWriter writer{into, 0, PERF_RECORD_MISC_USER | kSizeIsGiven};
  const auto bytes = Bytes{id.id}.first(std::min(id.id.size(), kMostId));
  writer.number(id.pid);
  writer.append(bytes);
  writer.zeros(kMostId - bytes.size());
  writer.number(static_cast<std::uint32_t>(bytes.size()));  // u8, then three reserved bytes
  writer.text(id.file, PATH_MAX - 1, kAlignment);
  writer.finish();
}

}  // namespace pyinject::perfdata
