// What is said of a command line that is wrong.
#pragma once

#include "cli/command_line.hpp"

#include <string>
#include <vector>

namespace pyinject::cli {

struct Mistake {
  int status = 0;
  std::string text;
};

// 0 and nothing: it is right.
inline Mistake mistake(const std::vector<std::string>& words) {
  try {
    (void)parse_command_line(words, {});
  } catch (const CommandLineError& error) {
    return {error.status(), error.what()};
  }
  return {};
}

}  // namespace pyinject::cli
