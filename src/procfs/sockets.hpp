// The sockets of a network namespace: /proc/PID/net/tcp and the like, proc_pid_net(5).
#pragma once

#include "pyinject/base/pid.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace pyinject::procfs {

struct Socket {
  std::string protocol;  // "TCP", "UDP" or "UNIX"
  std::string local;     // "127.0.0.1:80", "[::1]:80" or a path; empty: none
  std::string peer;      // of the same form; empty: none, or unknown (UNIX)
  bool listening = false;
  bool connecting = false;  // TCP: the peer has not answered yet
  bool operator==(const Socket&) const = default;
};
using Sockets = std::unordered_map<std::uint64_t, Socket>;  // by inode

// Adds the sockets in TEXT, the contents of net/tcp, net/tcp6, net/udp or net/udp6. Skips lines
// that are no sockets.
void parse_inet_sockets(std::string_view text, std::string_view protocol, Sockets& sockets);
// The same for net/unix.
void parse_unix_sockets(std::string_view text, Sockets& sockets);

// All sockets of the network namespace of PID; without those that cannot be read.
[[nodiscard]] Sockets read_sockets(base::Pid pid);

// "TCP 127.0.0.1:40000 -> 127.0.0.1:5432".
[[nodiscard]] std::string to_string(const Socket& socket);

}  // namespace pyinject::procfs
