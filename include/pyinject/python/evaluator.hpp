// Where the machine code that runs Python's byte code is.
#pragma once

#include "pyinject/base/remote_address.hpp"
#include "pyinject/python/target.hpp"

#include <vector>

namespace pyinject::python {

struct CodeRange {
  base::RemoteAddress begin;
  base::RemoteAddress end;  // the first byte behind it
  [[nodiscard]] bool contains(base::RemoteAddress address) const {
    return begin <= address && address < end;
  }
  bool operator==(const CodeRange&) const = default;
};

// The parts of _PyEval_EvalFrameDefault, ascending: the function itself, and what the compiler has
// put elsewhere (".cold": on some builds that is nearly all of it). A program counter of a C frame
// that runs Python frames is in one of them. Empty: the interpreter's file cannot be read, or does
// not say. Reads the file: some milliseconds.
[[nodiscard]] std::vector<CodeRange> evaluator_ranges(const Target& target);

}  // namespace pyinject::python
