// The signal of a core file, in words. Pure.
#pragma once

#include "elf/core_notes.hpp"

#include <string>

namespace pyinject::inspect {

// "SIGSEGV"; "signal 40" if it has no name.
[[nodiscard]] std::string signal_name(int number);

// What caused it: "no memory is mapped at 0x10", "sent by pid 4711 (uid 0)"; sigaction(2). Empty:
// the core does not say.
[[nodiscard]] std::string cause_of(const elf::CoreSignal& signal);

}  // namespace pyinject::inspect
