// Locates the machine code that runs Python's byte code.
//
// For example:
//   const auto ranges = python::evaluator_ranges(target);
//   const bool inside = std::ranges::any_of(ranges, [](const python::CodeRange& range) {
//     return range.contains(base::RemoteAddress{0x55d0c0de});
//   });
#pragma once

#include "pyinject/base/remote_address.hpp"
#include "pyinject/python/target.hpp"

#include <vector>

namespace pyinject::python {

struct CodeRange {
  base::RemoteAddress begin;
  base::RemoteAddress end;  // one past the last byte
  [[nodiscard]] bool contains(base::RemoteAddress address) const {
    return begin <= address && address < end;
  }
  bool operator==(const CodeRange&) const = default;
};

// The parts of _PyEval_EvalFrameDefault, ascending: the function itself and the parts that the
// compiler moved elsewhere (".cold": on some builds nearly all of it), and the calls in copies of
// it that the compiler put into other functions (tail-call builds with link-time optimization). The
// program counter of a C frame that runs Python frames is in one of them. Empty: the interpreter's
// file cannot be read or has no such symbols. Reads the file: takes some milliseconds.
[[nodiscard]] std::vector<CodeRange> evaluator_ranges(const Target& target);

}  // namespace pyinject::python
