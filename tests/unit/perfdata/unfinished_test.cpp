// Files whose perf has died: perf writes the header, which describes the records, at its end.
#include "perfdata/input.hpp"
#include "support/made_perf_data.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>

namespace pyinject::perfdata {
namespace {

using test::made_event;
using test::made_record;
using test::words;

constexpr std::size_t kDataOffset = 40;  // header fields: struct perf_file_header
constexpr std::size_t kDataSize = 48;

std::string unfinished() {
  test::MadePerfData made;
  made.events.push_back(made_event(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME, {10}));
  for (int i = 0; i < 3; ++i) {
    made.data += made_record(PERF_RECORD_SAMPLE, 2, words(10, i));
  }
  auto bytes = made.bytes();
  return bytes.replace(kDataSize, 8, words(0));
}

std::variant<Input, UnsupportedFile> open_dead(const std::string& bytes) {
  return Input::open(test::memory_file(bytes), "made", true);
}

int records_of(const std::string& bytes, bool damaged) {
  auto input = std::get<Input>(open_dead(bytes));
  int records = 0;
  while (const auto record = input.next()) {
    EXPECT_EQ(input.event_of(*record), &input.events().front());
    EXPECT_EQ(input.time_of(*record), records);
    ++records;
  }
  EXPECT_EQ(input.damaged(), damaged);
  return records;
}

TEST(PerfDataUnfinished, TheRecordsAreThere) {
  const auto bytes = unfinished();
  EXPECT_EQ(records_of(bytes, false), 3);
  EXPECT_EQ(records_of(bytes.substr(0, bytes.size() - 1), true), 2) << "the last one is incomplete";
}

TEST(PerfDataUnfinished, IsNoRecordingUnlessAllowed) {
  const auto opened = Input::open(test::memory_file(unfinished()), "made");
  ASSERT_TRUE(std::holds_alternative<UnsupportedFile>(opened));
  EXPECT_EQ(std::get<UnsupportedFile>(opened).why, "perf record did not finish writing it");
}

TEST(PerfDataUnfinished, OthersAreNone) {
  auto bytes = unfinished();
  EXPECT_TRUE(
      std::holds_alternative<UnsupportedFile>(open_dead(bytes.replace(kDataSize, 8, words(8)))))
      << "the file is complete";
  bytes = unfinished();
  const auto behind = words(bytes.size() + 1);
  EXPECT_TRUE(
      std::holds_alternative<UnsupportedFile>(open_dead(bytes.replace(kDataOffset, 8, behind))));
  EXPECT_TRUE(std::holds_alternative<UnsupportedFile>(open_dead("")));
  EXPECT_TRUE(std::holds_alternative<UnsupportedFile>(open_dead(unfinished().substr(0, 50))));
}

}  // namespace
}  // namespace pyinject::perfdata
