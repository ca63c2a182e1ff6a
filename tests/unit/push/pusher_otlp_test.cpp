// The pusher against an OpenTelemetry collector of the test's own.
#include "support/profile_server.hpp"
#include "unit/push/pusher_fixture.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <string>

namespace pyinject::push {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class PusherOtlp : public PusherTest {};

TEST_F(PusherOtlp, GetsTheSeriesAsAResource) {
  test::ProfileServer server{{"503", "200"}};
  auto all = options({"otlp=" + server.url()});
  all.labels = {{.name = "region", .value = "eu"}, {.name = "pod_uid", .value = "p-1"}};
  auto pusher = start(all);
  pusher.add("web");
  const auto first = server.next();
  const auto request = server.next();
  EXPECT_EQ(request.at("path"), "/v1development/profiles");
  const auto& headers = request.at("headers");
  EXPECT_EQ(headers.at("content-type"), "application/x-protobuf");
  EXPECT_EQ(headers.at("content-encoding"), "gzip");
  const auto& body = request.at("body");
  EXPECT_EQ(body.at("resource"), (json{{"service.name", "web"},
                                       {"host.name", "h"},
                                       {"k8s.pod.uid", "p-1"},
                                       {"process.runtime.name", "cpython"},
                                       {"process.runtime.version", "3.13"},
                                       {"region", "eu"}}));
  EXPECT_EQ(body.at("scope"), "perf-pyinject");
  ASSERT_EQ(body.at("profiles").size(), 1U);
  const auto& profile = body.at("profiles")[0];
  EXPECT_EQ(profile.at("type"), "samples/count");
  EXPECT_EQ(profile.at("period_type"), "cpu/nanoseconds");
  EXPECT_EQ(profile.at("period"), 5'000'000);
  EXPECT_EQ(profile.at("duration"), 2001);
  ASSERT_EQ(profile.at("samples").size(), 2U);
  const auto& sample = profile.at("samples")[0];
  EXPECT_EQ(sample.at("times"), json::array({profile.at("time")}));
  EXPECT_EQ(sample.at("attributes"), (json{{"process.pid", 10},
                                           {"process.executable.name", "web"},
                                           {"thread.id", 10},
                                           {"thread.name", "web"}}));
  const auto& stack = sample.at("stack");
  ASSERT_EQ(stack.size(), 3U);
  EXPECT_EQ(stack[0].at("mapping"), "/usr/lib/libc.so.6");
  EXPECT_EQ(stack[1], (json{{"function", "handle"},
                            {"file", "/srv/web.py"},
                            {"line", 7},
                            {"mapping", ""},
                            {"kind", "cpython"}}));
  std::string id = headers.at("idempotency-key");
  std::erase(id, '-');
  EXPECT_EQ(profile.at("id"), id);
  EXPECT_EQ(first.at("body"), body) << "the same at each attempt";
  pusher.finish();
  EXPECT_EQ(pusher.counts().pushed, 1U);
}

TEST_F(PusherOtlp, RejectedProfilesAreCountedAndServerErrorsAreFinal) {
  test::ProfileServer server{{"partial", "500", "200"}};
  auto pusher = start(options({"otlp=" + server.url() + "/custom"}));
  for (int i = 0; i < 3; ++i) {
    pusher.add("web");
  }
  EXPECT_EQ(server.next().at("path"), "/custom");
  pusher.finish();
  EXPECT_EQ(pusher.counts().pushed, 1U);
  EXPECT_EQ(pusher.counts().dropped, 2U);
  EXPECT_EQ(pusher.counts().spooled, 0U);
  EXPECT_THAT(
      text(base::LogLevel::kWarning),
      AllOf(HasSubstr("the server rejected 1 profile of a request, which is dropped: no quota"),
            HasSubstr("HTTP 500")));
}

TEST(OtlpRemark, IsEmptyForAnotherFormatOrACutAnswer) {
  const std::string minus_one = "\x0a\x0b\x08" + std::string(9, '\xff') + "\x01";
  for (const auto& answer :
       {std::string{}, std::string{"{}"}, std::string{"\x0a"}, std::string{"\x0a\x7f\x08\x01"},
        std::string{"\x0a\x02\x08\xff"}, std::string(40, '\xff'), std::string{"\x0b\x0f\x1c"},
        std::string{"\x0a\x02\x0d\x01"}, minus_one}) {
    const auto remark = otlp_remark(answer);
    EXPECT_EQ(remark.rejected, 0U) << testing::PrintToString(answer);
    EXPECT_EQ(remark.text, "") << testing::PrintToString(answer);
  }
  EXPECT_EQ(otlp_remark("\x0a\x05\x12\x03\x61\x07\x62").text, R"(a\x07b)");
}

}  // namespace
}  // namespace pyinject::push
