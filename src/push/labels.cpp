#include "push/labels.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <utility>

namespace pyinject::push {

namespace {

bool is_name(std::string_view text) {
  const auto fits = [](char one) {
    return one == '_' || (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') ||
           (one >= '0' && one <= '9');
  };
  return !text.empty() && text.size() <= kLongestName && !text.starts_with("__") &&
         !(text.front() >= '0' && text.front() <= '9') && std::ranges::all_of(text, fits);
}

}  // namespace

std::optional<Label> parse_label(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) {
    return std::nullopt;
  }
  const auto name = text.substr(0, equals);
  const auto value = text.substr(equals + 1);
  if (!is_name(name) || value.empty() || value.size() > kLongestValue ||
      base::printable(value) != value) {
    return std::nullopt;
  }
  return Label{.name = std::string{name}, .value = std::string{value}};
}

std::string label_value(std::string_view text) {
  constexpr std::size_t kDots = 3;
  return base::printable(text, kLongestValue - kDots);
}

void set_label(Labels& labels, std::string_view name, std::string value) {
  if (value.empty()) {
    return;
  }
  const auto found = std::ranges::find(labels, name, &Label::name);
  if (found != labels.end()) {
    found->value = std::move(value);
  } else {
    labels.push_back({.name = std::string{name}, .value = std::move(value)});
  }
}

std::string label_of(const Labels& labels, std::string_view name) {
  const auto found = std::ranges::find(labels, name, &Label::name);
  return found == labels.end() ? std::string{} : found->value;
}

}  // namespace pyinject::push
