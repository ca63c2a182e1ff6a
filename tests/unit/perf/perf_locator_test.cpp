#include "pyinject/perf/perf_locator.hpp"

#include "pyinject/base/error.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace pyinject::perf {
namespace {

using testing::HasSubstr;

base::Deadline soon() { return base::Deadline::after(test::kPatience); }

std::string script(const test::TempDir& directory, const std::string& text) {
  auto path = directory.file("perf", "#!/bin/sh\n" + text);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

// The error message of the search.
std::string refusal(const PerfSearch& search, base::Deadline deadline = soon()) {
  try {
    (void)locate_perf(search, deadline);
  } catch (const base::Error& error) {
    return error.what();
  }
  return "found";
}

TEST(LocatePerf, FindsTheOneOnPath) {
  const Perf perf = locate_perf({}, soon());
  EXPECT_EQ(perf.path, "perf");
  EXPECT_GE(perf.major, 5);
}

TEST(LocatePerf, PrefersTheOptionToTheEnvironment) {
  EXPECT_THAT(refusal({.option = "/nonexistent/a", .environment = "/nonexistent/b"}),
              HasSubstr("cannot run '/nonexistent/a' (given by --perf): No such file"));
  EXPECT_THAT(refusal({.option = {}, .environment = "/nonexistent/b"}),
              HasSubstr("install linux-perf (Debian)"));
}

TEST(LocatePerf, LooksForNoneIfTheToolCanRecord) {
  PerfSearch search;
  search.recorder = RecorderChoice::kOwnUnlessNamed;
  search.own = "/path/of/tool";
  const auto own = locate_perf(search, soon());
  EXPECT_TRUE(own.own);
  EXPECT_EQ(own.path, "/path/of/tool");
  EXPECT_FALSE(locate_reader(own, search, soon()));
  search.recorder = RecorderChoice::kOwn;
  const auto reader = locate_reader(locate_perf(search, soon()), search, soon());
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->path, "perf");
  search.environment = "/nonexistent/b";
  EXPECT_FALSE(locate_reader(own, search, soon()));
  search.recorder = RecorderChoice::kOwnUnlessNamed;
  search.environment = "perf";
  EXPECT_EQ(locate_perf(search, soon()).path, "perf");
  search.option = "/nonexistent/a";
  EXPECT_THAT(refusal(search), HasSubstr("cannot run '/nonexistent/a'"));
}

TEST(LocatePerf, KnowsAWrapperWithoutItsKernel) {
  test::TempDir directory;
  const auto ubuntu =
      script(directory, "echo 'WARNING: perf not found for kernel 5.15.0-1' >&2\nexit 2\n");
  EXPECT_THAT(refusal({.option = ubuntu, .environment = {}}),
              HasSubstr("is a wrapper that has no perf for the running kernel"));
}

TEST(LocatePerf, DoesNotWaitForEver) {
  test::TempDir directory;
  const auto stuck = script(directory, "exec sleep 60\n");
  EXPECT_THAT(refusal({.option = stuck, .environment = {}},
                      base::Deadline::after(std::chrono::milliseconds{100})),
              HasSubstr("gave no answer in time"));
  EXPECT_THAT(refusal({.option = "true", .environment = {}}),
              HasSubstr("did not print a perf version (exit status 0)"));
}

TEST(ParseVersion, ReadsReleasesAndCandidates) {
  const Perf old = parse_version("perf", "perf version 6.1.187\n");
  EXPECT_EQ(old.major, 6);
  EXPECT_EQ(old.minor, 1);
  const Perf recent = parse_version("perf", "perf version 7.2-rc1\n");
  EXPECT_EQ(recent.major, 7);
  EXPECT_EQ(recent.minor, 2);
}

TEST(ExplainRecordFailure, NamesTheRemedy) {
  const base::ExitStatus failed{.signalled = false, .value = 255};
  EXPECT_THAT(explain_record_failure(failed, "perf_event_paranoid setting is 2:"),
              testing::AllOf(HasSubstr("exit status 255"), HasSubstr("CAP_PERFMON"),
                             HasSubstr("sysctl kernel.perf_event_paranoid")));
  EXPECT_THAT(explain_record_failure(failed, "error: No space left on device\n"),
              HasSubstr("no space left"));
  EXPECT_THAT(explain_record_failure({.signalled = true, .value = 6},
                                     "assertion failed at util/build-id.c:1010\n"
                                     "*** stack smashing detected ***: terminated\n"),
              HasSubstr("add -B"));
  EXPECT_EQ(
      explain_record_failure(failed, "failed to open x\nPerf session creation failed.\n\n"),
      "perf record failed: exit status 255; perf's last message: Perf session creation failed.");
}

}  // namespace
}  // namespace pyinject::perf
