// Functions of Python's import system.
#pragma once

#include <string_view>

namespace pyinject::base {

// Their file, which is frozen into the interpreter (Lib/importlib/_bootstrap.py). They run all
// imports but those of modules that are there already.
inline constexpr std::string_view kImportSystem = "<frozen importlib._bootstrap>";

}  // namespace pyinject::base
