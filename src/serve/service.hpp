// Decides on requests; knows no sockets. Not thread-safe.
#pragma once

#include "serve/access.hpp"
#include "serve/metrics.hpp"
#include "serve/profile_maker.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace pyinject::serve {

struct ServiceOptions {
  std::optional<Token> token{};
  bool local_hosts_only = true;  // without TOKEN, on a loopback address
  std::chrono::seconds most_seconds{300};
  std::size_t most_running = 2;   // profiles at a time
  unsigned most_per_minute = 60;  // profiles
  std::function<OwnUse()> own_use = [] { return OwnUse{}; };
};

// The parts of an HTTP request that matter.
struct HttpRequest {
  std::string method{};
  std::string target{};         // "/debug/pprof/profile?seconds=5"
  std::string host{};           // the header
  std::string authorization{};  // the header
  std::string fetch_site{};     // the header Sec-Fetch-Site, which browsers send
};

struct Answer {
  unsigned status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};
};

class Service {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Service(ServiceOptions options);

  // A ProfileRequest has begun: the caller makes the profile and passes the result to finish(). NOW
  // is for the rate limit.
  [[nodiscard]] std::variant<Answer, ProfileRequest> decide(const HttpRequest& request,
                                                            Clock::time_point now);
  // ABANDONED: the client has gone, and nobody gets the answer.
  [[nodiscard]] Answer finish(const ProfileRequest& request, ProfileResult result, bool abandoned);
  // The answer to a request that is not even read: STATUS with REASON, a stable name.
  [[nodiscard]] Answer refuse(const Problem& problem);

  void set_connections(std::size_t count) { metrics_.connections = count; }
  [[nodiscard]] const Metrics& metrics() const { return metrics_; }

 private:
  [[nodiscard]] std::optional<Problem> check_access(const HttpRequest& request) const;
  [[nodiscard]] std::variant<Answer, ProfileRequest> decide_profile(const HttpRequest& request,
                                                                    std::string_view query,
                                                                    Clock::time_point now);
  [[nodiscard]] bool take_turn(Clock::time_point now);
  [[nodiscard]] Answer page(std::string_view path);

  ServiceOptions options_;
  Metrics metrics_;
  double turns_;  // profiles that may begin now, by the rate
  std::optional<Clock::time_point> counted_;
};

}  // namespace pyinject::serve
