// Names of C++ functions as perf shows them.
#pragma once

#include <string>

namespace pyinject::report {

// SYMBOL demangled. A symbol that is none of C++, or whose name is longer than 4 KiB, stays as it
// is: a template argument that names the one before it twice doubles the name, so that 250 bytes
// have one of gigabytes. Time and memory are bounded by that length.
[[nodiscard]] std::string demangled(std::string symbol);

}  // namespace pyinject::report
