#include "push/answer.hpp"

#include <algorithm>

namespace pyinject::push {

Verdict judge(const Answer& answer, Retries retries) {
  constexpr long kTimeout = 408;
  constexpr long kTooMany = 429;
  constexpr long kBadGateway = 502;
  constexpr long kGatewayTimeout = 504;
  if (answer.status >= 200 && answer.status < 300) {
    return Verdict::kAccepted;
  }
  const bool worth_it = retries == Retries::kGateways
                            ? answer.status >= kBadGateway && answer.status <= kGatewayTimeout
                            : answer.status == kTimeout || answer.status >= 500;
  const bool temporary = answer.status < 100 || answer.status == kTooMany || worth_it;
  return temporary ? Verdict::kTryAgain : Verdict::kRefused;
}

std::chrono::milliseconds Backoff::next(std::chrono::seconds retry_after, double random) {
  constexpr int kMostDoublings = 20;
  const auto doublings = static_cast<unsigned>(std::min(failures_++, kMostDoublings));
  const auto span = std::min(times_.most, times_.first * (1U << doublings));
  const auto jittered = std::chrono::milliseconds{static_cast<std::chrono::milliseconds::rep>(
      static_cast<double>(span.count()) * (0.5 + random / 2))};
  return std::max<std::chrono::milliseconds>(jittered, std::min(retry_after, kLongestRetryAfter));
}

}  // namespace pyinject::push
