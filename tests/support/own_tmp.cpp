#include "support/own_tmp.hpp"

#include "support/paths.hpp"

namespace pyinject::test {

std::vector<std::string> with_own_tmp(const std::string& mount, const std::string& then) {
  return {"sh", source_dir() + "/tests/support/own-tmp.sh", mount, then};
}

std::vector<std::string> unshared_with_tmpfs(const std::string& root, const std::string& options) {
  std::vector<std::string> result{"unshare", "--mount"};
  if (!root.empty()) {  // nothing but the interpreter's own files is needed in there
    result.insert(
        result.end(),
        {"sh", "-c", "mount -t tmpfs -o " + options + " none \"$0/tmp\" && exec \"$@\"", root});
    return result;
  }
  const bool read_only = options == "ro";
  const auto prefix =
      with_own_tmp("mount -t tmpfs -o " + (read_only ? "rw" : options) + " none /mnt",
                   read_only ? "mount -o remount,ro /tmp" : ":");
  result.insert(result.end(), prefix.begin(), prefix.end());
  return result;
}

}  // namespace pyinject::test
