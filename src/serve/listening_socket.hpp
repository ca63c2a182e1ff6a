// Where clients connect.
#pragma once

#include "pyinject/base/directory.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <sys/types.h>

namespace pyinject::serve {

struct ListenAddress {
  std::string address{};   // numeric, IPv4 or IPv6; empty: a unix socket
  std::uint16_t port = 0;  // 0: any free one
  std::string path{};      // of a unix socket

  [[nodiscard]] bool is_unix() const { return address.empty(); }
  [[nodiscard]] bool is_loopback() const;
};

// "127.0.0.1:6060", "[::1]:6060", "localhost:6060", "unix:/run/pyinject.sock". Throws base::Error.
[[nodiscard]] ListenAddress parse_listen_address(const std::string& text);

class ListeningSocket {
 public:
  // A unix socket gets mode 0600 and replaces a socket that no process listens to, but nothing
  // else. Throws base::Error.
  explicit ListeningSocket(ListenAddress address);
  // Removes a unix socket, unless another one has its name by now.
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }  // does not block
  // "http://127.0.0.1:6060" with the real port, or "unix:PATH".
  [[nodiscard]] std::string name() const;

 private:
  void bind_inet();
  void bind_unix();

  ListenAddress address_;
  base::UniqueFd fd_{};
  std::optional<base::Place> place_{};                 // of a unix socket
  std::optional<std::pair<dev_t, ino_t>> identity_{};  // of the file that this object has made
};

}  // namespace pyinject::serve
