#include "push/answer.hpp"

#include <gtest/gtest.h>

namespace pyinject::push {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(PushAnswer, OtherRequestsThan408And429AreFinal) {
  for (const long status : {200L, 202L, 204L}) {
    EXPECT_EQ(judge({.status = status}), Verdict::kAccepted) << status;
  }
  for (const long status : {0L, 408L, 429L, 500L, 502L, 503L, 504L}) {
    EXPECT_EQ(judge({.status = status}), Verdict::kTryAgain) << status;
  }
  for (const long status : {301L, 308L, 400L, 401L, 403L, 404L, 413L, 415L}) {
    EXPECT_EQ(judge({.status = status}), Verdict::kRefused) << status;
  }
}

TEST(PushAnswer, OtlpRetriesOnlyWhatItsSpecificationLists) {
  for (const long status : {0L, 429L, 502L, 503L, 504L}) {
    EXPECT_EQ(judge({.status = status}, Retries::kGateways), Verdict::kTryAgain) << status;
  }
  for (const long status : {308L, 400L, 404L, 408L, 500L, 501L, 505L}) {
    EXPECT_EQ(judge({.status = status}, Retries::kGateways), Verdict::kRefused) << status;
  }
}

TEST(PushBackoff, DoublesUpToALimitWithJitter) {
  Backoff most{{.first = milliseconds{100}, .most = milliseconds{1000}}};
  Backoff least{{.first = milliseconds{100}, .most = milliseconds{1000}}};
  for (const int expected : {100, 200, 400, 800, 1000, 1000}) {
    EXPECT_EQ(most.next({}, 1), milliseconds{expected});
    EXPECT_EQ(least.next({}, 0), milliseconds{expected / 2});
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(most.next({}, 1), milliseconds{1000});
  }
  most.reset();
  EXPECT_EQ(most.next({}, 1), milliseconds{100});
}

TEST(PushBackoff, WaitsAsLongAsTheServerAsks) {
  Backoff backoff{{.first = milliseconds{100}, .most = milliseconds{200}}};
  EXPECT_EQ(backoff.next(seconds{7}, 1), seconds{7});
  EXPECT_EQ(backoff.next(seconds{1'000'000}, 1), kLongestRetryAfter);
}

}  // namespace
}  // namespace pyinject::push
