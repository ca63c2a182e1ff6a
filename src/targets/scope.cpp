#include "pyinject/targets/scope.hpp"

#include "base/text.hpp"
#include "procfs/cgroup.hpp"
#include "procfs/cmdline.hpp"
#include "procfs/stat.hpp"
#include "procfs/status.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fnmatch.h>
#include <pwd.h>

namespace pyinject::targets {

namespace {

// /proc is read process by process: parents may change in the meantime.
constexpr int kMostGenerations = 1000;

bool matches(const std::string& pattern, std::string_view text) {
  return !text.empty() && ::fnmatch(pattern.c_str(), std::string{text}.c_str(), 0) == 0;
}

}  // namespace

bool has_word(const std::vector<std::string>& arguments, const std::string& name) {
  for (const std::string_view argument : arguments) {
    for (std::size_t begin = 0; begin < argument.size();) {
      const auto end = std::min(argument.find_first_of("/:=, []", begin), argument.size());
      const auto word = argument.substr(begin, end - begin);
      if (matches(name, word) || matches(name, word.substr(0, word.find('.')))) {
        return true;
      }
      begin = end + 1;
    }
  }
  return false;
}

bool is_in(const Scope& scope, base::Pid pid) {
  if (scope.chosen_from_file()) {
    const auto stat = procfs::read_stat(pid);
    const auto status = scope.user ? procfs::read_status(pid) : std::nullopt;
    if (!stat || (scope.user && (!status || status->uids[1] != *scope.user)) ||
        (!scope.command.empty() && !matches(scope.command, stat->name)) ||
        (!scope.name.empty() && !matches(scope.name, stat->name) &&
         !has_word(procfs::read_cmdline(pid).value_or(std::vector<std::string>{}), scope.name))) {
      return false;
    }
  }
  if (scope.cgroup && !scope.cgroup->empty()) {
    const auto cgroup = procfs::read_cgroup(pid).value_or("");
    return cgroup == *scope.cgroup || cgroup.starts_with(*scope.cgroup + "/");
  }
  return true;
}

std::optional<uid_t> user_by_name(const std::string& text) {
  if (const auto number = base::parse_number<uid_t>(text)) {
    return number;
  }
  std::array<char, 16384> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwnam_r(text.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr) {
    return std::nullopt;
  }
  return found->pw_uid;
}

TargetSet TargetSet::of_scope(Scope scope) {
  TargetSet target_set;
  target_set.scope_ = std::move(scope);
  return target_set;
}

TargetSet TargetSet::of_families(const std::vector<base::Pid>& roots) {
  TargetSet target_set;
  target_set.families_ = true;
  for (const auto pid : roots) {
    target_set.set(pid, true);
  }
  return target_set;
}

bool TargetSet::set(base::Pid pid, bool member) {
  if (!member) {
    members_.erase(pid.value());
    return false;
  }
  ever_.insert(pid.value());
  return members_.insert(pid.value()).second;
}

bool TargetSet::descends(base::Pid pid) const {
  for (int generation = 0; generation < kMostGenerations; ++generation) {
    if (members_.contains(pid.value())) {
      return true;
    }
    const auto stat = procfs::read_stat(pid);
    if (!stat || stat->parent.value() <= 1) {
      return false;
    }
    pid = stat->parent;
  }
  return false;
}

std::vector<base::Pid> TargetSet::choose(const std::vector<base::Pid>& all) {
  if (everybody()) {
    return all;
  }
  std::vector<base::Pid> chosen;
  for (const auto pid : all) {
    if (families_ ? descends(pid) : is_in(scope_, pid)) {
      set(pid, true);
      chosen.push_back(pid);
    }
  }
  return chosen;
}

bool TargetSet::note(const watch::ProcessEvent& event) {
  if (everybody()) {
    return false;
  }
  using watch::Change;
  switch (event.change) {
    case Change::kForked:
      return set(event.pid, contains(event.parent));
    case Change::kExec:
    case Change::kNamed:
      return !families_ && set(event.pid, is_in(scope_, event.pid));
    case Change::kAppeared:
      return set(event.pid, families_ ? descends(event.pid) : is_in(scope_, event.pid));
    case Change::kExited:
      return set(event.pid, false);
    case Change::kMapped:
    case Change::kGeneratedCode:
    case Change::kWritten:
      return false;
  }
  return false;
}

}  // namespace pyinject::targets
