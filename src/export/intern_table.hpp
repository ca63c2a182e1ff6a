// A table of texts or of encoded messages, each once, that other messages refer to by number.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace pyinject::exports {

class InternTable {
 public:
  InternTable() = default;
  // FIRST gets number 0.
  explicit InternTable(std::string_view first) { number(first); }
  InternTable(const InternTable&) = delete;
  InternTable& operator=(const InternTable&) = delete;
  InternTable(InternTable&&) = default;
  InternTable& operator=(InternTable&&) = default;
  ~InternTable() = default;

  std::uint32_t number(std::string_view text) {
    const auto known = numbers_.find(text);
    if (known != numbers_.end()) {
      return known->second;
    }
    const auto fresh = static_cast<std::uint32_t>(texts_.size());
    numbers_.emplace(texts_.emplace_back(text), fresh);
    return fresh;
  }
  // By number.
  [[nodiscard]] const std::deque<std::string>& texts() const { return texts_; }

 private:
  std::deque<std::string> texts_;  // their addresses are stable
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
};

}  // namespace pyinject::exports
