#include "perf/uprobe_events.hpp"

#include "base/file.hpp"
#include "procfs/stat.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::perf {
namespace {

using base::Pid;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr GroupOwner kOwner{.id = {.pid = Pid{4711}, .start_time = 123456},
                            .pid_namespace = 4026531836};

TEST(UprobeGroups, NameTheirOwner) {
  EXPECT_EQ(group_name(kOwner), "perf_pyinject_4711_123456_4026531836");
  EXPECT_EQ(parse_group_name(group_name(kOwner)), kOwner);
  EXPECT_LT(
      group_name({.id = {.pid = Pid{4194304}, .start_time = ~0UL}, .pid_namespace = ~0U}).size(),
      64U)
      << "limit: MAX_EVENT_NAME_LEN";
}

TEST(UprobeGroups, ExcludeThoseOfOthers) {
  for (const auto* const group :
       {"", "probe_python", "perf_pyinject_", "perf_pyinject_1_2", "perf_pyinject_1_2_3_4",
        "perf_pyinject_0_2_3", "perf_pyinject_-1_2_3", "perf_pyinject_x_2_3", "perf_pyinject_1__3",
        "xperf_pyinject_1_2_3"}) {
    EXPECT_EQ(parse_group_name(group), std::nullopt) << group;
  }
}

TEST(UprobeGroups, LiveAsLongAsTheirProcess) {
  const auto own = this_owner();
  EXPECT_EQ(own.id.pid.value(), ::getpid());
  EXPECT_TRUE(is_alive(own));
  auto earlier = own;
  --earlier.id.start_time;  // an earlier process with the same pid
  EXPECT_FALSE(is_alive(earlier));
}

TEST(UprobeEvents, AreFoundInTheList) {
  EXPECT_THAT(
      parse_uprobe_events("p:group/entry_0_0 /proc/self/fd/5:0x0000000000148bc0(0x8942e8) a=%bx\n"
                          "r:other/name /bin/sh:0x10\np:probe_x\nnonsense\np: \n"),
      ElementsAre(ListedEvent{.group = "group", .name = "entry_0_0"},
                  ListedEvent{.group = "other", .name = "name"}));
}

// A regular file in place of the kernel's shows what is written.
class WrittenEvents : public testing::Test {
 protected:
  WrittenEvents() { (void)directory_.file("uprobe_events", ""); }
  [[nodiscard]] UprobeEvents open() const {
    return std::get<UprobeEvents>(UprobeEvents::open_at(directory_.path().string(), kOwner));
  }
  [[nodiscard]] std::string written() const {
    return base::read_file(directory_ / "uprobe_events").value_or("none");
  }
  void write(const std::string& text) const { std::ofstream{directory_ / "uprobe_events"} << text; }

 private:
  test::TempDir directory_;
};

TEST_F(WrittenEvents, AreAddedAndRemoved) {
  auto events = open();
  events.add("entry_0_0", 7, 0x148bc0, 0x8942e8, "line=%ax:s32");
  events.add("return_0_1", 7, 0x10, 0, "a=%bx");
  EXPECT_THAT(events.events(), ElementsAre("perf_pyinject_4711_123456_4026531836:entry_0_0",
                                           "perf_pyinject_4711_123456_4026531836:return_0_1"));
  EXPECT_EQ(written(),
            "p:perf_pyinject_4711_123456_4026531836/entry_0_0 "
            "/proc/self/fd/7:0x148bc0(0x8942e8) line=%ax:s32\n"
            "p:perf_pyinject_4711_123456_4026531836/return_0_1 /proc/self/fd/7:0x10 a=%bx\n");
  write("");
  EXPECT_TRUE(events.remove().empty());
  EXPECT_EQ(written(),
            "-:perf_pyinject_4711_123456_4026531836/entry_0_0\n"
            "-:perf_pyinject_4711_123456_4026531836/return_0_1\n");
  write("");
  EXPECT_TRUE(events.remove().empty());
  EXPECT_EQ(written(), "") << "the second call has nothing to do";
}

TEST_F(WrittenEvents, AreRemovedWithTheirObject) {
  {
    auto events = open();
    events.add("entry_0_0", 7, 1, 0, "a=%bx");
    write("");
    const auto moved = std::move(events);
  }
  EXPECT_EQ(written(), "-:perf_pyinject_4711_123456_4026531836/entry_0_0\n");
}

TEST_F(WrittenEvents, AreRemovedIfTheirSessionDied) {
  const std::string list =
      "p:perf_pyinject_1_2_3/entry_0_0 /bin/sh:0x1\np:perf_pyinject_4_5_6/entry_0_0 /bin/sh:0x1\n"
      "p:sdt_python/entry /bin/sh:0x1\np:perf_pyinject_4711_123456_4026531836/x /bin/sh:0x1\n";
  write(list);
  EXPECT_EQ(open().remove_abandoned([](const GroupOwner& owner) { return owner.id.pid == Pid{1}; }),
            1U);
  EXPECT_EQ(written(), list + "-:perf_pyinject_4_5_6/entry_0_0\n");
}

// The guard of a killed session must not hold its descriptors either.
TEST_F(WrittenEvents, AreRemovedByTheGuardOfAKilledSession) {
  this->write("p:perf_pyinject_4_5_6/entry_0_0 /bin/sh:0x1\n");  // before the guard reads it
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const base::UniqueFd read{ends[0]};
  base::UniqueFd write{ends[1]};
  const pid_t session = ::fork();
  if (session == 0) {
    auto events = open();
    events.add("entry_0_0", 7, 1, 0, "a=%bx");
    events.add("entry_0_1", 7, 2, 0, "a=%bx");
    (void)::raise(SIGKILL);
  }
  write.reset();
  ASSERT_EQ(::waitpid(session, nullptr, 0), session);
  char byte = 0;
  EXPECT_EQ(::read(read.get(), &byte, 1), 0) << "an end of file";
  const auto deadline = base::Deadline::after(test::kPatience);
  while (written().find("-:perf_pyinject_4711_123456_4026531836/entry_0_1") == std::string::npos) {
    ASSERT_FALSE(deadline.expired()) << written();
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  EXPECT_THAT(written(), Not(HasSubstr("-:perf_pyinject_4_5_6"))) << "another session's";
}

TEST(UprobeEvents, AreImpossibleWithAReason) {
  const test::TempDir directory;
  const auto opened = UprobeEvents::open_at(directory.path().string(), kOwner);
  const auto* const missing = std::get_if<NoTracefs>(&opened);
  ASSERT_NE(missing, nullptr);
  EXPECT_THAT(missing->why, HasSubstr("CONFIG_UPROBE_EVENTS"));
}

}  // namespace
}  // namespace pyinject::perf
