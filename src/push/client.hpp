// HTTP to one store, by libcurl.
#pragma once

#include "push/answer.hpp"
#include "push/credentials.hpp"
#include "push/stores.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace pyinject::push {

// False in builds without libcurl: a Client cannot be made then.
[[nodiscard]] bool can_send();

struct ClientTimes {
  std::chrono::milliseconds connect{10'000};
  std::chrono::milliseconds whole{30'000};  // of a request
};

// For one thread at a time.
class Client {
 public:
  Client(Credentials credentials, const ClientTimes& times);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Posts REQUEST to URL. GIVE_UP is asked from time to time, at least once a second. Does not
  // follow redirections; certificates are checked as libcurl does by default.
  [[nodiscard]] Answer send(const std::string& url, const Request& request,
                            const std::function<bool()>& give_up);

 private:
  class Connection;
  Credentials credentials_;
  ClientTimes times_;
  std::unique_ptr<Connection> connection_;  // stays open between requests
};

}  // namespace pyinject::push
