#include "inspect/described_call.hpp"

#include "inspect/system_call_names.hpp"
#include "pyinject/base/remote_address.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

namespace pyinject::inspect {

namespace {

using base::RemoteAddress;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::size_t kMostPath = 256;       // bytes
constexpr std::size_t kMostDescriptors = 8;  // of one poll or select

std::string format_span(nanoseconds span) {
  constexpr double kMilli = 1e3;
  const auto value = std::chrono::duration<double>{span}.count();
  return value < 1 ? fmt::format("{:.0f} ms", value * kMilli) : fmt::format("{:.1f} s", value);
}

class Decoder {
 public:
  Decoder(const procfs::BlockedCall& call, const CallSurroundings& around)
      : values_{call.arguments}, around_{around} {
    call_.number = call.number;
    call_.name = system_call_name(call.number);
    if (call_.name.empty()) {
      call_.name = fmt::format("syscall_{}", call.number);
    }
  }

  DescribedCall decode();

 private:
  [[nodiscard]] std::uint64_t value(std::size_t index) const { return values_.at(index); }
  [[nodiscard]] int number(std::size_t index) const { return static_cast<int>(value(index)); }
  [[nodiscard]] RemoteAddress address(std::size_t index) const {
    return RemoteAddress{value(index)};
  }
  void add(std::string text) { call_.arguments.push_back(std::move(text)); }

  [[nodiscard]] std::string described(int descriptor) const;
  void waits_for(std::size_t index);
  void path(std::size_t index);
  void peer(std::size_t index, std::size_t length);
  void polled();
  void selected();
  // A timeout in milliseconds; negative: none.
  void milliseconds(std::size_t index);
  // A struct timespec, relative; null: no timeout.
  void timeout(std::size_t index);
  void sleep_of_clock();
  void futex();
  void child(int pid);
  void waited_child();
  void lock_of_file();
  [[nodiscard]] std::optional<nanoseconds> span_at(RemoteAddress from) const;
  bool files();
  bool waits();

  std::array<std::uint64_t, 6> values_;
  const CallSurroundings& around_;
  DescribedCall call_;
};

std::string Decoder::described(int descriptor) const {
  const auto file = around_.file(descriptor);
  return file.empty() ? fmt::format("fd {}", descriptor)
                      : fmt::format("fd {}: {}", descriptor, file);
}

void Decoder::waits_for(std::size_t index) {
  call_.descriptor = number(index);
  call_.file = around_.file(number(index));
  add(described(number(index)));
}

void Decoder::path(std::size_t index) {
  std::string text;
  // By pages: the text may end in the last mapped one.
  constexpr std::size_t kPage = 4096;
  for (auto from = value(index); text.size() < kMostPath;) {
    std::array<char, kMostPath> bytes{};
    const auto size = std::min(kMostPath - text.size(), kPage - from % kPage);
    if (!around_.memory.read(RemoteAddress{from},
                             std::as_writable_bytes(std::span{bytes}.first(size)))) {
      return;
    }
    const std::string_view piece{bytes.data(), size};
    text += piece.substr(0, piece.find('\0'));
    if (piece.find('\0') != std::string_view::npos) {
      break;
    }
    from += size;
  }
  add(std::move(text));
}

// A struct sockaddr.
void Decoder::peer(std::size_t index, std::size_t length) {
  sockaddr_storage any{};
  const auto size = std::min<std::uint64_t>(value(length), sizeof any);
  if (size < sizeof(sa_family_t) ||
      !around_.memory.read(address(index),
                           std::as_writable_bytes(std::span{&any, 1}).first(size))) {
    return;
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (any.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(any);
    ::inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
    add(fmt::format("{}:{}", text.data(), ntohs(four.sin_port)));
  } else if (any.ss_family == AF_INET6) {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(any);
    ::inet_ntop(AF_INET6, &six.sin6_addr, text.data(), text.size());
    add(fmt::format("[{}]:{}", text.data(), ntohs(six.sin6_port)));
  } else if (any.ss_family == AF_UNIX) {
    const auto& local = reinterpret_cast<const sockaddr_un&>(any);
    const bool abstract = local.sun_path[0] == '\0';
    const std::string_view name{local.sun_path + (abstract ? 1 : 0),
                                sizeof local.sun_path - (abstract ? 1 : 0)};
    add(fmt::format("{}{}", abstract ? "@" : "", name.substr(0, name.find('\0'))));
  }
}

void Decoder::polled() {
  const auto count = value(1);
  for (std::size_t i = 0; i < std::min<std::uint64_t>(count, kMostDescriptors); ++i) {
    const auto entry = around_.memory.read_value<pollfd>(address(0) + i * sizeof(pollfd));
    if (!entry) {
      return;
    }
    if (entry->fd >= 0) {
      add(described(entry->fd));
    }
    if (count == 1 && entry->fd >= 0) {
      call_.descriptor = entry->fd;
      call_.file = around_.file(entry->fd);
    }
  }
  if (count > kMostDescriptors) {
    add(fmt::format("{} more", count - kMostDescriptors));
  }
}

void Decoder::selected() {
  constexpr std::size_t kBits = 64;
  const auto highest = static_cast<std::size_t>(std::clamp(number(0), 0, FD_SETSIZE));
  std::array<std::uint64_t, FD_SETSIZE / kBits> all{};
  for (std::size_t set = 1; set <= 3; ++set) {
    std::array<std::uint64_t, FD_SETSIZE / kBits> bits{};
    const auto used = std::span{bits}.first((highest + kBits - 1) / kBits);
    if (value(set) == 0 ||
        !around_.memory.read(address(set), std::as_writable_bytes(std::span{used}))) {
      continue;
    }
    std::ranges::transform(all, bits, all.begin(), [](auto a, auto b) { return a | b; });
  }
  std::size_t found = 0;
  for (std::size_t i = 0; i < highest; ++i) {
    if ((all.at(i / kBits) >> (i % kBits) & 1U) != 0 && ++found <= kMostDescriptors) {
      add(described(static_cast<int>(i)));
    }
  }
  if (found > kMostDescriptors) {
    add(fmt::format("{} more", found - kMostDescriptors));
  }
}

void Decoder::milliseconds(std::size_t index) {
  if (number(index) >= 0) {
    add("timeout " + format_span(std::chrono::milliseconds{number(index)}));
  }
}

std::optional<nanoseconds> Decoder::span_at(RemoteAddress from) const {
  constexpr seconds kMost = std::chrono::hours{24 * 365 * 100};
  const auto span = around_.memory.read_value<timespec>(from);
  if (!span || span->tv_sec < 0 || span->tv_sec > kMost.count() || span->tv_nsec < 0 ||
      span->tv_nsec >= std::nano::den) {
    return std::nullopt;
  }
  return seconds{span->tv_sec} + nanoseconds{span->tv_nsec};
}

void Decoder::timeout(std::size_t index) {
  const auto span = value(index) == 0 ? std::nullopt : span_at(address(index));
  if (span) {
    add("timeout " + format_span(*span));
  }
}

void Decoder::sleep_of_clock() {
  constexpr std::uint64_t kAbsolute = 1;  // TIMER_ABSTIME
  const auto span = span_at(address(2));
  if (!span) {
    return;
  }
  if ((value(1) & kAbsolute) == 0) {
    add(format_span(*span));
  } else if (const auto now = around_.now(static_cast<clockid_t>(number(0)))) {
    add(format_span(std::max(*span - *now, nanoseconds{0})) + " left");
  }
}

void Decoder::futex() {
  static constexpr auto kOperations = std::to_array<std::pair<int, std::string_view>>({
      {FUTEX_WAIT, "FUTEX_WAIT"},
      {FUTEX_LOCK_PI, "FUTEX_LOCK_PI"},
      {FUTEX_LOCK_PI2, "FUTEX_LOCK_PI2"},
      {FUTEX_WAIT_BITSET, "FUTEX_WAIT_BITSET"},
      {FUTEX_WAIT_REQUEUE_PI, "FUTEX_WAIT_REQUEUE_PI"},
  });
  const auto* const found = std::ranges::find(kOperations, number(1) & FUTEX_CMD_MASK,
                                              &std::pair<int, std::string_view>::first);
  if (found != kOperations.end()) {
    add(std::string{found->second});
  }
  add(fmt::format("{:#x}", value(0)));
  // FUTEX_WAIT's timeout is relative, that of FUTEX_WAIT_BITSET is a time of a clock.
  if (value(3) == 0 || found == kOperations.end()) {
    return;
  }
  if (found->first == FUTEX_WAIT) {
    timeout(3);
    return;
  }
  const auto until = span_at(address(3));
  const bool real_time = (number(1) & FUTEX_CLOCK_REALTIME) != 0 || found->first == FUTEX_LOCK_PI;
  const auto now = around_.now(real_time ? CLOCK_REALTIME : CLOCK_MONOTONIC);
  if (until && now) {
    add("timeout in " + format_span(std::max(*until - *now, nanoseconds{0})));
  }
}

void Decoder::child(int pid) {
  if (pid > 0) {
    add(fmt::format("pid {}", pid));
  } else if (pid == -1) {
    add("any child");
  } else {
    add(pid == 0 ? "its process group" : fmt::format("process group {}", -std::int64_t{pid}));
  }
}

void Decoder::waited_child() {
  switch (number(0)) {
    case P_ALL:
      child(-1);
      break;
    case P_PID:
      child(number(1));
      break;
    case P_PIDFD:
      waits_for(1);
      break;
    default:
      break;
  }
}

void Decoder::lock_of_file() {
  waits_for(0);
  const int operation = number(1);
  add((operation & LOCK_EX) != 0 ? "LOCK_EX" : "LOCK_SH");
}

// Calls whose first arguments are descriptors or paths.
bool Decoder::files() {
  switch (call_.number) {
    case SYS_read:
    case SYS_write:
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_readv:
    case SYS_writev:
    case SYS_preadv:
    case SYS_pwritev:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_syncfs:
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_getdents64:
    case SYS_close:
    case SYS_ioctl:
    case SYS_fcntl:
      waits_for(0);
      return true;
    case SYS_connect:
      waits_for(0);
      peer(1, 2);
      return true;
    case SYS_flock:
      lock_of_file();
      return true;
    case SYS_sendfile:
    case SYS_splice:
    case SYS_copy_file_range:
      waits_for(0);
      add(described(number(call_.number == SYS_sendfile ? 1 : 2)));
      return true;
    case SYS_open:
    case SYS_stat:
    case SYS_lstat:
    case SYS_unlink:
    case SYS_execve:
      path(0);
      return true;
    case SYS_openat:
    case SYS_openat2:
    case SYS_newfstatat:
    case SYS_statx:
    case SYS_unlinkat:
      if (number(0) != AT_FDCWD) {
        add(described(number(0)));
      }
      path(1);
      return true;
    default:
      return false;
  }
}

// Calls that wait for something else.
bool Decoder::waits() {
  switch (call_.number) {
    case SYS_poll:
      polled();
      milliseconds(2);
      return true;
    case SYS_ppoll:
      polled();
      timeout(2);
      return true;
    case SYS_select:
    case SYS_pselect6:
      selected();
      return true;
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
      add(fmt::format("fd {}", number(0)));
      milliseconds(3);
      return true;
    case SYS_epoll_pwait2:
      add(fmt::format("fd {}", number(0)));
      timeout(3);
      return true;
    case SYS_futex:
      futex();
      return true;
    case SYS_nanosleep:
      if (const auto span = span_at(address(0))) {
        add(format_span(*span));
      }
      return true;
    case SYS_clock_nanosleep:
      sleep_of_clock();
      return true;
    case SYS_wait4:
      child(number(0));
      return true;
    case SYS_waitid:
      waited_child();
      return true;
    default:
      return false;
  }
}

DescribedCall Decoder::decode() {
  static constexpr auto kWithoutArguments =
      std::to_array<long>({SYS_pause, SYS_sched_yield, SYS_sync, SYS_restart_syscall});
  call_.all_arguments = false;
  if (!files() && !waits()) {
    call_.all_arguments =
        std::ranges::find(kWithoutArguments, call_.number) != kWithoutArguments.end();
  }
  return std::move(call_);
}

}  // namespace

DescribedCall describe_call(const procfs::BlockedCall& call, const CallSurroundings& surroundings) {
  return Decoder{call, surroundings}.decode();
}

std::string to_string(const DescribedCall& call) {
  const bool more = call.arguments.empty() && !call.all_arguments;
  return fmt::format("{}({}{})", call.name, fmt::join(call.arguments, ", "), more ? "..." : "");
}

}  // namespace pyinject::inspect
