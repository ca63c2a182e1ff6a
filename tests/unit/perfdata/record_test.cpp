#include "perfdata/record.hpp"

#include "perfdata/record_writer.hpp"
#include "support/made_perf_data.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>

namespace pyinject::perfdata {
namespace {

using test::as_record;
using test::made_record;
using test::packed;
using test::padded;
using test::words;

std::string task(std::uint32_t type) {
  return made_record(type, 0, packed(10U, 20U, 30U, 40U) + words(50));
}

TEST(PerfDataRecords, AMappingOfAFileIsParsed) {
  const auto bytes = made_record(
      PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER,
      packed(7U, 8U) + words(0x1000, 0x2000, 0x3000) + packed(1U, 2U) + words(3, 4) +
          packed(std::uint32_t{PROT_READ | PROT_EXEC}, 2U) + padded("/usr/lib/a.so") + words(0, 0));
  const auto mapping = parse_mapping(as_record(bytes));
  ASSERT_TRUE(mapping);
  EXPECT_EQ(mapping->pid, 7U);
  EXPECT_EQ(mapping->tid, 8U);
  EXPECT_EQ(mapping->start, 0x1000U);
  EXPECT_EQ(mapping->size, 0x2000U);
  EXPECT_EQ(mapping->page_offset, 0x3000U);
  EXPECT_EQ(mapping->major, 1U);
  EXPECT_EQ(mapping->minor, 2U);
  EXPECT_EQ(mapping->inode, 3U);
  EXPECT_EQ(mapping->generation, 4U);
  EXPECT_EQ(mapping->protection, unsigned{PROT_READ | PROT_EXEC});
  EXPECT_EQ(mapping->file, "/usr/lib/a.so");
  EXPECT_TRUE(mapping->build_id.empty());
}

TEST(PerfDataRecords, AMappingWithABuildIdIsParsed) {
  const std::string id(20, '\xab');
  const auto with = [&](std::uint8_t size) {
    return made_record(PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID,
                       packed(7U, 8U) + words(0x1000, 0x2000, 0x3000) +
                           packed(size, std::uint8_t{}, std::uint16_t{}) + id + packed(5U, 2U) +
                           padded("a.so"));
  };
  const auto mapping = parse_mapping(as_record(with(16)));
  ASSERT_TRUE(mapping);
  EXPECT_EQ(mapping->build_id, std::vector<std::byte>(16, std::byte{0xab}));
  EXPECT_EQ(mapping->inode, 0U);
  EXPECT_EQ(mapping->file, "a.so");
  EXPECT_FALSE(parse_mapping(as_record(with(21))));
}

TEST(PerfDataRecords, ADeferredChainIsParsed) {
  const auto of = [](const std::string& payload) {
    const auto bytes = made_record(kCallchainDeferred, PERF_RECORD_MISC_USER, payload);
    return parse_deferred_chain(as_record(bytes));
  };
  const auto chain = of(words(5, 3, PERF_CONTEXT_USER, 0x10, 0x20) + words(1, 2, 3));
  ASSERT_TRUE(chain);
  EXPECT_EQ(chain->cookie, 5U);
  EXPECT_EQ(chain->addresses, (std::vector<std::uint64_t>{0x10, 0x20}));
  EXPECT_TRUE(of(words(5, 0)));
  EXPECT_FALSE(of(words(5, 2, 0x10)));
  EXPECT_FALSE(of(words(5, ~std::uint64_t{0}, 0x10)));
  EXPECT_FALSE(of(words(5)));
  EXPECT_FALSE(parse_deferred_chain(as_record(task(PERF_RECORD_FORK))));
}

TEST(PerfDataRecords, AnOldMappingTellsCodeFromData) {
  const auto with = [](std::uint16_t misc) {
    const auto bytes = made_record(PERF_RECORD_MMAP, misc,
                                   packed(7U, 8U) + words(0x1000, 0x2000, 0x3000) + padded("a"));
    return parse_mapping(as_record(bytes)).value_or(Mapping{}).protection;
  };
  EXPECT_EQ(with(PERF_RECORD_MISC_USER), unsigned{PROT_READ | PROT_EXEC});
  EXPECT_EQ(with(PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_DATA), unsigned{PROT_READ});
}

TEST(PerfDataRecords, ThoseWeMakeAreReadTheSame) {
  Mapping mapping{.pid = 1,
                  .tid = 2,
                  .start = 3,
                  .size = 4,
                  .page_offset = 5,
                  .major = 6,
                  .minor = 7,
                  .inode = 8,
                  .generation = 9,
                  .build_id = {},
                  .protection = PROT_EXEC,
                  .file = "/tmp/image with blanks"};
  std::vector<std::byte> bytes;
  const auto again = [&] {
    make_mapping(mapping, 16, bytes);
    EXPECT_EQ(bytes.size() % 8, 0U);
    EXPECT_EQ(std::vector<std::byte>(bytes.end() - 16, bytes.end()), std::vector<std::byte>(16));
    const auto text = test::as_text(bytes);
    const auto record = as_record(text);
    EXPECT_EQ(record.misc & PERF_RECORD_MISC_CPUMODE_MASK, PERF_RECORD_MISC_USER);
    return parse_mapping(record).value_or(Mapping{});
  };
  auto read = again();
  EXPECT_EQ(read.inode, mapping.inode);
  EXPECT_EQ(read.file, mapping.file);
  EXPECT_EQ(read.page_offset, mapping.page_offset);
  EXPECT_EQ(read.protection, mapping.protection);
  mapping.build_id.assign(25, std::byte{0xcd});
  mapping.file.assign(10'000, 'x');
  read = again();
  EXPECT_EQ(read.build_id, std::vector<std::byte>(20, std::byte{0xcd}));
  EXPECT_EQ(read.file, std::string(4095, 'x'));
}

TEST(PerfDataRecords, AMappingIsReplacedByAnotherOne) {
  constexpr std::uint16_t kMisc = PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_DATA;
  const auto with = [](std::uint16_t misc, const std::string& identity, std::uint64_t offset,
                       const std::string& behind) {
    return made_record(PERF_RECORD_MMAP2, misc,
                       packed(7U, 8U) + words(0x1000, 0x2000, offset) + identity +
                           packed(unsigned{PROT_EXEC}, unsigned{MAP_SHARED}) + behind);
  };
  const auto like =
      with(kMisc | PERF_RECORD_MISC_MMAP_BUILD_ID,
           packed(std::uint8_t{20}, std::uint8_t{}, std::uint16_t{}) + std::string(20, 'x'), 0x3000,
           padded("//anon") + words(1, 2));
  auto mapping = parse_mapping(as_record(like)).value_or(Mapping{});
  mapping.page_offset = 0x1000;
  mapping.build_id.clear();
  mapping.file = "a longer name";
  std::vector<std::byte> bytes;
  ASSERT_TRUE(make_mapping_like(as_record(like), mapping, bytes));
  EXPECT_EQ(test::as_text(bytes),
            with(kMisc, std::string(24, '\0'), 0x1000, padded("a longer name") + words(1, 2)));
  const auto unpadded = with(kMisc, std::string(24, '\0'), 0, std::string{"/anon", 6});
  EXPECT_FALSE(make_mapping_like(as_record(unpadded), mapping, bytes));
  const auto largest = with(kMisc, std::string(24, '\0'), 0, padded("a") + std::string(65448, 'x'));
  EXPECT_EQ(largest.size(), 65528U);
  EXPECT_TRUE(make_mapping_like(as_record(largest), {.file = "a"}, bytes));
  EXPECT_FALSE(make_mapping_like(as_record(largest), {.file = "a longer name"}, bytes));
  EXPECT_FALSE(make_mapping_like(as_record(made_record(PERF_RECORD_LOST, 0, "")), mapping, bytes));
}

TEST(PerfDataRecords, AMappingHasTheTimeOfAnExec) {
  const Mapping mapping{.pid = 7, .tid = 7, .start = 0x1000, .size = 0x2000, .file = "names"};
  const auto exec = made_record(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC,
                                packed(7U, 7U) + padded("python3") + words(1, 2));
  std::vector<std::byte> bytes;
  ASSERT_TRUE(make_mapping_like(as_record(exec), mapping, bytes));
  const auto text = test::as_text(bytes);
  EXPECT_TRUE(text.ends_with(words(1, 2)));
  const auto made = parse_mapping(as_record(text));
  ASSERT_TRUE(made);
  EXPECT_EQ(made->file, "names");
  EXPECT_EQ(made->start, 0x1000U);
  EXPECT_EQ(as_record(text).misc, PERF_RECORD_MISC_USER);
}

TEST(PerfDataRecords, TasksAreParsed) {
  for (const std::uint32_t type : {PERF_RECORD_FORK, PERF_RECORD_EXIT}) {
    const auto bytes = task(type);
    const auto parsed = parse_task(as_record(bytes));
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->pid, 10U);
    EXPECT_EQ(parsed->parent_pid, 20U);
    EXPECT_EQ(parsed->tid, 30U);
    EXPECT_EQ(parsed->parent_tid, 40U);
    EXPECT_EQ(parsed->time, 50U);
  }
  EXPECT_FALSE(parse_task(as_record(task(PERF_RECORD_THROTTLE))));
}

TEST(PerfDataRecords, NamesOfTasksAreParsed) {
  const auto with = [](std::uint16_t misc, const std::string& name) {
    return made_record(PERF_RECORD_COMM, misc, packed(7U, 8U) + name);
  };
  const auto bytes = with(PERF_RECORD_MISC_COMM_EXEC, padded("python3"));
  const auto command = parse_command(as_record(bytes));
  ASSERT_TRUE(command);
  EXPECT_EQ(command->pid, 7U);
  EXPECT_EQ(command->tid, 8U);
  EXPECT_TRUE(command->exec);
  EXPECT_EQ(command->name, "python3");
  EXPECT_FALSE(parse_command(as_record(with(0, padded("a")))).value_or(Command{}).exec);
}

TEST(PerfDataRecords, OmitWhatIsCutOff) {
  const auto mapping = made_record(
      PERF_RECORD_MMAP2, 0,
      packed(7U, 8U) + words(1, 2, 3) + packed(1U, 2U) + words(3, 4) + packed(5U, 2U) + "a.so");
  const auto command = made_record(PERF_RECORD_COMM, 0, packed(7U, 8U) + "python3");
  for (const auto& whole : {mapping, command, task(PERF_RECORD_FORK)}) {
    for (std::size_t size = sizeof(perf_event_header); size < whole.size(); ++size) {
      const auto part = whole.substr(0, size);
      const auto record = as_record(part);
      EXPECT_FALSE(parse_mapping(record) || parse_command(record) || parse_task(record)) << size;
    }
  }
  // Their names are not terminated.
  EXPECT_FALSE(parse_mapping(as_record(mapping)));
  EXPECT_FALSE(parse_command(as_record(command)));
}

}  // namespace
}  // namespace pyinject::perfdata
