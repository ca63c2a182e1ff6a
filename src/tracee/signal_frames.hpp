// A chain of signal frames: the kernel's own means of putting a thread back exactly as it was.
//
// The target calls a few functions one after another and then goes on as if nothing had been, by
// itself: each function returns into the restorer (mov $15,%rax; syscall), which makes the kernel
// load the next frame. From the moment the registers are set nobody has to be there to clean up;
// being killed before that leaves some bytes below the stack pointer that nobody reads.
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
  base::RemoteAddress at;        // where the bytes go
  std::vector<std::byte> bytes;  // all frames, contiguous
  Registers start;               // to be set: they load the first frame
};

// RESUME: how the thread goes on in the end (tracee::resumable() of what it was stopped with).
// STATE: read_extended_state(); MASK: read_signal_mask(). RESTORER: the address of
// "mov $15,%rax; syscall" in the target. During the calls all signals but the synchronous ones are
// blocked. Empty when STATE is not in a form that rt_sigreturn accepts.
// Layout: kernel arch/x86/include/asm/sigframe.h, fpu/signal.c.
[[nodiscard]] std::optional<SignalFrames> build_signal_frames(
    const Registers& stopped, const Registers& resume, std::span<const std::byte> state,
    std::uint64_t mask, std::span<const RemoteCall> calls, base::RemoteAddress restorer);

// Asks the processor once for what build_signal_frames() has to know. In a virtual machine the
// answer takes longer than a stop.
void prepare_signal_frames();

// The restorer's bytes, to be looked for in the target's libc.
[[nodiscard]] std::span<const std::byte> restorer_code();

}  // namespace pyinject::tracee
