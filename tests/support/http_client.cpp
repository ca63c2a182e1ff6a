#include "support/http_client.hpp"

#include "base/text.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace pyinject::test {

namespace {

template <typename Address>
base::UniqueFd connected(const Address& address, int family) {
  base::UniqueFd fd{::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): as connect(2) wants it
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw base::SystemError{"cannot connect", errno};
  }
  return fd;
}

}  // namespace

HttpConnection::HttpConnection(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  fd_ = connected(address, AF_INET);
}

HttpConnection::HttpConnection(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(&address.sun_path[0], sizeof address.sun_path - 1);
  fd_ = connected(address, AF_UNIX);
}

bool HttpConnection::send(std::string_view text) {
  while (!text.empty()) {
    const auto sent = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void HttpConnection::end_of_input() { ::shutdown(fd_.get(), SHUT_WR); }

std::string HttpConnection::receive() {
  const auto deadline = base::Deadline::after(kPatience);
  std::string all;
  std::array<char, 16384> buffer{};
  while (true) {
    pollfd readable{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, deadline.remaining_ms()) == 0) {
      throw base::Error{fmt::format("the server does not answer: {}", all)};
    }
    const auto got = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (got <= 0) {
      return all;
    }
    all.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

HttpReply HttpConnection::reply() {
  const auto text = receive();
  HttpReply reply;
  const auto end = text.find("\r\n\r\n");
  if (!text.starts_with("HTTP/1.1 ") || end == std::string::npos) {
    return reply;
  }
  reply.status = base::parse_number<int>(text.substr(9, 3)).value_or(0);
  reply.body = text.substr(end + 4);
  bool first = true;
  for (const auto line : base::split(std::string_view{text}.substr(0, end), '\n')) {
    const auto colon = line.find(':');
    if (!first && colon != std::string_view::npos) {
      std::string name{line.substr(0, colon)};
      std::ranges::transform(name, name.begin(), [](unsigned char byte) {
        return static_cast<char>(std::tolower(byte));
      });
      auto value = base::trim(line.substr(colon + 1));
      value = value.substr(0, value.find('\r'));
      reply.headers.emplace(std::move(name), value);
    }
    first = false;
  }
  return reply;
}

std::string get_request(std::string_view target, std::string_view headers) {
  return fmt::format("GET {} HTTP/1.1\r\n{}\r\n", target, headers);
}

HttpReply http_get(std::uint16_t port, std::string_view target, std::string_view headers) {
  HttpConnection connection{port};
  connection.send(get_request(target, headers));
  return connection.reply();
}

}  // namespace pyinject::test
