#include "push/credentials.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "export/deflate.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::push {

namespace {

constexpr std::size_t kLargestFile = 65536;
constexpr std::size_t kLongestSecret = 8192;
constexpr const char* kVariable = "PYINJECT_PUSH_TOKEN";

// A newline would begin another header.
bool can_be_sent(std::string_view text) {
  return !text.empty() && text.size() <= kLongestSecret &&
         std::ranges::all_of(text, [](char one) { return one >= ' ' && one < 0x7F; });
}

std::string* member_of(Credentials& credentials, std::string_view key) {
  if (key == "token") {
    return &credentials.token;
  }
  if (key == "user") {
    return &credentials.user;
  }
  if (key == "password") {
    return &credentials.password;
  }
  return key == "tenant" ? &credentials.tenant : nullptr;
}

}  // namespace

std::vector<std::string> Credentials::headers() const {
  std::vector<std::string> all;
  if (!token.empty()) {
    all.push_back("Authorization: Bearer " + token);
  } else if (!user.empty()) {
    all.push_back("Authorization: Basic " + exports::base64(user + ":" + password));
  }
  if (!tenant.empty()) {
    all.push_back("X-Scope-OrgID: " + tenant);
  }
  return all;
}

bool Credentials::appear_in(std::string_view text) const {
  const auto shows = [&](const std::string& secret) {
    return !secret.empty() && text.find(secret) != std::string_view::npos;
  };
  return shows(token) || shows(password) ||
         (!user.empty() && shows(exports::base64(user + ":" + password)));
}

Credentials parse_credentials(std::string_view text, const std::string& file) {
  Credentials credentials;
  std::size_t number = 0;
  for (const auto whole : base::split(text, '\n')) {
    ++number;
    const auto line = base::trim(whole);
    if (line.empty() || line.starts_with('#')) {
      continue;
    }
    const auto equals = line.find('=');
    auto* const member = equals == std::string_view::npos
                             ? nullptr
                             : member_of(credentials, base::trim(line.substr(0, equals)));
    const auto value =
        equals == std::string_view::npos ? std::string_view{} : base::trim(line.substr(equals + 1));
    if (member == nullptr || !can_be_sent(value)) {
      throw base::Error{fmt::format(
          "{}, line {}: expected token=, user=, password= or tenant= with printable ASCII", file,
          number)};
    }
    *member = value;
  }
  if (credentials.empty() || (!credentials.password.empty() && credentials.user.empty()) ||
      (!credentials.token.empty() && !credentials.user.empty())) {
    throw base::Error{fmt::format(
        "{}: expected a token, a user with a password, or neither with a tenant", file)};
  }
  return credentials;
}

Credentials read_credentials(const std::string& file) {
  const auto name = base::printable(file);
  const base::UniqueFd fd{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
  struct stat facts {};
  if (!fd.valid() || ::fstat(fd.get(), &facts) != 0) {
    throw base::SystemError{"cannot open " + name, errno};
  }
  if (!S_ISREG(facts.st_mode)) {
    throw base::Error{name + " is not a regular file"};
  }
  if (facts.st_uid != 0 && facts.st_uid != ::geteuid()) {
    throw base::Error{fmt::format("{} belongs to uid {}: chown it", name, facts.st_uid)};
  }
  if ((facts.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw base::Error{fmt::format("{} is accessible to other users (mode {:04o}): chmod 600", name,
                                  facts.st_mode & 07777U)};
  }
  return parse_credentials(base::read_fd(fd.get(), kLargestFile, name), name);
}

void take_token_from_environment(Credentials& credentials) {
  char* const value = std::getenv(kVariable);
  if (value == nullptr) {
    return;
  }
  const std::string token{value};
  // unsetenv() leaves the bytes, which /proc/PID/environ shows, and a process that is forked.
  ::explicit_bzero(value, token.size());
  ::unsetenv(kVariable);
  if (!can_be_sent(token)) {
    throw base::Error{fmt::format("{} is not printable ASCII", kVariable)};
  }
  credentials.token = token;
  credentials.user.clear();
  credentials.password.clear();
}

}  // namespace pyinject::push
