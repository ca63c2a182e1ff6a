// Calls and returns read from synthetic files.
#include "calls/call_times.hpp"
#include "calls/call_trace.hpp"
#include "pyinject/base/error.hpp"
#include "support/made_perf_data.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pyinject::calls {
namespace {

using perfdata::Event;
using test::made_record;
using test::packed;
using test::words;
using testing::HasSubstr;

constexpr std::uint64_t kType = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
constexpr std::uint64_t kEntryNumber = 71;
constexpr std::uint64_t kReturnNumber = 72;
// The sample ids of each event.
constexpr std::uint64_t kEntry = 10;
constexpr std::uint64_t kReturn = 20;
constexpr std::uint64_t kOther = 30;

Event tracepoint(std::uint64_t number, std::uint64_t id) {
  auto event = test::made_event(kType | PERF_SAMPLE_RAW, {id});
  event.attr.type = PERF_TYPE_TRACEPOINT;
  event.attr.config = number;
  return event;
}

std::string format(const std::string& name, std::uint64_t number, const std::string& print) {
  return "name: " + name + "\nID: " + std::to_string(number) +
         "\nformat:\n"
         "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
         "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
         "\n"
         "\tfield:__data_loc char[] file;\toffset:8;\tsize:4;\tsigned:1;\n"
         "\tfield:__data_loc char[] func;\toffset:12;\tsize:4;\tsigned:1;\n"
         "\tfield:s32 line;\toffset:16;\tsize:4;\tsigned:1;\n"
         "\n"
         "print fmt: " +
         print + "\n";
}

std::string sized(const std::string& text) { return words(text.size()) + text; }

std::string tracing_data(const std::string& print) {
  const std::string end(1, '\0');
  return "\x17\x08\x44tracing0.6" + end + std::string{"\0\x08", 2} + packed(4096U) + "header_page" +
         end + sized("") + "header_event" + end + sized("") + packed(0U) + packed(1U) +
         "perf_pyinject_1_2_3" + end + packed(2U) +
         sized(format("entry_0_0", kEntryNumber, print)) +
         sized(format("return_0_1", kReturnNumber, print));
}

std::string sample(std::uint64_t id, std::uint64_t time, std::uint32_t line) {
  const std::string texts{"app.py\0work\0", 12};
  const auto raw = packed(static_cast<std::uint16_t>(0), static_cast<std::uint16_t>(0), 1U,
                          7U << 16U | 20U, 5U << 16U | 27U, line) +
                   texts + std::string(4, '\0');
  return made_record(PERF_RECORD_SAMPLE, 2,
                     words(id) + packed(1U, 1U) + words(time) +
                         packed(static_cast<std::uint32_t>(raw.size())) + raw);
}

// NUMBER lost records of the event with that ID, as counted by perf and by the kernel.
std::string lost_samples(std::uint64_t id, std::uint64_t number) {
  return made_record(PERF_RECORD_LOST_SAMPLES, 0,
                     words(number) + packed(1U, 1U) + words(1) + words(id));
}
std::string lost_records(std::uint64_t id, std::uint64_t number) {
  return made_record(PERF_RECORD_LOST, 0,
                     words(id, number) + packed(1U, 1U) + words(1) + words(id));
}

test::MadePerfData made(std::string more = {}, const std::string& print = "\"\"") {
  test::MadePerfData result;
  result.events = {tracepoint(kEntryNumber, kEntry), tracepoint(kReturnNumber, kReturn)};
  result.data = sample(kEntry, 100, 3) + sample(kReturn, 150, 4) + std::move(more);
  result.features.emplace(1, tracing_data(print));  // HEADER_TRACING_DATA
  return result;
}

class CallReader : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_read_calls()) {
      GTEST_SKIP() << "built without libtraceevent";
    }
  }
  CallTrace read(const test::MadePerfData& data) {
    return read_calls(directory_.file("perf.data", data.bytes()));
  }

 private:
  test::TempDir directory_;
};

TEST_F(CallReader, FindsCallsAndReturns) {
  const auto trace = read(made());
  ASSERT_EQ(trace.events.size(), 2U);
  EXPECT_EQ(trace.events[0].time, 100U);
  EXPECT_EQ(trace.events[0].kind, CallEvent::Kind::kEntry);
  EXPECT_EQ(trace.events[1].kind, CallEvent::Kind::kReturn);
  EXPECT_EQ(trace.events[1].partner, 0U);
  ASSERT_EQ(trace.functions.size(), 1U);
  EXPECT_EQ(trace.functions[0], (Function{.name = "work", .file = "app.py", .line = 3}));
  EXPECT_EQ(trace.lost + trace.unreadable, 0U);
}

// libtraceevent's parser recurses for each parenthesis.
TEST_F(CallReader, SurvivesAnEndlessExpression) {
  EXPECT_EQ(read(made({}, "\"\", " + std::string(4'000'000, '('))).events.size(), 2U);
}

TEST_F(CallReader, EndsCallsWithTheirThread) {
  const auto exit = made_record(
      PERF_RECORD_EXIT, 0,
      packed(1U, 1U, 1U, 1U) + words(200) + packed(1U, 1U) + words(200) + words(kEntry));
  const auto trace = read(made(sample(kEntry, 180, 3) + exit + sample(kReturn, 250, 4)));
  ASSERT_EQ(trace.events.size(), 5U);
  EXPECT_EQ(trace.events[3].kind, CallEvent::Kind::kThread);
  EXPECT_EQ(trace.events[4].partner, CallEvent::kNone);
}

TEST_F(CallReader, CountsALossOnce) {
  EXPECT_EQ(read(made(lost_records(kEntry, 5))).lost, 5U);
  EXPECT_EQ(
      read(made(lost_records(kEntry, 5) + lost_samples(kEntry, 3) + lost_samples(kReturn, 4))).lost,
      7U);
}

TEST_F(CallReader, CountsLossesOfCallsOnlyWhereTheyAreTold) {
  auto other = test::made_event(kType, {kOther});
  other.attr.type = PERF_TYPE_HARDWARE;
  auto data = made(lost_records(kOther, 9) + lost_samples(kOther, 9));
  data.events.push_back(other);
  EXPECT_EQ(read(data).lost, 0U);
  data = made(lost_records(kOther, 9));
  data.events.push_back(other);
  EXPECT_EQ(read(data).lost, 9U) << "the losses may be calls";
}

TEST_F(CallReader, WantsCallsInTheFile) {
  auto data = made();
  data.features.clear();
  try {
    (void)read(data);
    ADD_FAILURE();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("contains no function calls"));
  }
}

}  // namespace
}  // namespace pyinject::calls
