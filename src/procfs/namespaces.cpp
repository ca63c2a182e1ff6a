#include "procfs/namespaces.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include <sys/stat.h>

namespace pyinject::procfs {

namespace {

std::string_view file_name(Namespace kind) {
  switch (kind) {
    case Namespace::kMount:
      return "ns/mnt";
    case Namespace::kPid:
      return "ns/pid";
    case Namespace::kUser:
      return "ns/user";
  }
  return "";
}

// PROCESS: a pid or "self".
std::optional<std::uint64_t> number_of(const std::string& process, Namespace kind) {
  struct stat facts {};
  if (::stat(fmt::format("/proc/{}/{}", process, file_name(kind)).c_str(), &facts) != 0) {
    return std::nullopt;
  }
  return facts.st_ino;
}

// Follows the link to the namespace or directory itself.
std::optional<bool> same_as_ours(base::Pid pid, std::string_view name) {
  struct stat ours {};
  struct stat theirs {};
  if (::stat(fmt::format("/proc/self/{}", name).c_str(), &ours) != 0 ||
      ::stat(fmt::format("/proc/{}/{}", pid.value(), name).c_str(), &theirs) != 0) {
    return std::nullopt;
  }
  return ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

}  // namespace

std::optional<bool> in_our_namespace(base::Pid pid, Namespace kind) {
  return same_as_ours(pid, file_name(kind));
}

std::optional<std::uint64_t> namespace_number(base::Pid pid, Namespace kind) {
  return number_of(std::to_string(pid.value()), kind);
}

std::optional<std::uint64_t> own_namespace_number(Namespace kind) {
  return number_of("self", kind);
}

std::optional<bool> root_is_ours(base::Pid pid) { return same_as_ours(pid, "root"); }

base::Pid inner_pid(const Status& status) {
  return status.namespace_pids.empty() ? status.process : base::Pid{status.namespace_pids.back()};
}

}  // namespace pyinject::procfs
