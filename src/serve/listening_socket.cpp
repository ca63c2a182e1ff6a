#include "serve/listening_socket.hpp"

#include "base/text.hpp"
#include "procfs/path_beneath.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace pyinject::serve {

namespace {

constexpr int kBacklog = 64;
constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kSyntax = "expected ADDRESS:PORT, as 127.0.0.1:6060, or unix:/PATH";

// The one of the socket's family is set.
struct InetAddress {
  sockaddr_in four{};
  sockaddr_in6 six{};
  [[nodiscard]] const sockaddr* get() const {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): as socket calls want it
    return six.sin6_family != 0 ? reinterpret_cast<const sockaddr*>(&six)
                                // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
                                : reinterpret_cast<const sockaddr*>(&four);
  }
  [[nodiscard]] socklen_t size() const { return six.sin6_family != 0 ? sizeof six : sizeof four; }
};

InetAddress inet_address(const ListenAddress& address) {
  InetAddress made;
  if (address.address.find(':') != std::string::npos) {
    made.six.sin6_family = AF_INET6;
    made.six.sin6_port = htons(address.port);
    ::inet_pton(AF_INET6, address.address.c_str(), &made.six.sin6_addr);
  } else {
    made.four.sin_family = AF_INET;
    made.four.sin_port = htons(address.port);
    ::inet_pton(AF_INET, address.address.c_str(), &made.four.sin_addr);
  }
  return made;
}

bool is_numeric(const std::string& address) {
  in6_addr any{};
  return ::inet_pton(AF_INET, address.c_str(), &any) == 1 ||
         ::inet_pton(AF_INET6, address.c_str(), &any) == 1;
}

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un made{};
  made.sun_family = AF_UNIX;
  if (path.size() >= sizeof made.sun_path) {
    throw base::Error{fmt::format("--listen: the name of the socket is too long: {}", path)};
  }
  path.copy(&made.sun_path[0], sizeof made.sun_path - 1);
  return made;
}

base::UniqueFd open_socket(int family) {
  base::UniqueFd fd{::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!fd.valid()) {
    throw base::SystemError{"cannot make a socket", errno};
  }
  return fd;
}

int connect_unix(int fd, const sockaddr_un& address) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): as connect(2) wants it
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

// Removes what an earlier server, now gone, has left at PLACE.
void clear_place(const base::Place& place, const sockaddr_un& address) {
  const auto path = place.directory.path_of(place.name);
  struct stat facts {};
  if (::fstatat(place.directory.fd(), place.name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
    return;
  }
  if (!S_ISSOCK(facts.st_mode)) {
    throw base::Error{fmt::format("--listen: {} exists and is not a socket", path)};
  }
  const auto trial = open_socket(AF_UNIX);
  if (connect_unix(trial.get(), address) == 0 || errno != ECONNREFUSED) {
    throw base::Error{fmt::format("--listen: another process listens to {}", path)};
  }
  place.directory.remove(place.name);
}

}  // namespace

bool ListenAddress::is_loopback() const {
  constexpr std::uint32_t kLoopbackNet = 127;
  const auto made = inet_address(*this);
  return !is_unix() &&
         (made.six.sin6_family != 0 ? IN6_IS_ADDR_LOOPBACK(&made.six.sin6_addr) != 0
                                    : ntohl(made.four.sin_addr.s_addr) >> 24U == kLoopbackNet);
}

ListenAddress parse_listen_address(const std::string& text) {
  const auto fail = [&] {
    return base::Error{fmt::format("--listen {}: {}", base::printable(text), kSyntax)};
  };
  if (text.starts_with(kUnix)) {
    ListenAddress address{.path = text.substr(kUnix.size())};
    if (address.path.empty() || address.path.ends_with('/')) {
      throw fail();
    }
    return address;
  }
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) {
    throw fail();
  }
  auto host = text.substr(0, colon);
  const auto port = base::parse_number<std::uint16_t>(text.substr(colon + 1));
  const bool bracketed = host.starts_with('[') && host.ends_with(']') && host.size() > 2;
  if (bracketed) {
    host = host.substr(1, host.size() - 2);
  }
  if (host == "localhost") {
    host = "127.0.0.1";
  }
  if (!port || !is_numeric(host) || (host.find(':') != std::string::npos) != bracketed) {
    throw fail();
  }
  return {.address = std::move(host), .port = *port};
}

ListeningSocket::ListeningSocket(ListenAddress address) : address_{std::move(address)} {
  if (address_.is_unix()) {
    bind_unix();
  } else {
    bind_inet();
  }
  if (::listen(fd_.get(), kBacklog) != 0) {
    throw base::SystemError{fmt::format("--listen: cannot listen to {}", name()), errno};
  }
}

void ListeningSocket::bind_inet() {
  const auto made = inet_address(address_);
  fd_ = open_socket(made.get()->sa_family);
  const int yes = 1;  // do not wait for connections of an earlier server to be forgotten
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(fd_.get(), made.get(), made.size()) != 0) {
    throw base::SystemError{
        fmt::format("--listen: cannot use {}:{}", address_.address, address_.port), errno};
  }
  sockaddr_in6 bound{};
  socklen_t size = sizeof bound;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): as getsockname(2) wants it
  if (::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&bound), &size) == 0) {
    address_.port = ntohs(bound.sin6_port);  // at the same offset in sockaddr_in
  }
}

void ListeningSocket::bind_unix() {
  place_ = base::Place::of(address_.path);
  const auto address = unix_address(procfs::path_beneath(place_->directory.fd(), place_->name));
  clear_place(*place_, address);
  fd_ = open_socket(AF_UNIX);
  const auto mask = ::umask(0177);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): as bind(2) wants it
  const bool bound =
      ::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int error = errno;
  ::umask(mask);
  if (!bound) {
    throw base::SystemError{"--listen: cannot make " + address_.path, error};
  }
  struct stat facts {};
  if (::fstatat(place_->directory.fd(), place_->name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0) {
    identity_.emplace(facts.st_dev, facts.st_ino);
  }
}

ListeningSocket::~ListeningSocket() {
  struct stat facts {};
  if (identity_ &&
      ::fstatat(place_->directory.fd(), place_->name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
      identity_ == std::pair{facts.st_dev, facts.st_ino}) {
    ::unlinkat(place_->directory.fd(), place_->name.c_str(), 0);
  }
}

std::string ListeningSocket::name() const {
  if (address_.is_unix()) {
    return fmt::format("{}{}", kUnix, address_.path);
  }
  const bool six = address_.address.find(':') != std::string::npos;
  return fmt::format("http://{}{}{}:{}", six ? "[" : "", address_.address, six ? "]" : "",
                     address_.port);
}

}  // namespace pyinject::serve
