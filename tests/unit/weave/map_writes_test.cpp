// Samples of the functions that write CPython's perf map.
#include "unit/weave/made_process.hpp"

#include <gmock/gmock.h>

namespace pyinject::weave {
namespace {

using testing::ElementsAre;

class MapWrites : public MadeProcess {
 protected:
  static constexpr std::uint64_t kWrite = 3;  // ids of events
  static constexpr std::uint64_t kWakeup = 4;
  static constexpr std::uint64_t kFault = 5;

  // "d" writes the map.
  MapWrites() {
    const auto add = [this](std::uint64_t id, std::uint32_t type, std::uint64_t config,
                            const std::string& name) {
      auto event = test::made_event(kType, {id});
      event.attr.type = type;
      event.attr.config = config;
      event.name = name;
      data_.events.push_back(event);
    };
    add(kWrite, PERF_TYPE_TRACEPOINT, 700, "syscalls:sys_enter_write");
    add(kWakeup, PERF_TYPE_TRACEPOINT, 300, "sched:sched_wakeup");
    add(kFault, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, "page-faults");
    context_.interpreters = {};
    context_.map_writers = {{kPid,
                             {.functions = {{.begin = kCode + 0x18, .end = kCode + 0x30}},
                              .text = {.begin = kCode, .end = kCode + kCodeSize},
                              .file = "python"}}};
  }
  std::vector<std::string> woven_with_names() {
    data_.features[12] = data_.description();
    return woven();
  }
};

TEST_F(MapWrites, AreDroppedWithTheEventsThatTheyCause) {
  sample(100, "odc", kWrite);
  sample(110, "oc", kWrite);
  sample(120, "dc", kFault);
  EXPECT_THAT(woven_with_names(), ElementsAre("oc"));
  EXPECT_EQ(summary_.map_writes, 2U);
  EXPECT_EQ(summary_.samples, 1U);
}

TEST_F(MapWrites, TakeProcessorTime) {
  sample(100, "odc", kClock);
  sample(110, "odc", kWakeup);
  sample(120, "odc", kSwitches);
  EXPECT_THAT(woven_with_names(), ElementsAre("odc", "odc", "odc"));
  EXPECT_EQ(summary_.map_writes, 0U);
  EXPECT_FALSE(summary_.map_writes_hidden);
}

TEST_F(MapWrites, StayIfAnExtensionModuleWrites) {
  sample(100, "odfc", kWrite);
  sample(110, "od", kWrite);
  EXPECT_THAT(woven_with_names(), ElementsAre("odfc", "od"));
  EXPECT_TRUE(summary_.map_writes_hidden);
}

TEST_F(MapWrites, AreOfNoOtherProcess) {
  sample(100, "odc", kWrite, kPid + 1);
  context_.map_writers.begin()->second.file = "python3";
  sample(110, "odc", kWrite);
  EXPECT_EQ(woven_with_names().size(), 2U);
}

TEST_F(MapWrites, AreDroppedInAForkedChild) {
  fork(50, kPid, kPid + 1);
  sample(100, "odc", kWrite, kPid + 1);
  EXPECT_THAT(woven_with_names(), ElementsAre());
  EXPECT_EQ(summary_.map_writes, 1U);
}

TEST_F(MapWrites, StayIfTheEventHasNoName) {
  sample(100, "odc", kWrite);
  EXPECT_THAT(woven(), ElementsAre("odc"));
}

}  // namespace
}  // namespace pyinject::weave
