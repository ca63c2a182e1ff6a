#include "inspect/core_signal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <string_view>

#include <string.h>  // NOLINT(modernize-deprecated-headers): sigabbrev_np

namespace pyinject::inspect {

namespace {

// A cause that only the kernel gives; the address follows the text.
struct SignalCause {
  int signal = 0;
  int code = 0;
  std::string_view text;
};

constexpr auto kCauses = std::to_array<SignalCause>({
    {SIGSEGV, SEGV_MAPERR, "no memory is mapped at"},
    {SIGSEGV, SEGV_ACCERR, "the memory does not permit the access at"},
    {SIGSEGV, SEGV_PKUERR, "a protection key does not permit the access at"},
    {SIGBUS, BUS_ADRALN, "unaligned access at"},
    {SIGBUS, BUS_ADRERR, "no storage is behind the memory at"},
    {SIGBUS, BUS_OBJERR, "hardware error at"},
    {SIGBUS, BUS_MCEERR_AR, "the memory is defective at"},
    {SIGBUS, BUS_MCEERR_AO, "the memory is defective at"},
    {SIGILL, ILL_ILLOPC, "illegal instruction at"},
    {SIGILL, ILL_ILLOPN, "illegal instruction at"},
    {SIGILL, ILL_PRVOPC, "privileged instruction at"},
    {SIGILL, ILL_PRVREG, "privileged register at"},
    {SIGFPE, FPE_INTDIV, "integer division by zero at"},
    {SIGFPE, FPE_INTOVF, "integer overflow at"},
    {SIGFPE, FPE_FLTDIV, "floating-point division by zero at"},
    {SIGTRAP, TRAP_BRKPT, "breakpoint at"},
    {SIGTRAP, TRAP_TRACE, "single step at"},
});

}  // namespace

std::string signal_name(int number) {
  const char* const name = ::sigabbrev_np(number);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

std::string cause_of(const elf::CoreSignal& signal) {
  const auto* const found = std::ranges::find_if(kCauses, [&signal](const SignalCause& cause) {
    return cause.signal == signal.number && cause.code == signal.code;
  });
  if (found != kCauses.end()) {
    return fmt::format("{} {:#x}", found->text, signal.address);
  }
  switch (signal.code) {
    case SI_KERNEL:
      // A general protection fault has no address: the address was not a canonical one, mostly.
      return signal.number == SIGSEGV ? "an access that the processor does not permit"
                                      : "sent by the kernel";
    case SI_USER:
    case SI_TKILL:
    case SI_QUEUE:
      return fmt::format("sent by pid {} (uid {})", signal.sender.value(), signal.sender_uid);
    default:
      return {};
  }
}

}  // namespace pyinject::inspect
