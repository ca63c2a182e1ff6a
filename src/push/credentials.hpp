// Secrets for a store: from a file or the environment, never from the command line, never in a
// message.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pyinject::push {

struct Credentials {
  std::string token{};     // Authorization: Bearer
  std::string user{};      // Authorization: Basic, with PASSWORD
  std::string password{};  // may be empty
  std::string tenant{};    // X-Scope-OrgID

  [[nodiscard]] bool empty() const { return token.empty() && user.empty() && tenant.empty(); }
  // As "Name: value".
  [[nodiscard]] std::vector<std::string> headers() const;
  // TEXT shows one of the secrets.
  [[nodiscard]] bool appear_in(std::string_view text) const;
};

// Lines "token = ...", "user = ...", "password = ...", "tenant = ..."; # begins a comment line.
// Throws base::Error with the number of the line, not with its text.
[[nodiscard]] Credentials parse_credentials(std::string_view text, const std::string& file);

// Throws base::Error if FILE is not a regular file, belongs to another user than root and this
// tool's, or can be accessed by others.
[[nodiscard]] Credentials read_credentials(const std::string& file);

// Takes PYINJECT_PUSH_TOKEN out of the environment, so that no child process has it. Replaces
// CREDENTIALS' token. Throws base::Error if the token cannot be sent.
void take_token_from_environment(Credentials& credentials);

}  // namespace pyinject::push
