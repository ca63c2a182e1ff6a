// CPython's static probes at the calls and returns of Python functions (3.15, where it was built
// --with-dtrace), as uprobe events of the kernel have them.
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
  bool entry = true;         // else: return
  std::uint64_t offset = 0;  // in the file
  // Of its semaphore there, which is never at 0. 0: it has none.
  std::uint64_t counter_offset = 0;
  // What a uprobe event is to fetch: "file=+0(%bx):ustring func=+0(%r12):ustring line=%ax:s32".
  std::string arguments;
};

struct FunctionProbes {
  base::ProcessId id;
  std::string interpreter;            // the file, as the target names it
  base::UniqueFd file;                // the very file that is mapped
  std::vector<FunctionProbe> probes;  // of both kinds
};

// Nothing is stopped or changed. A Refusal: kNoFunctionProbes, or why the process cannot be looked
// at.
[[nodiscard]] std::variant<FunctionProbes, Refusal> find_function_probes(base::Pid pid);

// The pure part. Both kinds, or why not.
[[nodiscard]] std::variant<std::vector<FunctionProbe>, Refusal> choose_function_probes(
    const std::vector<elf::UsdtProbe>& probes, std::span<const elf::Segment> segments);

}  // namespace pyinject::python
