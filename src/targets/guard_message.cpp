#include "targets/guard_message.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <type_traits>
#include <utility>

#include <sys/socket.h>
#include <sys/uio.h>

namespace pyinject::targets {

namespace {

// A SOCK_SEQPACKET socket preserves message boundaries. Must contain every field of a Target that
// an injector reads.
struct Wire {
  GuardMessage::Kind kind;
  base::ProcessId id;
  decltype(python::Target::stack_begin) stack_begin;
  python::Version version;
  base::RemoteAddress text_begin;
  base::RemoteAddress text_end;
  base::LoadBias bias;
  python::Addresses addresses;
  python::TrampolineState state;
  base::Pid inner_pid;
  std::array<char, 64> map_path;
  std::uint64_t since;
  bool has_executable;
  dev_t device;
  ino_t inode;
};
static_assert(std::is_trivially_copyable_v<Wire>);

Wire to_wire(const GuardMessage& message) {
  const auto& target = message.target;
  const auto executable = message.ancestor.executable.value_or(std::pair<dev_t, ino_t>{});
  Wire wire{.kind = message.kind,
            .id = target.id,
            .stack_begin = target.stack_begin,
            .version = target.version,
            .text_begin = target.text_begin,
            .text_end = target.text_end,
            .bias = target.bias,
            .addresses = target.addresses,
            .state = target.state,
            .inner_pid = target.inner_pid,
            .map_path = {},
            .since = message.ancestor.since,
            .has_executable = message.ancestor.executable.has_value(),
            .device = executable.first,
            .inode = executable.second};
  // "/tmp/perf-PID.map" by construction.
  target.map_path.copy(wire.map_path.data(), wire.map_path.size() - 1);
  return wire;
}

GuardMessage from_wire(const Wire& wire) {
  GuardMessage message;
  message.kind = wire.kind;
  message.target.id = wire.id;
  message.target.stack_begin = wire.stack_begin;
  message.target.version = wire.version;
  message.target.text_begin = wire.text_begin;
  message.target.text_end = wire.text_end;
  message.target.bias = wire.bias;
  message.target.addresses = wire.addresses;
  message.target.state = wire.state;
  message.target.inner_pid = wire.inner_pid;
  message.target.map_path = wire.map_path.data();
  message.ancestor = {.id = wire.id, .since = wire.since, .executable = {}};
  if (wire.has_executable) {
    message.ancestor.executable = std::pair{wire.device, wire.inode};
  }
  return message;
}

// Room for one descriptor as ancillary data, aligned as unix(7) requires.
union Ancillary {
  cmsghdr align;
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

}  // namespace

bool send(int socket, const GuardMessage& message) {
  Wire wire = to_wire(message);
  iovec part{.iov_base = &wire, .iov_len = sizeof wire};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  Ancillary ancillary{};
  if (message.map.valid()) {
    header.msg_control = &ancillary;
    header.msg_controllen = sizeof ancillary;
    cmsghdr* const descriptor = CMSG_FIRSTHDR(&header);
    descriptor->cmsg_level = SOL_SOCKET;
    descriptor->cmsg_type = SCM_RIGHTS;
    descriptor->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = message.map.get();
    std::memcpy(CMSG_DATA(descriptor), &fd, sizeof fd);
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == sizeof wire;
}

GuardMessage receive(int socket) {
  Wire wire{};
  iovec part{.iov_base = &wire, .iov_len = sizeof wire};
  Ancillary ancillary{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = &ancillary;
  header.msg_controllen = sizeof ancillary;
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof wire) {
    return {};
  }
  GuardMessage message = from_wire(wire);
  const cmsghdr* const descriptor = CMSG_FIRSTHDR(&header);
  if (descriptor != nullptr && descriptor->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(descriptor), sizeof fd);
    message.map.reset(fd);
  }
  return message;
}

}  // namespace pyinject::targets
