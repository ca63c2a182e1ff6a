#include "watch/side_band.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include <linux/perf_event.h>
#include <sys/mman.h>

namespace pyinject::watch {
namespace {

using base::Pid;

// A record as the kernel writes it: header, fields, time.
class RecordText {
 public:
  explicit RecordText(std::uint32_t type, std::uint16_t misc = 0) {
    number(type);
    number(misc);
    number(std::uint16_t{0});
  }
  template <typename Number>
  RecordText& number(Number value) {
    const auto at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
    return *this;
  }
  RecordText& text(const std::string& words) {
    bytes_ += words;
    bytes_.append(8 - bytes_.size() % 8, '\0');
    return *this;
  }
  [[nodiscard]] std::string with_time(std::uint64_t time) {
    number(time);
    const auto size = static_cast<std::uint16_t>(bytes_.size());
    std::memcpy(bytes_.data() + 6, &size, sizeof size);
    return bytes_;
  }

 private:
  std::string bytes_;
};

std::optional<SideBand> decode(const std::string& bytes) {
  return decode_side_band(std::as_bytes(std::span{bytes.data(), bytes.size()}));
}

std::string task(std::uint32_t type, std::uint32_t pid, std::uint32_t parent, std::uint32_t tid,
                 std::uint64_t time) {
  return RecordText{type}
      .number(pid)
      .number(parent)
      .number(tid)
      .number(parent)
      .number(std::uint64_t{1})
      .with_time(time);
}

std::string mapping(std::uint32_t protection, std::uint64_t inode, std::uint16_t misc = 0,
                    std::uint32_t device = 8) {
  return RecordText{PERF_RECORD_MMAP2, misc}
      .number(47U)
      .number(48U)
      .number(std::uint64_t{0x1000})
      .number(std::uint64_t{0x2000})
      .number(std::uint64_t{0})
      .number(device)
      .number(1U)
      .number(inode)
      .number(std::uint64_t{3})
      .number(protection)
      .number(0U)
      .text("/usr/lib/libpython3.14.so.1.0")
      .with_time(9);
}

TEST(SideBand, ReportsStartsAndExitsOfProcesses) {
  const auto born = decode(task(PERF_RECORD_FORK, 47, 40, 47, 5));
  ASSERT_TRUE(born);
  EXPECT_EQ(born->event.change, Change::kForked);
  EXPECT_EQ(born->event.pid, Pid{47});
  EXPECT_EQ(born->event.parent, Pid{40});
  EXPECT_EQ(born->time, 5U);
  EXPECT_FALSE(born->lost);
  const auto ended = decode(task(PERF_RECORD_EXIT, 47, 40, 47, 6));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->event.change, Change::kExited);
}

TEST(SideBand, LeavesThreadsAndForeignProcessesOut) {
  EXPECT_FALSE(decode(task(PERF_RECORD_FORK, 47, 47, 48, 5)));
  EXPECT_FALSE(decode(task(PERF_RECORD_EXIT, 47, 47, 48, 5)));
  EXPECT_FALSE(decode(task(PERF_RECORD_FORK, 0, 0, 0, 5)));
  EXPECT_FALSE(decode(task(PERF_RECORD_EXIT, 0xffffffff, 0, 0xffffffff, 5)));
}

TEST(SideBand, TellsAnExecFromAName) {
  const auto exec = decode(RecordText{PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC}
                               .number(47U)
                               .number(47U)
                               .text("python3")
                               .with_time(5));
  ASSERT_TRUE(exec);
  EXPECT_EQ(exec->event.change, Change::kExec);
  EXPECT_EQ(exec->event.path, "python3");
  const auto named =
      decode(RecordText{PERF_RECORD_COMM}.number(47U).number(47U).text("worker 1").with_time(5));
  ASSERT_TRUE(named);
  EXPECT_EQ(named->event.change, Change::kNamed);
  EXPECT_EQ(named->event.path, "worker 1");
  EXPECT_FALSE(
      decode(RecordText{PERF_RECORD_COMM}.number(47U).number(48U).text("thread").with_time(5)));
}

TEST(SideBand, TellsWhichFileWasMapped) {
  const auto mapped = decode(mapping(PROT_READ | PROT_EXEC, 1234));
  ASSERT_TRUE(mapped);
  EXPECT_EQ(mapped->event.change, Change::kMapped);
  EXPECT_EQ(mapped->event.pid, Pid{47});
  EXPECT_EQ(mapped->event.file, (FileIdentity{8, 1, 1234, 3}));
  EXPECT_EQ(mapped->event.path, "/usr/lib/libpython3.14.so.1.0");
  EXPECT_FALSE(decode(mapping(PROT_READ, 1234)));  // data
  const auto generated = decode(mapping(PROT_READ | PROT_EXEC, 0));
  ASSERT_TRUE(generated);
  EXPECT_EQ(generated->event.change, Change::kGeneratedCode);
  EXPECT_EQ(generated->event.pid, Pid{47});
}

// Another recording on this processor has requested build-ids and receives the same record first.
TEST(SideBand, TellsTheFileAlsoOfARecordThatPretendsToHaveABuildId) {
  for (const std::uint32_t device : {8U, 254U}) {
    const auto mapped =
        decode(mapping(PROT_READ | PROT_EXEC, 1234,
                       PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID, device));
    ASSERT_TRUE(mapped);
    EXPECT_EQ(mapped->event.change, Change::kMapped);
    EXPECT_EQ(mapped->event.file, (FileIdentity{device, 1, 1234, 3}));
  }
}

TEST(SideBand, SaysThatRecordsWereLost) {
  const auto lost = decode(
      RecordText{PERF_RECORD_LOST}.number(std::uint64_t{1}).number(std::uint64_t{12}).with_time(5));
  ASSERT_TRUE(lost);
  EXPECT_TRUE(lost->lost);
}

TEST(SideBand, NoRecordThatIsCutOffIsRead) {
  for (const auto& whole :
       {task(PERF_RECORD_FORK, 47, 40, 47, 5), mapping(PROT_EXEC, 1234),
        RecordText{PERF_RECORD_COMM}.number(47U).number(47U).text("x").with_time(5)}) {
    ASSERT_TRUE(decode(whole));
    for (std::size_t size = 0; size < whole.size(); ++size) {
      auto cut = whole.substr(0, size);
      EXPECT_FALSE(decode(cut));  // its size is inconsistent
      if (size >= 8) {
        const auto claimed = static_cast<std::uint16_t>(size);
        std::memcpy(cut.data() + 6, &claimed, sizeof claimed);
        static_cast<void>(decode(cut));  // for the sanitizers
      }
    }
  }
  // A name that is not terminated.
  EXPECT_FALSE(decode(
      RecordText{PERF_RECORD_COMM}.number(47U).number(47U).number(~std::uint64_t{0}).with_time(5)));
}

SideBand at(std::uint64_t time, pid_t pid) {
  SideBand one;
  one.time = time;
  one.event.pid = Pid{pid};
  return one;
}

TEST(SideBand, ComesInOrderOfTimeAndNotBeforeItsTurn) {
  std::vector<SideBand> held{at(5, 1), at(9, 2), at(3, 3), at(5, 4), at(7, 5)};
  std::vector<pid_t> order;
  for (const auto& one : take_until(held, 7)) {
    order.push_back(one.event.pid.value());
  }
  EXPECT_THAT(order, testing::ElementsAre(3, 1, 4, 5));
  ASSERT_EQ(held.size(), 1U);
  EXPECT_EQ(held[0].event.pid, Pid{2});
  EXPECT_EQ(take_until(held, 9).size(), 1U);
  EXPECT_TRUE(held.empty());
}

}  // namespace
}  // namespace pyinject::watch
