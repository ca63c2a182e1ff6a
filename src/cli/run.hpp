// The whole program except main().
#pragma once

namespace pyinject::cli {

// Parses ARGV, executes it and returns the exit status. Never throws.
[[nodiscard]] int run(int argc, char** argv);

}  // namespace pyinject::cli
