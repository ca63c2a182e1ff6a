#include "perf/tracefs.hpp"

#include "support/temp_dir.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace pyinject::perf {
namespace {

TEST(Tracefs, HasTheIdsOfTracepoints) {
  const test::TempDir directory;
  const std::string tracefs = directory / "tracing";
  const auto tracepoint = tracefs + "/events/syscalls/sys_enter_read";
  std::filesystem::create_directories(tracepoint);
  EXPECT_EQ(tracepoint_id(tracefs, "syscalls:sys_enter_read"), std::nullopt) << "unreadable";
  std::ofstream{tracepoint + "/id"} << "842\n";
  EXPECT_EQ(tracepoint_id(tracefs, "syscalls:sys_enter_read"), 842U);
  EXPECT_EQ(tracepoint_id(tracefs, "syscalls:sys_enter_write"), std::nullopt);
  EXPECT_EQ(tracepoint_id(tracefs, "sys_enter_read"), std::nullopt) << "without a system";
}

}  // namespace
}  // namespace pyinject::perf
