// A client of HTTP servers on this machine.
#pragma once

#include "pyinject/base/unique_fd.hpp"
#include "support/patience.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace pyinject::test {

struct HttpReply {
  int status = 0;                              // 0: the server closed the connection without one
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// One connection.
class HttpConnection {
 public:
  // To 127.0.0.1. Throws base::Error.
  explicit HttpConnection(std::uint16_t port);
  // To a unix socket.
  explicit HttpConnection(const std::string& path);

  // False: the server has closed the connection.
  bool send(std::string_view text);
  void end_of_input();
  // Everything up to the end of the connection. Throws base::Error after kPatience.
  [[nodiscard]] std::string receive();
  [[nodiscard]] HttpReply reply();
  void close() { fd_.reset(); }

 private:
  base::UniqueFd fd_;
};

// "GET TARGET HTTP/1.1" with HEADERS, each ending in "\r\n".
[[nodiscard]] std::string get_request(std::string_view target,
                                      std::string_view headers = "Host: localhost\r\n");
[[nodiscard]] HttpReply http_get(std::uint16_t port, std::string_view target,
                                 std::string_view headers = "Host: localhost\r\n");

}  // namespace pyinject::test
