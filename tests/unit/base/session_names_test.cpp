// The former names of the library's namespaces, until the release after 0.3.
#include "pyinject/session_names.hpp"

#include "pyinject/record/plan.hpp"
#include "pyinject/targets/manager.hpp"

#include <gtest/gtest.h>

#include <type_traits>

namespace pyinject {
namespace {

TEST(SessionNames, AreThoseOfTargetsAndRecord) {
  EXPECT_TRUE((std::is_same_v<session::Manager, targets::Manager>));
  EXPECT_TRUE((std::is_same_v<session::RecordPlan, record::RecordPlan>));
  EXPECT_EQ(session::kUsage, record::kUsage);
}

}  // namespace
}  // namespace pyinject
