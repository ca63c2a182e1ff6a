// What stderr is, and what may be drawn on it.
#pragma once

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

}  // namespace pyinject::cli
