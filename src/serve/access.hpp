// Who may ask.
#pragma once

#include <string>
#include <string_view>

namespace pyinject::serve {

// A shared secret. Never printed.
class Token {
 public:
  // SECRET: 16 to 4096 printable ASCII characters without blanks; throws base::Error.
  explicit Token(std::string secret);
  // From the first line of FILE, which only its owner, root or this user, and a group may read.
  // Throws base::Error.
  [[nodiscard]] static Token read(const std::string& file);

  // Whether AUTHORIZATION is "Bearer SECRET". Takes the same time for every wrong secret of the
  // same length.
  [[nodiscard]] bool allows(std::string_view authorization) const;

 private:
  std::string secret_;
};

// Whether HOST, a Host header, names this machine itself: "localhost", "127.0.0.1:6060",
// "[::1]:6060". A web page whose name leads to 127.0.0.1 (DNS rebinding) has another one.
[[nodiscard]] bool is_local_host(std::string_view host);

}  // namespace pyinject::serve
