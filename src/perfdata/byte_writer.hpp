// Builds a record.
#pragma once

#include "perfdata/event.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

namespace pyinject::perfdata {

class ByteWriter {
 public:
  // Clears INTO and writes to it, starting with a header.
  ByteWriter(std::vector<std::byte>& into, std::uint32_t type, std::uint16_t misc)
      : into_{into}, header_{.type = type, .misc = misc, .size = 0} {
    into_.clear();
    number(header_);
  }

  template <typename Value>
  requires std::is_trivially_copyable_v<Value>
  void number(const Value& value) { append(std::as_bytes(std::span{&value, 1})); }
  void append(Bytes bytes) { into_.insert(into_.end(), bytes.begin(), bytes.end()); }
  void zeros(std::size_t count) { into_.resize(into_.size() + count); }
  // The first MOST bytes of TEXT, then zeros: at least one, up to a multiple of ALIGNMENT.
  void text(std::string_view text, std::size_t most, std::size_t alignment) {
    text = text.substr(0, std::min(most, text.find('\0')));
    append(std::as_bytes(std::span{text}));
    zeros(alignment - text.size() % alignment);
  }
  // Call it last.
  void finish() {
    header_.size = static_cast<std::uint16_t>(into_.size());
    std::memcpy(into_.data(), &header_, sizeof header_);
  }

 private:
  std::vector<std::byte>& into_;
  perf_event_header header_;
};

}  // namespace pyinject::perfdata
