// The error message for a wrong command line.
#pragma once

#include "cli/command_line.hpp"

#include <string>
#include <vector>

namespace pyinject::cli {

struct Mistake {
  int status = 0;
  std::string text;
};

// Status 0 and an empty text: the command line is valid.
inline Mistake mistake(const std::vector<std::string>& words) {
  try {
    (void)parse_command_line(words, {});
  } catch (const CommandLineError& error) {
    return {error.status(), error.what()};
  }
  return {};
}

}  // namespace pyinject::cli
