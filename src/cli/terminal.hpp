// Properties of stdout and stderr that decide how to draw on them.
#pragma once

#include <cstddef>

namespace pyinject::cli {

struct CommandLine;

// How to show messages, from the environment.
struct Terminal {
  bool live = false;   // stderr is a terminal: the progress line may be drawn
  bool color = false;  // and NO_COLOR is not set
};
[[nodiscard]] Terminal look_at_terminal();
// Whether the progress line may be drawn. Not among JSON objects, since it is none.
[[nodiscard]] bool is_live(const CommandLine& line, const Terminal& terminal);
// How to write results to stdout.
struct Output {
  bool terminal = false;  // that understands control sequences
  bool color = false;     // and NO_COLOR is not set
};
[[nodiscard]] Output look_at_output();
// Width of stdout's terminal in columns. 0: not a terminal, or unknown.
[[nodiscard]] std::size_t output_width();
// Its height in rows; 0 likewise.
[[nodiscard]] std::size_t output_height();

}  // namespace pyinject::cli
