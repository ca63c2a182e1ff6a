// Recognizes the extension module of greenlet, which switches C stacks, and its functions.
#pragma once

#include "elf/elf_file.hpp"
#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/remote_address.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace pyinject::elf {

// By its file's name: greenlet/_greenlet.cpython-313-x86_64-linux-gnu.so.
[[nodiscard]] bool is_greenlet_module(std::string_view path);

enum class GreenletPart : std::uint8_t {
  kOther,
  kModule,       // in the module
  kStub,         // in g_initialstub(), in which a greenlet starts, on its stack or its starter's
  kRoot,         // in inner_bootstrap(), the outermost function that is on its stack only
  kSwitch,       // in g_switch()
  kSwitchStack,  // in g_switchstack(), which that calls, and which replaces the stack
};

struct GreenletFunction {
  std::uint64_t begin = 0;  // in the process
  std::uint64_t end = 0;
  GreenletPart part = GreenletPart::kModule;
};

// How many greenlet_functions() finds in a module that has all of the names.
inline constexpr std::size_t kGreenletFunctions = 5;
// Those of MODULE, mapped with BIAS, that tell its parts apart; not those that were not found
// before CANCELLATION was stopped.
[[nodiscard]] std::vector<GreenletFunction> greenlet_functions(
    const ElfFile& module, base::LoadBias bias,
    const base::Cancellation& cancellation = base::Cancellation::never());

}  // namespace pyinject::elf
