// perf.data files assembled byte by byte.
#pragma once

#include "perfdata/record.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <linux/perf_event.h>

namespace pyinject::test {

// The bytes of VALUES in memory, concatenated.
template <typename... Values>
[[nodiscard]] std::string packed(const Values&... values) {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
  return bytes;
}

template <typename... Values>
[[nodiscard]] std::string words(Values... values) {
  return packed(static_cast<std::uint64_t>(values)...);
}

// TEXT, then at least one zero byte, up to a multiple of 8.
[[nodiscard]] std::string padded(std::string text);

[[nodiscard]] std::string made_record(std::uint32_t type, std::uint16_t misc,
                                      const std::string& payload);

// The result refers to BYTES.
[[nodiscard]] perfdata::Bytes as_bytes(const std::string& bytes);
[[nodiscard]] perfdata::Record as_record(const std::string& bytes);
[[nodiscard]] std::string as_text(perfdata::Bytes bytes);

[[nodiscard]] perfdata::Event made_event(std::uint64_t sample_type,
                                         std::vector<std::uint64_t> ids = {});
// Registers 6 to 8 and stacks of 64 bytes, as with --call-graph dwarf.
[[nodiscard]] perfdata::Event made_dwarf_event(std::uint64_t sample_type,
                                               std::vector<std::uint64_t> ids = {});

// --call-graph fp,defer: sets defer_callchain and defer_output.
void defer_user_chains(perfdata::Event& event);
// ID: what the kernel appends.
[[nodiscard]] std::string made_deferred_chain(std::uint64_t cookie,
                                              const std::vector<std::uint64_t>& addresses,
                                              const std::string& id);

struct MadePerfData {
  std::vector<perfdata::Event> events;  // attr and ids are written
  std::string data;
  std::map<unsigned, std::string> features;
  std::size_t attr_size = sizeof(perf_event_attr);  // bytes beyond the struct are 0xee

  [[nodiscard]] std::string bytes() const;
  [[nodiscard]] base::UniqueFd file() const;
  // The contents of the feature EVENT_DESC.
  [[nodiscard]] std::string description() const;

 private:
  [[nodiscard]] std::string attributes(const perfdata::Event& event) const;
};

// A file in memory.
[[nodiscard]] base::UniqueFd memory_file(const std::string& bytes);

}  // namespace pyinject::test
