// What stdout and stderr are, and what may be drawn on them.
#pragma once

#include <cstddef>

namespace pyinject::cli {

struct CommandLine;

// How messages look, from the environment.
struct Terminal {
  bool live = false;   // stderr is a terminal: the moving line may be drawn
  bool color = false;  // and NO_COLOR is not set
};
[[nodiscard]] Terminal look_at_terminal();
// May the moving line be drawn? Among JSON objects it would be none of them.
[[nodiscard]] bool is_live(const CommandLine& line, const Terminal& terminal);
// Columns of the terminal that stdout is. 0: it is none, or its size is unknown.
[[nodiscard]] std::size_t output_width();

}  // namespace pyinject::cli
