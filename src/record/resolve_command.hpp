// Checks the COMMAND of `record`, which is the clock or the target, before it runs.
#pragma once

#include <string>
#include <vector>

namespace pyinject::record {

// Whether COMMAND can be run: 0, or as env(1) 126 (found, but not executable) or 127 (not found);
// PROBLEM then says which file and why. Searches PATH as execvp does. Runs nothing.
struct CommandCheck {
  int status = 0;
  std::string problem;
  std::string file;  // the file that will be executed
};
[[nodiscard]] CommandCheck check_command(const std::vector<std::string>& command,
                                         const std::string& path);

}  // namespace pyinject::record
