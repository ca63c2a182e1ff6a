// Values, each once, by numbers from 0 in the order in which they came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyinject::base {

// INDEX: a map from T to std::uint32_t whose keys stay where they are.
template <typename T, typename Index = std::unordered_map<T, std::uint32_t>>
class Numbered {
 public:
  Numbered() = default;
  Numbered(Numbered&&) noexcept = default;
  Numbered(const Numbered& other) {
    for (const auto* const value : other.values_) {
      (void)number(*value);
    }
  }
  Numbered& operator=(Numbered other) noexcept {
    numbers_.swap(other.numbers_);
    values_.swap(other.values_);
    return *this;
  }
  ~Numbered() = default;

  // Adds VALUE if it is new.
  std::uint32_t number(T value) {
    const auto [at, fresh] =
        numbers_.try_emplace(std::move(value), static_cast<std::uint32_t>(values_.size()));
    if (fresh) {
      values_.push_back(&at->first);
    }
    return at->second;
  }
  [[nodiscard]] std::optional<std::uint32_t> find(const T& value) const {
    const auto found = numbers_.find(value);
    return found == numbers_.end() ? std::nullopt : std::optional{found->second};
  }
  // Throws std::out_of_range.
  [[nodiscard]] const T& at(std::uint32_t number) const { return *values_.at(number); }
  [[nodiscard]] std::size_t size() const { return values_.size(); }

 private:
  Index numbers_;
  std::vector<const T*> values_;
};

}  // namespace pyinject::base
