#include "serve/query.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>

namespace pyinject::serve {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

ProfileRequest parsed(const std::string& query, std::chrono::seconds most = 300s) {
  const auto result = parse_query(query, most);
  if (const auto* const problem = std::get_if<Problem>(&result)) {
    ADD_FAILURE() << query << ": " << problem->text;
    return {};
  }
  return std::get<ProfileRequest>(result);
}

TEST(Query, TakesItsParametersInAnyOrder) {
  const auto request = parsed("event=offcpu&pid=4711&seconds=5");
  EXPECT_EQ(request.length, 5s);
  EXPECT_EQ(request.pid, base::Pid{4711});
  EXPECT_EQ(request.event, Event::kOffCpu);
  EXPECT_EQ(parsed("comm=gunicorn%3A%20*").comm, "gunicorn: *");
  EXPECT_EQ(parsed("seconds=300&event=alloc&&").event, Event::kAlloc);
}

TEST(Query, HasGosLengthIfItHasNoSeconds) {
  EXPECT_EQ(parsed("").length, 30s);
  EXPECT_EQ(parsed("", 10s).length, 10s) << "more than --max-seconds";
}

struct Refused {
  std::string query;
  std::string reason;
  std::string says;
};
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Refused& refused, std::ostream* stream) { *stream << refused.query; }

class BadQuery : public testing::TestWithParam<Refused> {};

TEST_P(BadQuery, IsRefusedWithTheParameter) {
  const auto result = parse_query(GetParam().query, 300s);
  const auto* const problem = std::get_if<Problem>(&result);
  ASSERT_NE(problem, nullptr);
  EXPECT_EQ(problem->status, 400U);
  EXPECT_EQ(problem->reason, GetParam().reason);
  EXPECT_THAT(problem->text, HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BadQuery,
    testing::Values(
        Refused{"seconds=301", "bad_parameter", "seconds=301: expected 1 to 300"},
        Refused{"seconds=-1", "bad_parameter", "seconds=-1: expected 1 to 300"},
        Refused{"seconds=0", "bad_parameter", "seconds=0"},
        Refused{"seconds=", "bad_parameter", "seconds="},
        Refused{"seconds", "bad_parameter", "seconds="},
        Refused{"seconds=1.5", "bad_parameter", "seconds=1.5"},
        Refused{"seconds=99999999999999999999", "bad_parameter", "seconds=9999"},
        Refused{"seconds=1&seconds=2", "bad_parameter", "seconds is given twice"},
        Refused{"pid=0", "bad_parameter", "pid=0"}, Refused{"pid=1,2", "bad_parameter", "pid=1,2"},
        Refused{"pid=-p", "bad_parameter", "pid=-p"},
        Refused{"pid=1&comm=a", "bad_parameter", "either pid or comm"},
        Refused{"comm=", "bad_parameter", "comm="},
        Refused{"comm=" + std::string(65, 'a'), "bad_parameter", "comm="},
        Refused{"comm=a%00b", "bad_parameter", "percent-encoding"},
        Refused{"comm=%4", "bad_parameter", "percent-encoding"},
        Refused{"comm=%zz", "bad_parameter", "percent-encoding"},
        Refused{"event=heap", "bad_parameter", "event=heap: expected cpu, offcpu or alloc"},
        Refused{"pids=4711", "unknown_parameter", "pids: expected seconds, pid, comm or event"},
        Refused{"\x1b[2J=1", "unknown_parameter", "\\x1b[2J"}));

}  // namespace
}  // namespace pyinject::serve
