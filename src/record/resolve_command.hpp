// The COMMAND of `record`, the clock or the target, before it runs.
#pragma once

#include <string>
#include <vector>

namespace pyinject::session {

// Can COMMAND be run? 0, or 126 (found, but not executable) or 127 (not found), as env(1) answers;
// PROBLEM then says which file and why. PATH is searched as execvp does. Nothing is run.
struct CommandCheck {
  int status = 0;
  std::string problem;
  std::string file;  // what will be executed
};
[[nodiscard]] CommandCheck check_command(const std::vector<std::string>& command,
                                         const std::string& path);

}  // namespace pyinject::session
