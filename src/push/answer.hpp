// What a store's answer means, and when the next attempt is due.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace pyinject::push {

struct Answer {
  long status = 0;                      // of HTTP; 0: none came
  std::string why = {};                 // "cannot connect", "HTTP 503: busy"; empty if accepted
  std::chrono::seconds retry_after{0};  // as the store asked
  std::string body = {};                // its begin, if accepted; empty if it has a secret
};

// What an accepted request's answer says about its profiles.
struct Remark {
  std::uint64_t rejected = 0;  // profiles
  std::string text = {};       // printable
};

// Which answers, besides 429 and none, are worth another attempt.
enum class Retries {
  kServerErrors,  // 408 and 5xx
  kGateways,      // 502, 503 and 504, as OTLP/HTTP requires
};

enum class Verdict { kAccepted, kRefused, kTryAgain };

[[nodiscard]] Verdict judge(const Answer& answer, Retries retries = Retries::kServerErrors);

struct BackoffTimes {
  std::chrono::milliseconds first{500};
  std::chrono::milliseconds most = std::chrono::minutes{5};
};

inline constexpr std::chrono::seconds kLongestRetryAfter = std::chrono::hours{1};

// Exponential, with jitter, so that the hosts of a fleet do not come back at the same time.
class Backoff {
 public:
  explicit Backoff(const BackoffTimes& times) : times_{times} {}
  // How long to wait after one more failure: half to all of the current span, but at least
  // RETRY_AFTER, up to an hour of it. RANDOM: 0 to 1.
  [[nodiscard]] std::chrono::milliseconds next(std::chrono::seconds retry_after, double random);
  void reset() { failures_ = 0; }
  [[nodiscard]] int failures() const { return failures_; }  // since reset()

 private:
  BackoffTimes times_;
  int failures_ = 0;
};

}  // namespace pyinject::push
