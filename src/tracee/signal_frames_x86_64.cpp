#include "tracee/signal_frames.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include <cpuid.h>

namespace pyinject::tracee {

namespace {

// struct sigcontext and struct ucontext of the kernel (uapi/asm/sigcontext.h, asm/ucontext.h),
// which conflict with glibc's.
struct SignalContext {
  std::uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
  std::uint64_t di, si, bp, bx, dx, ax, cx, sp, ip, flags;
  std::uint16_t cs, gs, fs, ss;
  std::uint64_t err, trapno, oldmask, cr2;
  std::uint64_t extended_state;
  std::array<std::uint64_t, 8> reserved;
};
struct SignalFrame {
  std::uint64_t restorer;
  std::uint64_t uc_flags;
  std::uint64_t uc_link;
  std::uint64_t stack_sp;
  std::uint32_t stack_flags;
  std::uint32_t stack_pad;
  std::uint64_t stack_size;
  SignalContext context;
  std::uint64_t mask;
};
static_assert(sizeof(SignalContext) == 256);
static_assert(offsetof(SignalFrame, context) == 8 + 40);
static_assert(sizeof(SignalFrame) == 312);

constexpr std::uint64_t kRedZone = 128;
// UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS.
constexpr std::uint64_t kContextFlags = 7;
// Not a valid ss_flags: rt_sigreturn then preserves the thread's alternate stack, which a tracer
// cannot read (kernel restore_altstack() ignores every error but EFAULT).
constexpr std::uint32_t kKeepAlternateStack = 0xffffffff;

// struct _fpx_sw_bytes, at the end of the FXSAVE area.
constexpr std::size_t kSoftwareBytes = 464;
constexpr std::size_t kLegacyArea = 512;
constexpr std::size_t kHeader = 64;
constexpr std::uint32_t kMagic1 = 0x46505853;
constexpr std::uint32_t kMagic2 = 0x46505845;
struct SoftwareBytes {
  std::uint32_t magic1;
  std::uint32_t extended_size;
  std::uint64_t features;
  std::uint32_t state_size;
  std::array<std::uint32_t, 7> pad;
};
static_assert(sizeof(SoftwareBytes) == 48);

// The last two of the 64 bits are no components.
constexpr unsigned kComponents = 62;

// End offset of each component in the XSAVE standard format, 0 for missing ones: CPUID leaf 0xd
// (Intel SDM 13.5).
const std::array<std::size_t, kComponents>& component_ends() {
  static const auto ends = [] {
    constexpr unsigned kLeaf = 0xd;
    unsigned low = 0;
    unsigned high = 0;
    unsigned size = 0;
    unsigned offset = 0;
    std::array<std::size_t, kComponents> found{};
    if (__get_cpuid_count(kLeaf, 0, &low, &offset, &size, &high) == 0) {
      return found;
    }
    const std::uint64_t there = std::uint64_t{high} << 32U | low;
    for (unsigned index = 2; index < kComponents; ++index) {
      if ((there >> index & 1U) != 0) {
        __cpuid_count(kLeaf, index, size, offset, low, high);
        found[index] = std::size_t{offset} + size;
      }
    }
    return found;
  }();
  return ends;
}

// STATE in the form that rt_sigreturn accepts, up to the last component in use: ptrace's register
// set can be larger than what the kernel accepts in a frame (AMX permission).
std::optional<std::vector<std::byte>> frame_state(std::span<const std::byte> state) {
  if (state.size() < kLegacyArea + kHeader) {
    return std::nullopt;
  }
  std::uint64_t in_use = 0;
  std::memcpy(&in_use, state.data() + kLegacyArea, sizeof in_use);
  std::size_t size = kLegacyArea + kHeader;
  for (unsigned index = 2; index < kComponents; ++index) {
    if ((in_use >> index & 1U) != 0) {
      size = std::max(size, component_ends()[index]);
    }
  }
  if (size > state.size()) {
    return std::nullopt;
  }
  std::vector<std::byte> result(size + sizeof kMagic2);
  const std::span<std::byte> bytes{result};
  std::ranges::copy(state.first(size), bytes.begin());
  const SoftwareBytes software{.magic1 = kMagic1,
                               .extended_size = static_cast<std::uint32_t>(result.size()),
                               .features = in_use | 3U,  // x87 and SSE are always present
                               .state_size = static_cast<std::uint32_t>(size),
                               .pad = {}};
  std::ranges::copy(std::as_bytes(std::span{&software, 1}), bytes.subspan(kSoftwareBytes).begin());
  // Keep XSTATE_BV; the rest of the header must be zero in the standard format.
  std::ranges::fill(bytes.subspan(kLegacyArea + sizeof in_use, kHeader - sizeof in_use),
                    std::byte{0});
  std::ranges::copy(std::as_bytes(std::span{&kMagic2, 1}), bytes.subspan(size).begin());
  return result;
}

SignalFrame frame_of(const Registers& registers, std::uint64_t mask, std::uint64_t restorer) {
  const auto& from = registers.general;
  SignalFrame frame{};
  frame.restorer = restorer;
  frame.uc_flags = kContextFlags;
  frame.stack_flags = kKeepAlternateStack;
  frame.mask = mask;
  frame.context = {.r8 = from.r8,
                   .r9 = from.r9,
                   .r10 = from.r10,
                   .r11 = from.r11,
                   .r12 = from.r12,
                   .r13 = from.r13,
                   .r14 = from.r14,
                   .r15 = from.r15,
                   .di = from.rdi,
                   .si = from.rsi,
                   .bp = from.rbp,
                   .bx = from.rbx,
                   .dx = from.rdx,
                   .ax = from.rax,
                   .cx = from.rcx,
                   .sp = from.rsp,
                   .ip = from.rip,
                   .flags = from.eflags,
                   .cs = static_cast<std::uint16_t>(from.cs),
                   .gs = 0,
                   .fs = 0,
                   .ss = static_cast<std::uint16_t>(from.ss),
                   .err = 0,
                   .trapno = 0,
                   .oldmask = 0,
                   .cr2 = 0,
                   .extended_state = 0,
                   .reserved = {}};
  return frame;
}

std::uint64_t signals_to_block() {
  std::uint64_t mask = ~std::uint64_t{0};
  for (const int synchronous : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
    mask &= ~(std::uint64_t{1} << static_cast<unsigned>(synchronous - 1));
  }
  return mask;
}

}  // namespace

void prepare_signal_frames() { (void)component_ends(); }

std::span<const std::byte> restorer_code() {
  static constexpr std::array kCode = std::to_array<std::byte>(
      {std::byte{0x48}, std::byte{0xc7}, std::byte{0xc0}, std::byte{0x0f}, std::byte{0},
       std::byte{0}, std::byte{0}, std::byte{0x0f}, std::byte{0x05}});
  return kCode;
}

std::optional<SignalFrames> build_signal_frames(const Registers& stopped, const Registers& resume,
                                                std::span<const std::byte> state,
                                                std::uint64_t mask,
                                                std::span<const RemoteCall> calls,
                                                base::RemoteAddress restorer) {
  const auto saved = frame_state(state);
  if (!saved || calls.empty()) {
    return std::nullopt;
  }
  const std::uint64_t top = stopped.general.rsp - kRedZone;
  const std::uint64_t state_at = (top - saved->size()) & ~std::uint64_t{63};
  // A frame's address is 8 modulo 16: a function entered with this stack pointer is aligned as the
  // ABI requires. Frame 0 is loaded first; call k-1 returns into frame k.
  const std::size_t step = (sizeof(SignalFrame) + 15) & ~std::size_t{15};
  const std::size_t count = calls.size() + 1;
  const std::uint64_t first = ((state_at - count * step) & ~std::uint64_t{15}) - 8;

  SignalFrames result{.at = base::RemoteAddress{first}, .bytes = {}, .start = stopped};
  result.bytes.resize(state_at + saved->size() - first);
  for (std::size_t index = 0; index < count; ++index) {
    SignalFrame frame{};
    if (index < calls.size()) {
      Registers call = stopped;  // segments and flags
      call.general.rip = calls[index].function.value();
      call.general.rdi = calls[index].first_argument;
      call.general.rsi = calls[index].second_argument;
      call.general.rsp = first + (index + 1) * step;
      call.general.rbp = 0;                          // ends a frame-pointer walk
      call.general.eflags &= ~std::uint64_t{0x400};  // clear DF, as the ABI requires
      frame = frame_of(call, signals_to_block(), restorer.value());
    } else {
      frame = frame_of(resume, mask, restorer.value());
      frame.context.extended_state = state_at;
    }
    std::memcpy(result.bytes.data() + index * step, &frame, sizeof frame);
  }
  std::memcpy(result.bytes.data() + (state_at - first), saved->data(), saved->size());
  result.start.general.rip = restorer.value();
  result.start.general.rsp = first + 8;  // as if the restorer's address had been popped
  result.start.general.orig_rax = ~0ULL;
  return result;
}

}  // namespace pyinject::tracee
