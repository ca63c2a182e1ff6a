#include "pyinject/cli/run.hpp"

namespace pyinject::cli {

int run(int argc, char** argv) { return argc > 0 && argv != nullptr ? 0 : 129; }

}  // namespace pyinject::cli
