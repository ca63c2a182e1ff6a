// A chain of signal frames: the kernel's own way to restore a thread exactly.
//
// The target calls a few functions one after another and then continues, without further help, as
// if nothing had happened: each function returns into the restorer (mov $15,%rax; syscall), which
// makes the kernel load the next frame. Once the registers are set, no cleanup is needed; if the
// tracer is killed before that, some unused bytes remain below the stack pointer.
//
//   high   ... the thread's stack ...
//          128 bytes red zone (System V ABI 3.2.2)
//          extended state, 64-byte aligned           <- the last frame points at it
//          last frame: original registers and signal mask
//          frame of call N ... frame of call 2
//   low    frame of call 1                            <- first sigreturn loads it
//          the functions' own stack
#pragma once

#include "pyinject/base/remote_address.hpp"
#include "tracee/registers.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pyinject::tracee {

struct RemoteCall {
  base::RemoteAddress function;
  std::uint64_t first_argument = 0;
  std::uint64_t second_argument = 0;
};

struct SignalFrames {
  base::RemoteAddress at;        // address for the bytes
  std::vector<std::byte> bytes;  // all frames, contiguous
  Registers start;               // set these to load the first frame
};

// RESUME: the registers with which the thread finally continues (tracee::resumable() of those at
// the stop). STATE: read_extended_state(); MASK: read_signal_mask(). RESTORER: the address of "mov
// $15,%rax; syscall" in the target. During the calls, all signals except synchronous ones are
// blocked. nullopt: STATE is not in a form that rt_sigreturn accepts. Layout: kernel
// arch/x86/include/asm/sigframe.h, fpu/signal.c.
[[nodiscard]] std::optional<SignalFrames> build_signal_frames(
    const Registers& stopped, const Registers& resume, std::span<const std::byte> state,
    std::uint64_t mask, std::span<const RemoteCall> calls, base::RemoteAddress restorer);

// Queries the processor once for what build_signal_frames() needs. In a virtual machine this query
// takes longer than a stop.
void prepare_signal_frames();

// The restorer's code, to search for in the target's libc.
[[nodiscard]] std::span<const std::byte> restorer_code();

}  // namespace pyinject::tracee
