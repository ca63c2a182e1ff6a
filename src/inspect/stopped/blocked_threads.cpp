#include "inspect/stopped/blocked_threads.hpp"

#include "bpf/entry_registers.hpp"
#include "inspect/stopped/interleave.hpp"
#include "inspect/stopped/native_stacks.hpp"
#include "procfs/blocked_task.hpp"
#include "procfs/status.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pyinject::inspect {

namespace {

bool is_blocked(const ThreadSnapshot& thread) {
  return !thread.ran_meanwhile && thread.settled && !thread.unreadable &&
         (thread.activity == Activity::kSleeping || thread.activity == Activity::kUninterruptible ||
          thread.activity == Activity::kStopped);
}

using Calls = std::map<base::Tid, std::string>;

// nullopt: a thread is not blocked.
std::optional<Calls> read_calls(const ProcessSnapshot& snapshot) {
  Calls calls;
  for (const auto& thread : snapshot.threads) {
    if (thread.activity == Activity::kZombie) {
      continue;
    }
    auto call =
        is_blocked(thread) ? procfs::read_system_call(snapshot.pid, thread.tid) : std::nullopt;
    if (!call || !procfs::parse_user_place(*call)) {
      return std::nullopt;
    }
    calls.emplace(thread.tid, std::move(*call));
  }
  return calls;
}

// Whether THREAD is still in CALL, and has been since it was read.
bool has_stayed(base::Pid pid, const ThreadSnapshot& thread, const std::string& call) {
  const auto status = procfs::read_status(pid, thread.tid);
  return status && status->switches == thread.switches &&
         procfs::read_system_call(pid, thread.tid) == call;
}

// All registers if ENTRY belongs to the current call; otherwise sp and pc from PLACE.
ThreadRegisters registers_of(const ThreadSnapshot& thread, const procfs::UserPlace& place,
                             const bpf::EntryRegisters& entry) {
  auto registers = unwind::from_place(place.stack_pointer, place.program_counter);
  const auto found = entry.find(thread.tid);
  if (found == entry.end()) {
    return {.registers = registers, .thread_pointer = thread.python_id};  // pthread_self()
  }
  unwind::Registers all;
  for (std::size_t i = 0; i < unwind::kRegisters; ++i) {
    all.set(i, found->second.values[i]);
  }
  const bool same = all.sp() == registers.sp() && all.pc() == registers.pc();
  return {.registers = same ? all : registers, .thread_pointer = found->second.thread_pointer};
}

}  // namespace

bool add_native_of_blocked(ProcessSnapshot& snapshot, const python::Target* target) {
  const auto calls = read_calls(snapshot);
  if (!calls) {
    return false;
  }
  const auto entry = bpf::read_entry_registers(snapshot.pid);
  std::map<base::Tid, ThreadRegisters> registers;
  for (const auto& thread : snapshot.threads) {
    if (const auto call = calls->find(thread.tid); call != calls->end()) {
      registers.emplace(thread.tid,
                        registers_of(thread, *procfs::parse_user_place(call->second), entry));
    }
  }
  NativeStacks native{target};
  native.copy(registers);
  const bool stayed = std::ranges::all_of(snapshot.threads, [&](const ThreadSnapshot& thread) {
    const auto call = calls->find(thread.tid);
    return call == calls->end() || has_stayed(snapshot.pid, thread, call->second);
  });
  if (!stayed) {
    return false;
  }
  auto threads = snapshot.threads;
  const auto stacks = native.unwind();
  for (auto& thread : threads) {
    if (const auto found = stacks.find(thread.tid); found != stacks.end()) {
      interleave(thread, found->second);
      if (!thread.native_missing.empty()) {
        return false;
      }
    }
  }
  snapshot.threads = std::move(threads);
  return true;
}

}  // namespace pyinject::inspect
