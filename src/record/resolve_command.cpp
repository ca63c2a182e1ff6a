#include "record/resolve_command.hpp"

#include "base/text.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::record {

namespace {

// 0, or the errno that exec would return.
int why_not_executable(const std::string& file) {
  struct stat facts {};
  if (::stat(file.c_str(), &facts) != 0) {
    return errno;
  }
  if (!S_ISREG(facts.st_mode)) {
    return EACCES;
  }
  return ::faccessat(AT_FDCWD, file.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

}  // namespace

CommandCheck check_command(const std::vector<std::string>& command, const std::string& path) {
  const std::string& name = command.front();
  int why = ENOENT;
  if (name.find('/') != std::string::npos) {
    why = why_not_executable(name);
    if (why == 0) {
      return {.status = 0, .problem = {}, .file = name};
    }
  } else if (!name.empty()) {
    for (const auto folder : base::split(path, ':')) {
      const std::string file = folder.empty() ? name : fmt::format("{}/{}", folder, name);
      const int one = why_not_executable(file);
      if (one == 0) {
        return {.status = 0, .problem = {}, .file = file};
      }
      // As execvp: remember EACCES and continue the search.
      why = one == EACCES ? EACCES : why;
    }
  }
  // Such as -d 30, the time of other profilers; perf has another -d.
  const bool time = base::parse_number<unsigned>(name).has_value();
  // As of record -g dwarf; perf's -g has no value.
  const bool kind = name == "dwarf" || name == "fp" || name == "lbr";
  return {
      .status = why == ENOENT || why == ENOTDIR ? 127 : 126,
      .problem = fmt::format("cannot run '{}': {}{}", base::printable(name), base::errno_text(why),
                             time   ? fmt::format("; to record for a time: -- sleep {}", name)
                             : kind ? fmt::format("; did you mean --call-graph {}?", name)
                                    : ""),
      .file = {}};
}

}  // namespace pyinject::record
