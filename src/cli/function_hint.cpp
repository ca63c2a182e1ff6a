#include "cli/function_hint.hpp"

#include "base/text.hpp"
#include "cli/did_you_mean.hpp"
#include "report/names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <vector>

namespace pyinject::cli {

namespace {

using Names = std::set<std::string>;

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

std::vector<std::string> first_of(const Names& names,
                                  const std::function<bool(std::string_view)>& fits) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> found;
  for (const auto& name : names) {
    if (found.size() < kMost && fits(name)) {
      found.push_back(name);
    }
  }
  return found;
}

std::vector<std::string> near(const Names& names, std::string_view wanted) {
  if (auto found =
          first_of(names, [&](std::string_view name) { return last_part(name) == wanted; });
      !found.empty()) {
    return found;
  }
  if (auto found = first_of(
          names,
          [&](std::string_view name) { return name.find(wanted) != std::string_view::npos; });
      !found.empty()) {
    return found;
  }
  std::map<std::string_view, const std::string*> words;
  for (const auto& name : names) {
    words.try_emplace(name, &name);
    words.try_emplace(last_part(name), &name);
  }
  std::vector<std::string_view> known;
  known.reserve(words.size());
  for (const auto& [word, name] : words) {
    known.push_back(word);
  }
  const auto nearest = did_you_mean(wanted, known);
  return nearest ? std::vector{*words.at(*nearest)} : std::vector<std::string>{};
}

}  // namespace

std::string function_hint(const report::Profile& profile, std::string_view wanted) {
  Names python;
  Names others;
  for (const auto& function : profile.functions) {
    auto name = report::name_of(profile, function);
    if (name == wanted) {
      return {};
    }
    (function.kind == report::Kind::kPython ? python : others).insert(std::move(name));
  }
  auto meant = near(python, wanted);
  if (meant.empty()) {
    meant = near(others, wanted);
  }
  for (auto& name : meant) {
    name = fmt::format("'{}'", base::printable(name));
  }
  return fmt::format(
      "no function is called '{}'{}", base::printable(wanted),
      meant.empty() ? "" : fmt::format("; did you mean {}?", fmt::join(meant, " or ")));
}

}  // namespace pyinject::cli
