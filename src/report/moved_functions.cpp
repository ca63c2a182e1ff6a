#include "report/moved_functions.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>

namespace pyinject::report {

namespace {

// Of each recording: each is compared with each.
constexpr std::size_t kMostWithOneName = 64;

struct Group {
  std::vector<FunctionKey> before;
  std::vector<FunctionKey> after;
};

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The number of names at the end of both paths.
std::size_t common_names(std::string_view one, std::string_view other) {
  const auto [end, ignored] = std::mismatch(one.rbegin(), one.rend(), other.rbegin(), other.rend());
  const auto length = static_cast<std::size_t>(end - one.rbegin());
  const auto whole = [length](std::string_view path) {
    return length == path.size() || path[path.size() - length - 1] == '/';
  };
  const auto slashes = static_cast<std::size_t>(std::count(one.rbegin(), end, '/'));
  return slashes + (whole(one) && whole(other) && length > 0 ? 1 : 0);
}

// The one of ALL whose path has the most in common with that of FUNCTION; nullopt: several have.
std::optional<FunctionKey> nearest(const FunctionKey& function,
                                   const std::vector<FunctionKey>& all) {
  std::optional<FunctionKey> found;
  std::size_t most = 0;
  for (const auto& each : all) {
    const auto common = common_names(std::get<2>(function), std::get<2>(each));
    if (common > most) {
      found = each;
      most = common;
    } else if (common == most) {
      found.reset();
    }
  }
  return found;
}

}  // namespace

std::map<FunctionKey, FunctionKey> moved_functions(const std::vector<FunctionKey>& before,
                                                   const std::vector<FunctionKey>& after) {
  const std::set<FunctionKey> old{before.begin(), before.end()};
  const std::set<FunctionKey> now{after.begin(), after.end()};
  std::map<FunctionKey, Group> groups;  // by kind, name and base name
  const auto group_of = [&groups](const FunctionKey& function) -> Group& {
    const auto& [kind, name, file] = function;
    return groups[{kind, name, base_name(file)}];
  };
  for (const auto& function : old) {
    if (!now.contains(function) && !std::get<2>(function).empty()) {
      group_of(function).before.push_back(function);
    }
  }
  for (const auto& function : now) {
    if (!old.contains(function) && !std::get<2>(function).empty()) {
      group_of(function).after.push_back(function);
    }
  }
  std::map<FunctionKey, FunctionKey> moved;
  for (const auto& [key, group] : groups) {
    if (group.before.size() > kMostWithOneName || group.after.size() > kMostWithOneName) {
      continue;
    }
    for (const auto& function : group.before) {
      const auto found = nearest(function, group.after);
      if (found && nearest(*found, group.before) == function) {
        moved.emplace(function, *found);
      }
    }
  }
  return moved;
}

}  // namespace pyinject::report
