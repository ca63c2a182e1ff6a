// CPython's static probes at calls and returns of Python functions (3.15, built --with-dtrace), as
// needed for the kernel's uprobe events.
#pragma once

#include "elf/usdt.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/python/reason.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::python {

struct FunctionProbe {
  bool entry = true;         // false: return
  std::uint64_t offset = 0;  // in the file
  // File offset of its semaphore, which is never 0. 0: no semaphore.
  std::uint64_t counter_offset = 0;
  // Fetch arguments of the uprobe event: "file=+0(%bx):ustring func=+0(%r12):ustring line=%ax:s32".
  std::string arguments;
};

struct FunctionProbes {
  base::ProcessId id;
  std::string interpreter;            // the file, as the target names it
  base::UniqueFd file;                // the mapped file itself
  std::vector<FunctionProbe> probes;  // of both kinds
};

// Stops and changes nothing. Refusal: kNoFunctionProbes, or why the process cannot be examined.
[[nodiscard]] std::variant<FunctionProbes, Refusal> find_function_probes(base::Pid pid);

// The pure part. Returns both kinds, or why not.
[[nodiscard]] std::variant<std::vector<FunctionProbe>, Refusal> choose_function_probes(
    const std::vector<elf::UsdtProbe>& probes, std::span<const elf::Segment> segments);

}  // namespace pyinject::python
