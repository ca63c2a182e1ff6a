// The whole command, apart from main().
#pragma once

namespace pyinject::cli {

// Parses ARGV, does what it says, returns the exit status. Never throws.
[[nodiscard]] int run(int argc, char** argv);

}  // namespace pyinject::cli
