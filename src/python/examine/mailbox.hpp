// What perf-pyinject remembers inside the target: a few words in the unused end of a library's last
// data page. It needs no memory mapping, dies with the process, and fork copies it.
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

// What is known of an activation beyond its being asked for, and having run.
enum Outcome : std::uint32_t {
  kNothingSpecial = 0,
  kFailed = 1,  // it went wrong and was undone; not tried again
  // Its payload was blanked and may have been running: what is on afterwards is on by us.
  kWithdrawing = 2,
};

// As it lies in the target; every field is read back from there and checked before it is used.
struct Mailbox {
  std::uint64_t magic = 0;
  // Whose mailbox: a fork's child has a copy of its parent's. The pid is the one the target has in
  // its own namespace, so that tools inside and outside of a container agree.
  std::int32_t process_pid = 0;
  std::int32_t owner_pid = 0;  // the session that will switch off; 0: none
  std::uint64_t process_start = 0;
  std::uint64_t owner_start = 0;
  std::uint64_t evaluator = 0;  // learned after the activation; 0: not yet
  // The queued call's sem_post target: a sem_t of glibc (16 bytes used) or musl (12), zero = 0.
  // Its first int is the number of requests that have run.
  std::uint32_t done = 0;
  std::array<std::uint32_t, 2> semaphore_rest{};
  // Padding of glibc's sem_t, which nothing reads. Inode of the pid namespace that owner_pid is of;
  // 0: not noted, by an older perf-pyinject.
  std::uint32_t owner_namespace = 0;
  std::uint32_t requested = 0;  // requests made; above done: one is still to run
  std::uint32_t outcome = 0;    // Outcome
  // The end of the request's signal frames on the main thread's stack; 0: it went through the
  // queue. As long as that thread's stack pointer is below, it is still on its way through them.
  std::uint64_t frames_end = 0;
  std::array<char, 88> payload{};
};
static_assert(sizeof(Mailbox) == 160);
static_assert(offsetof(Mailbox, done) == 40);

inline constexpr std::uint64_t kMailboxMagic = 0x31'58'4f'42'4a'59'50'7fULL;  // "\x7fPYJBOX1"

// The one line of Python that is ever run. Exceptions must not leave it: a pending call that
// returns -1 without an exception set becomes a SystemError in the program.
inline constexpr std::string_view kPayload =
    "try:__import__('sys').activate_stack_trampoline('perf')\nexcept BaseException:pass";
static_assert(kPayload.size() < sizeof(Mailbox::payload));

// Where a field is in the target.
[[nodiscard]] constexpr base::RemoteAddress mailbox_done(base::RemoteAddress mailbox) {
  return mailbox + offsetof(Mailbox, done);
}
[[nodiscard]] constexpr base::RemoteAddress mailbox_payload(base::RemoteAddress mailbox) {
  return mailbox + offsetof(Mailbox, payload);
}

// Unused memory behind a library's .bss, up to the end of its page.
struct PageTail {
  base::RemoteAddress begin;
  std::uint64_t size = 0;
};
// The part of TAIL that a mailbox takes; nullopt: too small.
[[nodiscard]] std::optional<base::RemoteAddress> mailbox_place(const PageTail& tail);

// The mailbox at ADDRESS; nullopt: none there.
[[nodiscard]] std::optional<Mailbox> read_mailbox(const memory::MemoryReader& memory,
                                                  base::RemoteAddress address);

// True when the mailbox's bytes are all zero: nobody uses that memory.
[[nodiscard]] bool is_unused(const memory::MemoryReader& memory, base::RemoteAddress address);

[[nodiscard]] inline bool belongs_to(const Mailbox& mailbox, base::Pid inner_pid,
                                     std::uint64_t start_time) {
  return mailbox.process_pid == inner_pid.value() && mailbox.process_start == start_time;
}

}  // namespace pyinject::python
