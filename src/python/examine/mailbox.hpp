// The state that perf-pyinject stores in the target: a few words in the unused end of a library's
// last data page, or at the top of the stack where libraries have none. Needs no memory mapping,
// vanishes with the process, and is copied by fork.
#pragma once

#include "memory/process_memory.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace pyinject::python {

// The result of an activation, beyond being requested and having run.
enum Outcome : std::uint32_t {
  kNothingSpecial = 0,
  kFailed = 1,  // failed and was undone; not tried again
  // The payload was blanked while it may have been running: if the trampoline is on afterwards, it
  // is on by us.
  kWithdrawing = 2,
};

// The layout in the target; every field is read back and validated before use.
struct Mailbox {
  std::uint64_t magic = 0;
  // The process of this mailbox: a forked child has a copy of its parent's. The pid is that in the
  // target's own namespace, so that tools inside and outside of a container agree.
  std::int32_t process_pid = 0;
  std::int32_t owner_pid = 0;  // the session that will switch off; 0: none
  std::uint64_t process_start = 0;
  std::uint64_t owner_start = 0;
  std::uint64_t evaluator = 0;  // stored after the activation; 0: not yet
  // Target of the queued sem_post call: a sem_t of glibc (16 bytes used) or musl (12), zero = 0.
  // Its first int is the number of requests that have run.
  std::uint32_t done = 0;
  std::array<std::uint32_t, 2> semaphore_rest{};
  // In the unused padding of glibc's sem_t. Inode of the pid namespace of owner_pid; 0: not stored,
  // by an older perf-pyinject.
  std::uint32_t owner_namespace = 0;
  std::uint32_t requested = 0;  // number of requests; greater than done: one is pending
  std::uint32_t outcome = 0;    // Outcome
  // End of the request's signal frames on the main thread's stack; 0: the request used the queue.
  // While the thread's stack pointer is lower, the frames are still in use.
  std::uint64_t frames_end = 0;
  std::array<char, 88> payload{};
};
static_assert(sizeof(Mailbox) == 160);
static_assert(offsetof(Mailbox, done) == 40);

inline constexpr std::uint64_t kMailboxMagic = 0x31'58'4f'42'4a'59'50'7fULL;  // "\x7fPYJBOX1"

// The only Python code that is ever run. Exceptions must not leave it: a pending call that returns
// -1 without an exception set raises a SystemError in the program.
inline constexpr std::string_view kPayload =
    "try:__import__('sys').activate_stack_trampoline('perf')\nexcept BaseException:pass";
static_assert(kPayload.size() < sizeof(Mailbox::payload));

// Address of a field in the target.
[[nodiscard]] constexpr base::RemoteAddress mailbox_done(base::RemoteAddress mailbox) {
  return mailbox + offsetof(Mailbox, done);
}
[[nodiscard]] constexpr base::RemoteAddress mailbox_payload(base::RemoteAddress mailbox) {
  return mailbox + offsetof(Mailbox, payload);
}

// Memory that the target does not use: after a library's .bss, up to the end of its page, or
// stack_gap.hpp.
struct UnusedMemory {
  base::RemoteAddress begin;
  std::uint64_t size = 0;
};
// Address of the mailbox in UNUSED; nullopt: too small.
[[nodiscard]] std::optional<base::RemoteAddress> mailbox_place(const UnusedMemory& unused);

// The mailbox at ADDRESS; nullopt: none there.
[[nodiscard]] std::optional<Mailbox> read_mailbox(const memory::MemoryReader& memory,
                                                  base::RemoteAddress address);

// True if all bytes of the mailbox are zero: the memory is unused.
[[nodiscard]] bool is_unused(const memory::MemoryReader& memory, base::RemoteAddress address);

[[nodiscard]] inline bool belongs_to(const Mailbox& mailbox, base::Pid inner_pid,
                                     std::uint64_t start_time) {
  return mailbox.process_pid == inner_pid.value() && mailbox.process_start == start_time;
}

}  // namespace pyinject::python
