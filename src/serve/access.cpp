#include "serve/access.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::serve {

namespace {

constexpr std::size_t kLeastSecret = 16;
constexpr std::size_t kMostSecret = 4096;

bool equal_without_case(std::string_view left, std::string_view right) {
  return std::ranges::equal(left, right, [](unsigned char one, unsigned char other) {
    return std::tolower(one) == std::tolower(other);
  });
}

// The time depends on the length of GIVEN only.
bool equal_in_constant_time(std::string_view given, std::string_view secret) {
  volatile unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto left = static_cast<unsigned char>(given[i]);
    const auto right = static_cast<unsigned char>(secret[i % secret.size()]);
    difference = difference | static_cast<unsigned>(left ^ right);
  }
  return difference == 0;
}

}  // namespace

Token::Token(std::string secret) : secret_{std::move(secret)} {
  const auto printable = [](unsigned char byte) { return byte > ' ' && byte <= '~'; };
  if (secret_.size() < kLeastSecret || secret_.size() > kMostSecret ||
      !std::ranges::all_of(secret_, printable)) {
    throw base::Error{
        fmt::format("a token has {} to {} printable ASCII characters without blanks, for example "
                    "of: head -c 32 /dev/urandom | base64",
                    kLeastSecret, kMostSecret)};
  }
}

Token Token::read(const std::string& file) {
  const auto named = base::printable(file);
  const base::UniqueFd fd{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
  struct stat facts {};
  if (!fd.valid() || ::fstat(fd.get(), &facts) != 0) {
    throw base::SystemError{"cannot open the token file " + named, errno};
  }
  if (!S_ISREG(facts.st_mode)) {
    throw base::Error{named + " is not a regular file"};
  }
  if (facts.st_uid != 0 && facts.st_uid != ::geteuid()) {
    throw base::Error{fmt::format("{} belongs to uid {}: chown it", named, facts.st_uid)};
  }
  if ((facts.st_mode & (S_IRWXO | S_IWGRP)) != 0) {
    throw base::Error{fmt::format(
        "others can read or change {}: chmod 600 {} and write a new token into it", named, named)};
  }
  const auto text = base::read_fd(fd.get(), kMostSecret + 2, named);
  try {
    return Token{std::string{base::trim(text)}};
  } catch (const base::Error& error) {
    throw base::Error{fmt::format("{}: {}", named, error.what())};
  }
}

bool Token::allows(std::string_view authorization) const {
  constexpr std::string_view kScheme = "Bearer ";
  if (!equal_without_case(authorization.substr(0, kScheme.size()), kScheme)) {
    return false;
  }
  return equal_in_constant_time(authorization.substr(kScheme.size()), secret_);
}

bool is_local_host(std::string_view host) {
  std::string name;
  if (host.starts_with('[')) {
    const auto end = host.find(']');
    if (end == std::string_view::npos) {
      return false;
    }
    name = host.substr(1, end - 1);
    host.remove_prefix(end + 1);
  } else {
    name = host.substr(0, host.find(':'));
    host.remove_prefix(name.size());
  }
  if (!host.empty() &&
      (host.front() != ':' || !base::parse_number<std::uint16_t>(host.substr(1)))) {
    return false;
  }
  in_addr four{};
  in6_addr six{};
  constexpr std::uint32_t kLoopbackNet = 127;
  return equal_without_case(name, "localhost") ||
         (::inet_pton(AF_INET, name.c_str(), &four) == 1 &&
          (ntohl(four.s_addr) >> 24U) == kLoopbackNet) ||
         (::inet_pton(AF_INET6, name.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six) != 0);
}

}  // namespace pyinject::serve
