#include "python/layout/version_policy.hpp"

#include <gtest/gtest.h>

#include <set>

namespace pyinject::python {
namespace {

std::string verdict(std::uint64_t hex) {
  const auto refusal = refuse_version(version_from_hex(hex));
  return refusal ? std::string{name(refusal->reason)} : "";
}

TEST(RefuseVersion, ByMinorAndPatchRelease) {
  EXPECT_EQ(verdict(0x030b02f0), "python_too_old");
  EXPECT_EQ(verdict(0x02070ff0), "python_too_old");
  EXPECT_EQ(verdict(0x030c00f0), "bad_patch_release");
  EXPECT_EQ(verdict(0x030c01f0), "");
  EXPECT_EQ(verdict(0x030d05f0), "");
  EXPECT_EQ(verdict(0x030d0cf0), "bad_patch_release");
  EXPECT_EQ(verdict(0x030e03f0), "bad_patch_release");
  EXPECT_EQ(verdict(0x030e06f0), "");
  EXPECT_EQ(verdict(0x030f00c1), "") << "a release candidate";
  EXPECT_EQ(verdict(0x030f00b4), "pre_release");
  EXPECT_EQ(verdict(0x031000f0), "python_too_new");
}

TEST(Version, ReadsPyVersionHex) {
  EXPECT_EQ(to_string(version_from_hex(0x030e0af0)), "3.14.10");
  EXPECT_EQ(to_string(version_from_hex(0x030f00c2)), "3.15.0rc2");
}

TEST(ClassifyEvaluator, TellsOursFromTheProgramsOwn) {
  const base::RemoteAddress begin{0x1000};
  const base::RemoteAddress end{0x2000};
  const base::RemoteAddress evaluator{0x1800};
  const auto state = [&](base::RemoteAddress address, const std::optional<Mailbox>& mailbox) {
    return classify_evaluator(address, mailbox, begin, end);
  };
  EXPECT_EQ(state(base::RemoteAddress{}, std::nullopt), TrampolineState::kOff);
  EXPECT_EQ(state(evaluator, std::nullopt), TrampolineState::kOnByItself);
  EXPECT_EQ(state(base::RemoteAddress{0x2000}, std::nullopt), std::nullopt) << "another evaluator";

  Mailbox mailbox{};
  mailbox.evaluator = evaluator.value();
  EXPECT_EQ(state(evaluator, mailbox), TrampolineState::kOnByUs);
  mailbox.evaluator = 0x1900;
  EXPECT_EQ(state(evaluator, mailbox), TrampolineState::kOnByItself);
  mailbox.evaluator = 0;
  mailbox.requested = 1;
  EXPECT_EQ(state(evaluator, mailbox), TrampolineState::kOnByItself) << "the request was withdrawn";
  mailbox.payload[0] = 't';
  EXPECT_EQ(state(evaluator, mailbox), TrampolineState::kOnByUs)
      << "the tool died before it stored the evaluator";
}

TEST(Reason, NamesAreDistinctAndCompareWithTheReferencePackage) {
  std::set<std::string_view> names;
  for (const Reason reason : all_reasons()) {
    EXPECT_TRUE(names.insert(name(reason)).second) << name(reason);
  }
  for (const auto* expected :
       {"not_python", "python_too_old", "no_perf_trampoline", "no_libpython_symbols"}) {
    EXPECT_TRUE(names.contains(expected)) << expected;
  }
}

}  // namespace
}  // namespace pyinject::python
