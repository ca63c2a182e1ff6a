// Files that can be read, files that cannot, and the events of the readable ones.
#include "perfdata/input.hpp"

#include "pyinject/base/error.hpp"
#include "support/made_perf_data.hpp"
#include "support/temp_dir.hpp"
#include "unit/perfdata/made_input.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include <linux/perf_event.h>

namespace pyinject::perfdata {
namespace {

using test::made_event;
using test::words;
using testing::HasSubstr;

std::string why_not(const std::string& bytes) {
  const auto input = Input::open(test::memory_file(bytes), "made");
  const auto* const why = std::get_if<UnsupportedFile>(&input);
  return why == nullptr ? "" : why->why;
}

TEST(PerfDataInput, HasTheEventsAsTheyAreInTheFile) {
  auto made = one_event();
  made.events.push_back(test::made_dwarf_event(kTimed, {20}));
  made.attr_size = sizeof(perf_event_attr) + 16;
  const auto input = open_bytes(made.bytes());
  ASSERT_EQ(input.events().size(), 2U);
  EXPECT_EQ(input.events()[0].ids, (std::vector<std::uint64_t>{10, 11}));
  EXPECT_EQ(input.events()[1].ids, std::vector<std::uint64_t>{20});
  EXPECT_EQ(input.events()[0].raw.size(), made.attr_size);
  EXPECT_FALSE(input.events()[0].has_user_stacks());
  EXPECT_TRUE(input.events()[1].has_user_stacks());
  EXPECT_EQ(input.events()[1].attr.sample_stack_user, 64U);

  made.attr_size = PERF_ATTR_SIZE_VER2;
  EXPECT_EQ(open_bytes(made.bytes()).events()[1].attr.sample_stack_user, 0U);
}

TEST(PerfDataInput, ReadsTheEventsOfARunningPerf) {
  auto made = one_event("");  // the features are listed, but not written yet
  const auto bytes = made.bytes();
  const auto events = events_of_running(test::memory_file(bytes), "made");
  ASSERT_TRUE(std::holds_alternative<std::vector<Event>>(events));
  EXPECT_THAT(std::get<std::vector<Event>>(events),
              testing::ElementsAre(testing::Field(&Event::ids, testing::ElementsAre(10, 11))));
  for (const auto& bad : {std::string{}, bytes.substr(0, 110), "PERFILE2" + words(16)}) {
    EXPECT_TRUE(
        std::holds_alternative<UnsupportedFile>(events_of_running(test::memory_file(bad), "x")));
  }
}

TEST(PerfDataInput, RejectsUnsupportedFiles) {
  const auto good = one_event().bytes();
  EXPECT_EQ(why_not(good), "");
  EXPECT_THAT(why_not(""), HasSubstr("not a perf.data"));
  EXPECT_THAT(why_not("PERFILE2"), HasSubstr("damaged (its size)"));
  EXPECT_THAT(why_not("PERFFILE" + good.substr(8)), HasSubstr("not a perf.data file (format 2)"));
  EXPECT_THAT(why_not("2ELIFREP" + good.substr(8)), HasSubstr("byte order"));
  EXPECT_THAT(why_not("PERFILE2" + words(16) + good), HasSubstr("pipe"));
  EXPECT_THAT(why_not(one_event("").bytes()), HasSubstr("perf record did not finish writing it"));

  const auto with = [](auto change) {
    auto made = one_event();
    change(made);
    return why_not(made.bytes());
  };
  for (const auto& index : {std::string{"aux"}, words(1) + "pyinject", words(1, 0)}) {
    EXPECT_THAT(with([&](auto& made) { made.features[18] = index; }), HasSubstr("AUX data"));
  }
  EXPECT_EQ(with([&](auto& made) { made.features[18] = words(0); }), "") << "as perf inject writes";
  EXPECT_THAT(with([](auto& made) { made.features[24] = "dir"; }), HasSubstr("--threads"));
  EXPECT_THAT(with([](auto& made) { made.features[12] = "damaged"; }), HasSubstr("description"));
  EXPECT_THAT(with([](auto& made) { made.events.clear(); }), HasSubstr("no events"));
  const auto with_attr = [&](auto change) {
    return with([&](auto& made) { change(made.events.front().attr); });
  };
  EXPECT_THAT(with_attr([](auto& attr) { attr.sample_type |= PERF_SAMPLE_AUX; }),
              HasSubstr("AUX data"));
  EXPECT_THAT(with_attr([](auto& attr) { attr.sample_type |= 1U << 25U; }),
              HasSubstr("sample_type has unknown bits (0x2000000)"));
  EXPECT_THAT(with_attr([](auto& attr) {
                attr.sample_type |= PERF_SAMPLE_READ;
                attr.read_format = 32;
              }),
              HasSubstr("read_format"));
  EXPECT_THAT(with_attr([](auto& attr) {
                attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
                attr.branch_sample_type = 1U << 20U;
              }),
              HasSubstr("branch_sample_type"));
  EXPECT_THAT(with([](auto& made) {
                made.events = {made_event(PERF_SAMPLE_ID, {1}),
                               made_event(PERF_SAMPLE_ID | PERF_SAMPLE_IP, {2})};
              }),
              HasSubstr("to which event they belong"));
  EXPECT_THAT(with([](auto& made) {
                made.events = {made_event(PERF_SAMPLE_IP), made_event(PERF_SAMPLE_IP)};
              }),
              HasSubstr("to which event they belong"));
}

TEST(PerfDataInput, RefusesSectionsOutsideOfTheFile) {
  auto made = one_event();
  made.features[3] = "host";
  const auto good = made.bytes();
  ASSERT_EQ(why_not(good), "");
  const auto with = [&](std::size_t at, std::uint64_t value) {
    auto bytes = good;
    bytes.replace(at, 8, words(value));
    return why_not(bytes);
  };
  const auto last = good.size();
  for (const auto bad : {last + 1, ~std::size_t{0}, std::size_t{1} << 63U}) {
    EXPECT_THAT(with(24, bad), HasSubstr("attributes section"));  // its offset
    EXPECT_THAT(with(32, bad), HasSubstr("attributes section"));  // its size
    EXPECT_THAT(with(40, bad), HasSubstr("damaged"));             // data
    EXPECT_THAT(with(48, bad), HasSubstr("damaged"));
    EXPECT_THAT(with(16, bad), HasSubstr("attributes of an event"));
    EXPECT_THAT(with(last - 20, bad), HasSubstr("feature 3"));  // the table of features
    EXPECT_THAT(with(last - 12, bad), HasSubstr("feature 3"));
    const auto ids = 104 + 16 + made.attr_size;  // behind the header, two ids and the attributes
    EXPECT_THAT(with(ids, bad), HasSubstr("ids"));
    EXPECT_THAT(with(ids + 8, bad), HasSubstr("ids"));
  }
  EXPECT_THAT(with(72, ~std::uint64_t{0}), HasSubstr("table of features"));
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(why_not(good.substr(0, size)), "") << size;
  }
}

TEST(PerfDataInput, RefusesFeaturesOnTopOfEachOther) {
  auto made = one_event();
  for (unsigned bit = 3; bit < 9; ++bit) {
    made.features[bit] = "";
  }
  auto bytes = made.bytes();
  const auto table = bytes.size() - made.features.size() * 16;
  for (std::size_t i = 0; i < made.features.size(); ++i) {
    bytes.replace(table + 16 * i, 16, words(0, bytes.size() / 2));
  }
  EXPECT_THAT(why_not(bytes), HasSubstr("feature 5"));
}

TEST(PerfDataInput, RefusesIdsOnTopOfEachOther) {
  auto made = one_event();
  made.events.push_back(made_event(kTimed, {20}));
  auto bytes = made.bytes();
  constexpr std::size_t kFirst = 104 + 3 * 8 + sizeof(perf_event_attr);
  const auto half = words(0, bytes.size() / 16 * 8 + 8);
  bytes.replace(kFirst, 16, half);
  EXPECT_EQ(why_not(bytes), "");
  bytes.replace(kFirst + 16 + sizeof(perf_event_attr), 16, half);
  EXPECT_THAT(why_not(bytes), HasSubstr("ids of an event"));
}

std::vector<std::uint32_t> types_in(Input& input) {
  std::vector<std::uint32_t> types;
  while (const auto record = input.next()) {
    types.push_back(record->type);
  }
  return types;
}

TEST(PerfDataInput, ReadsTheFilesOfADirectoryOneAfterTheOther) {
  const auto lost = test::made_record(PERF_RECORD_LOST, 0, words(1, 2, 0));
  const auto exit = test::made_record(PERF_RECORD_EXIT, 0, words(1, 2, 3, 0));
  const test::TempDir directory;
  auto made = one_event(lost);
  made.features[24] = words(1);
  (void)directory.file("data", made.bytes());
  (void)directory.file("data.0", exit + lost);
  (void)directory.file("data.1", "");
  (void)directory.file("data.2", exit);
  (void)directory.file("data.4", lost);  // of nobody: there is no data.3
  auto input = std::get<Input>(Input::open(directory.path()));
  EXPECT_TRUE(input.is_directory());
  const std::vector<std::uint32_t> all{PERF_RECORD_LOST, PERF_RECORD_EXIT, PERF_RECORD_LOST,
                                       PERF_RECORD_EXIT};
  EXPECT_EQ(types_in(input), all);
  EXPECT_EQ(input.damage(), "");
  EXPECT_EQ(input.position(), input.size());
  input.rewind();
  EXPECT_EQ(types_in(input), all);
  auto another = input.another();
  EXPECT_EQ(types_in(another), all);

  (void)directory.file("data.1", exit.substr(0, 20));
  input.rewind();
  EXPECT_EQ(types_in(input).size(), 3U);
  EXPECT_THAT(input.damage(), HasSubstr("cut off"));
  std::filesystem::remove(directory / "data.1");
  std::filesystem::create_symlink("data.0", directory / "data.1");
  EXPECT_THROW(
      {
        input.rewind();
        (void)types_in(input);
      },
      base::SystemError);

  (void)directory.file("data", one_event(lost).bytes());
  const auto other = Input::open(directory.path());
  EXPECT_THAT(std::get<UnsupportedFile>(other).why, HasSubstr("not one of a directory"));
}

TEST(PerfDataInput, RefusesWhatIsNoRegularFile) {
  const test::TempDir directory;
  const auto why = [](const std::string& path) {
    const auto input = Input::open(path);
    return std::get<UnsupportedFile>(input).why;
  };
  EXPECT_THAT(why(directory.path()), HasSubstr("perf record --threads has not written"));
  EXPECT_THAT(why("/dev/null"), HasSubstr("not a regular file"));
  EXPECT_THROW((void)Input::open(directory / "none"), base::SystemError);
}

}  // namespace
}  // namespace pyinject::perfdata
