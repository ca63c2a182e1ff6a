#include "support/made_perf_data.hpp"

#include "base/file.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <sys/mman.h>

namespace pyinject::test {

using perfdata::Event;

std::string padded(std::string text) {
  text.append(8 - text.size() % 8, '\0');
  return text;
}

std::string made_record(std::uint32_t type, std::uint16_t misc, const std::string& payload) {
  const auto size = static_cast<std::uint16_t>(sizeof(perf_event_header) + payload.size());
  return packed(perf_event_header{.type = type, .misc = misc, .size = size}) + payload;
}

perfdata::Bytes as_bytes(const std::string& bytes) {
  return {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
}

perfdata::Record as_record(const std::string& bytes) {
  perf_event_header header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  return {.type = header.type, .misc = header.misc, .bytes = as_bytes(bytes)};
}

std::string as_text(perfdata::Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Event made_event(std::uint64_t sample_type, std::vector<std::uint64_t> ids) {
  Event event;
  event.attr.size = sizeof event.attr;
  event.attr.sample_type = sample_type;
  event.attr.sample_id_all = 1;
  event.ids = std::move(ids);
  return event;
}

Event made_dwarf_event(std::uint64_t sample_type, std::vector<std::uint64_t> ids) {
  auto event =
      made_event(sample_type | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER, std::move(ids));
  event.attr.sample_regs_user = 0x1c0;
  event.attr.sample_stack_user = 64;
  event.attr.exclude_callchain_user = 1;
  return event;
}

void defer_user_chains(Event& event) {
  constexpr std::size_t kBits = offsetof(perf_event_attr, read_format) + sizeof(std::uint64_t);
  auto* const bits = reinterpret_cast<std::byte*>(&event.attr) + kBits;
  bits[4] |= std::byte{0xc0};  // bits 38 and 39
}

std::string made_deferred_chain(std::uint64_t cookie, const std::vector<std::uint64_t>& addresses,
                                const std::string& id) {
  auto payload = words(cookie, addresses.size());
  for (const auto address : addresses) {
    payload += words(address);
  }
  return made_record(perfdata::kCallchainDeferred, PERF_RECORD_MISC_USER, payload + id);
}

std::string MadePerfData::attributes(const Event& event) const {
  auto attr = event.attr;
  attr.size = static_cast<std::uint32_t>(attr_size);
  auto bytes = packed(attr);
  bytes.resize(attr_size, '\xee');
  return bytes;
}

std::string MadePerfData::description() const {
  auto bytes =
      packed(static_cast<std::uint32_t>(events.size()), static_cast<std::uint32_t>(attr_size));
  for (const Event& event : events) {
    const auto name = padded(event.name.empty() ? "cpu-clock" : event.name);
    bytes += attributes(event) +
             packed(static_cast<std::uint32_t>(event.ids.size()),
                    static_cast<std::uint32_t>(name.size())) +
             name;
    for (const auto id : event.ids) {
      bytes += words(id);
    }
  }
  return bytes;
}

std::string MadePerfData::bytes() const {
  constexpr std::size_t kHeader = 104;
  std::string ids;
  std::string attrs;
  for (const Event& event : events) {
    attrs += attributes(event) + words(kHeader + ids.size(), event.ids.size() * 8);
    for (const auto id : event.ids) {
      ids += words(id);
    }
  }
  const auto data_at = kHeader + ids.size() + attrs.size();
  std::array<std::uint64_t, 4> bits{};
  std::string table;
  std::string contents;
  for (const auto& [bit, content] : features) {
    bits.at(bit / 64) |= std::uint64_t{1} << (bit % 64);
    table += words(data_at + data.size() + features.size() * 16 + contents.size(), content.size());
    contents += content;
  }
  return "PERFILE2" +
         words(kHeader, attr_size + 16, kHeader + ids.size(), attrs.size(), data_at, data.size(), 0,
               0, bits[0], bits[1], bits[2], bits[3]) +
         ids + attrs + data + table + contents;
}

base::UniqueFd MadePerfData::file() const { return memory_file(bytes()); }

base::UniqueFd memory_file(const std::string& bytes) {
  base::UniqueFd file{::memfd_create("perf.data", MFD_CLOEXEC)};
  base::write_all(file.get(), bytes, "a memfd");
  return file;
}

}  // namespace pyinject::test
