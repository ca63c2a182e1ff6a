// The extension module of greenlet, as a process has mapped it.
#pragma once

#include "elf/elf_file.hpp"
#include "procfs/maps.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace pyinject::bpf {

// The module's code; nullptr: not loaded.
[[nodiscard]] const procfs::Mapping* find_greenlet_module(const std::vector<procfs::Mapping>& maps);

struct GreenletModule {
  elf::ElfFile file;
  base::LoadBias bias;
};
// CODE: a mapping of its code in PID. nullopt: the file cannot be opened, or is not as expected.
[[nodiscard]] std::optional<GreenletModule> open_greenlet_module(base::Pid pid,
                                                                 const procfs::Mapping& code);

// The number of its thread-local variables, by which a thread's vector of them is indexed.
inline constexpr std::uint32_t kNoThreadLocals = 0xffffffffU;
// 0: PID has not loaded it yet, or descriptors or memory are short: try again later.
// kNoThreadLocals: they cannot be found, as with musl.
[[nodiscard]] std::uint32_t thread_locals_of_greenlet(base::Pid pid);

}  // namespace pyinject::bpf
