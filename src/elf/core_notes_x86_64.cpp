#include "elf/core_notes.hpp"

#include <algorithm>
#include <cstring>

#include <sys/procfs.h>
#include <sys/user.h>

namespace pyinject::elf {

namespace {

// The call in which a thread with these REGISTERS waited. Results that only the kernel and a tracer
// see (include/linux/errno.h) and EINTR show that it was interrupted.
std::optional<CoreCall> interrupted_call_of(const user_regs_struct& registers) {
  constexpr std::int64_t kInterrupted = -4;      // EINTR
  constexpr std::int64_t kRestartFirst = -512;   // ERESTARTSYS
  constexpr std::int64_t kRestartLast = -516;    // ERESTART_RESTARTBLOCK
  constexpr std::int64_t kNoSuchCommand = -515;  // ENOIOCTLCMD, which is between them
  const auto number = static_cast<std::int64_t>(registers.orig_rax);
  const auto result = static_cast<std::int64_t>(registers.rax);
  const bool interrupted =
      result == kInterrupted ||
      (result <= kRestartFirst && result >= kRestartLast && result != kNoSuchCommand);
  if (number < 0 || !interrupted) {
    return std::nullopt;
  }
  return CoreCall{.number = static_cast<long>(number),
                  .arguments = {registers.rdi, registers.rsi, registers.rdx, registers.r10,
                                registers.r8, registers.r9}};
}

}  // namespace

std::optional<CoreThread> parse_core_thread(std::span<const std::byte> bytes) {
  elf_prstatus status{};
  user_regs_struct registers{};
  static_assert(sizeof status.pr_reg == sizeof registers);
  if (bytes.size() < sizeof status) {
    return std::nullopt;
  }
  std::memcpy(&status, bytes.data(), sizeof status);
  std::memcpy(&registers, &status.pr_reg, sizeof registers);
  return CoreThread{.tid = base::Tid{status.pr_pid},
                    .signal = status.pr_cursig,
                    .thread_pointer = registers.fs_base,
                    .stack_pointer = registers.rsp,
                    .program_counter = registers.rip,
                    .call = interrupted_call_of(registers)};
}

std::optional<CoreProcess> parse_core_process(std::span<const std::byte> bytes) {
  elf_prpsinfo info{};
  if (bytes.size() < sizeof info) {
    return std::nullopt;
  }
  std::memcpy(&info, bytes.data(), sizeof info);
  const auto text = [](const auto& field) {
    return std::string{std::begin(field), std::ranges::find(field, '\0')};
  };
  CoreProcess process{.pid = base::Pid{info.pr_pid},
                      .uid = info.pr_uid,
                      .name = text(info.pr_fname),
                      .arguments = text(info.pr_psargs)};
  process.cut = process.arguments.size() + 1 >= sizeof info.pr_psargs;
  // The kernel replaces the NUL behind each argument by a space.
  process.arguments.erase(process.arguments.find_last_not_of(' ') + 1);
  return process;
}

}  // namespace pyinject::elf
