#include "pyinject/python/reason.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <system_error>

namespace pyinject::python {
namespace {

TEST(ReasonCode, EveryReasonIsAnErrorWithItsName) {
  std::set<std::string> names;
  for (const auto reason : all_reasons()) {
    const std::error_code code = reason;
    EXPECT_TRUE(code) << name(reason) << ": 0 would mean success";
    EXPECT_EQ(code.message(),
              std::string{meaning(reason)} + " (" + std::string{name(reason)} + ")");
    EXPECT_EQ(&code.category(), &pyinject_category());
    EXPECT_NE(code.default_error_condition().category(), pyinject_category()) << name(reason);
    names.insert(code.message());
  }
  EXPECT_EQ(names.size(), all_reasons().size());
  EXPECT_THAT(names, testing::Each(testing::Not(testing::HasSubstr("unknown"))));
}

TEST(ReasonCode, EqualsTheStandardsConditions) {
  const auto is = [](Reason reason, std::errc condition) {
    return std::error_code{reason} == condition;
  };
  EXPECT_TRUE(is(Reason::kNoPermission, std::errc::permission_denied));
  EXPECT_TRUE(is(Reason::kNoSuchProcess, std::errc::no_such_process));
  EXPECT_TRUE(is(Reason::kExited, std::errc::no_such_process));
  EXPECT_TRUE(is(Reason::kDeadline, std::errc::timed_out));
  EXPECT_TRUE(is(Reason::kTraced, std::errc::device_or_resource_busy));
  EXPECT_TRUE(is(Reason::kPythonTooOld, std::errc::not_supported));
  EXPECT_FALSE(is(Reason::kPythonTooOld, std::errc::timed_out));
}

TEST(ReasonCode, IsItselfAndNoOther) {
  const std::error_code code = Reason::kJitActive;
  EXPECT_EQ(code, Reason::kJitActive);
  EXPECT_NE(code, Reason::kSeccomp);
  EXPECT_EQ(pyinject_category().name(), std::string{"pyinject"});
  EXPECT_EQ(pyinject_category().message(0), "unknown (unknown)");
  EXPECT_EQ(pyinject_category().message(1'000'000), "unknown (unknown)");
}

}  // namespace
}  // namespace pyinject::python
