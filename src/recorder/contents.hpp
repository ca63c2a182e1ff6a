// Builds the contents of a feature.
#pragma once

#include "perfdata/event.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace pyinject::recorder {

class Contents {
 public:
  template <typename Number>
  void number(Number value) {
    append(std::as_bytes(std::span{&value, 1}));
  }
  void append(perfdata::Bytes bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void append(std::string_view text) { append(std::as_bytes(std::span{text})); }
  // The length of TEXT with its padding, then both: do_write_string() of perf.
  void padded(std::string_view text) {
    constexpr std::size_t kAlignment = 64;  // NAME_ALIGN
    const auto size = (text.size() / kAlignment + 1) * kAlignment;
    number(static_cast<std::uint32_t>(size));
    append(text);
    bytes_.resize(bytes_.size() + size - text.size());
  }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace pyinject::recorder
