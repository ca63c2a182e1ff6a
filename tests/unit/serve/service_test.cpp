#include "serve/service.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace pyinject::serve {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;
using testing::Pair;

class ServiceTest : public testing::Test {
 protected:
  using Decision = std::variant<Answer, ProfileRequest>;

  static HttpRequest get(const std::string& target) {
    return {.method = "GET", .target = target, .host = "localhost"};
  }
  Decision decide(const HttpRequest& request) { return service_.decide(request, now_); }
  Answer answer(const HttpRequest& request) {
    const auto decision = decide(request);
    const auto* const answer = std::get_if<Answer>(&decision);
    return answer == nullptr ? Answer{.status = 0} : *answer;
  }
  // Begins a profile and finishes it at once.
  unsigned profile() {
    const auto decision = decide(get("/debug/pprof/profile?seconds=1"));
    if (const auto* const answer = std::get_if<Answer>(&decision)) {
      return answer->status;
    }
    return service_.finish(std::get<ProfileRequest>(decision), MadeProfile{.bytes = "x"}, false)
        .status;
  }
  void pass(std::chrono::seconds time) { now_ += time; }

 private:
  Service service_{{.most_running = 1, .most_per_minute = 6}};
  Service::Clock::time_point now_;
};

TEST_F(ServiceTest, HasThePathsOfGo) {
  EXPECT_THAT(answer(get("/debug/pprof/")).body, HasSubstr("profile?seconds=5"));
  EXPECT_THAT(answer(get("/debug/pprof")).headers, Contains(Pair("Location", "/debug/pprof/")));
  EXPECT_EQ(answer(get("/healthz")).body, "ok\n");
  EXPECT_EQ(answer(get("/debug/pprof/heap")).status, 404U);
  EXPECT_EQ(answer(get("/debug/pprof/../profile")).status, 404U);
  EXPECT_THAT(answer(get("/debug/pprof/heap")).headers, Contains(Pair("X-Go-Pprof", "1")))
      << "go tool pprof prints no text without it";
}

TEST_F(ServiceTest, RefusesOtherMethods) {
  auto request = get("/debug/pprof/profile");
  for (const auto* const method : {"POST", "HEAD", "DELETE", "OPTIONS"}) {
    request.method = method;
    EXPECT_EQ(answer(request).status, 405U) << method;
    EXPECT_THAT(answer(request).headers, Contains(Pair("Allow", "GET")));
  }
}

TEST_F(ServiceTest, RefusesPagesOfOtherSites) {
  auto request = get("/healthz");
  request.host = "evil.example";
  EXPECT_EQ(answer(request).status, 403U);
  EXPECT_THAT(answer(request).body, HasSubstr("(foreign_host)"));
  request.host = "localhost";
  request.fetch_site = "cross-site";
  EXPECT_THAT(answer(request).body, HasSubstr("(foreign_page)"));
  request.fetch_site = "same-origin";
  EXPECT_EQ(answer(request).status, 200U);
}

TEST_F(ServiceTest, LimitsTheRate) {
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(profile(), 200U);
  }
  const auto refused = answer(get("/debug/pprof/profile"));
  EXPECT_EQ(refused.status, 429U);
  EXPECT_THAT(refused.body, HasSubstr("more than 6 profiles per minute"));
  EXPECT_THAT(refused.headers, Contains(Pair("Retry-After", "10")));
  EXPECT_EQ(answer(get("/metrics")).status, 200U) << "only profiles count";
  pass(10s);
  EXPECT_EQ(profile(), 200U);
  EXPECT_EQ(profile(), 429U);
  pass(3600s);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(profile(), 200U);
  }
  EXPECT_EQ(profile(), 429U) << "an hour's turns were saved up";
}

TEST_F(ServiceTest, CountsRefusalsWithoutUsingUpTheRate) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(answer(get("/debug/pprof/profile?seconds=999")).status, 400U);
  }
  EXPECT_EQ(profile(), 200U);
  const auto metrics = answer(get("/metrics"));
  EXPECT_THAT(metrics.type, HasSubstr("version=0.0.4"));
  EXPECT_THAT(metrics.body,
              HasSubstr("perf_pyinject_refused_requests_total{reason=\"bad_parameter\"} 20\n"));
  EXPECT_THAT(metrics.body, HasSubstr("perf_pyinject_profiles_total{event=\"cpu\"} 1\n"));
}

}  // namespace
}  // namespace pyinject::serve
