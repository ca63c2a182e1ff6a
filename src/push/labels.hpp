// Labels of a series of profiles, as profile stores know them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::push {

struct Label {
  std::string name;   // [a-zA-Z_][a-zA-Z0-9_]*
  std::string value;  // not empty
  bool operator==(const Label&) const = default;
  auto operator<=>(const Label&) const = default;
};
using Labels = std::vector<Label>;

inline constexpr std::size_t kMostLabels = 16;  // that a user gives
inline constexpr std::size_t kLongestName = 64;
inline constexpr std::size_t kLongestValue = 256;

// "k=v", with a name that does not begin with "__", and a value of printable text.
// nullopt: it is none.
[[nodiscard]] std::optional<Label> parse_label(std::string_view text);

// Text from a process as the value of a label: printable, and cut to the longest.
[[nodiscard]] std::string label_value(std::string_view text);

// Sets NAME to VALUE in LABELS, or adds it; an empty VALUE changes nothing.
void set_label(Labels& labels, std::string_view name, std::string value);
// "": there is none.
[[nodiscard]] std::string label_of(const Labels& labels, std::string_view name);

}  // namespace pyinject::push
