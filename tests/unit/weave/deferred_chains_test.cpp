// User parts of callchains that are recorded later than their samples.
#include "weave/deferred_chains.hpp"

#include "unit/weave/made_process.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace pyinject::weave {
namespace {

using perfdata::kContextUserDeferred;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;

class DeferredUserParts : public MadeProcess {
 protected:
  DeferredUserParts() {
    for (auto& event : data_.events) {
      test::defer_user_chains(event);
    }
    context_.interpreters = {};
  }

  // LETTERS: the kernel part.
  void deferring_sample(std::uint64_t time, std::string_view letters, std::uint64_t cookie,
                        std::uint32_t tid = kPid) {
    auto addresses = chain(letters);
    addresses.insert(addresses.end(), {kContextUserDeferred, cookie});
    raw_sample(time, addresses, tid);
  }
  void raw_sample(std::uint64_t time, const std::vector<std::uint64_t>& addresses,
                  std::uint32_t tid = kPid) {
    auto payload =
        test::words(kClock, kCode, kPid | std::uint64_t{tid} << 32U, time, addresses.size());
    for (const auto address : addresses) {
      payload += test::words(address);
    }
    data_.data += test::made_record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, payload);
  }
  void user_part(std::uint64_t time, std::string_view letters, std::uint64_t cookie,
                 std::uint32_t tid = kPid) {
    auto addresses = chain(letters);
    std::erase(addresses, static_cast<std::uint64_t>(PERF_CONTEXT_USER));
    data_.data += test::made_deferred_chain(
        cookie, addresses, test::words(kPid | std::uint64_t{tid} << 32U, time, kClock));
  }
  void end_round() { data_.data += test::made_record(perfdata::kFinishedRound, 0, ""); }
};

TEST_F(DeferredUserParts, AreInsertedIntoTheirSamples) {
  deferring_sample(100, "k", 1);
  deferring_sample(110, "", 1);
  user_part(120, "cdE", 1);
  sample(130, "kd");
  EXPECT_THAT(woven(), ElementsAre("kcdE", "cdE", "kd"));
  EXPECT_EQ(summary_.no_user_part, 0U);
  EXPECT_EQ(summary_.samples, 3U);
}

TEST_F(DeferredUserParts, LeaveNoTraceInTheFile) {
  deferring_sample(100, "k", 1);
  user_part(120, "cdE", 1);
  data_.features[12] = data_.description();
  weave();
  auto input = output();
  EXPECT_TRUE(std::ranges::none_of(input.events(), &perfdata::Event::defers_user_chains));
  EXPECT_EQ(input.events()[0].attr.sample_id_all, 1U);
  perfdata::Sample sample;
  std::size_t samples = 0;
  while (const auto record = input.next()) {
    EXPECT_NE(record->type, perfdata::kCallchainDeferred);
    if (input.parse(*record, sample)) {
      ++samples;
      EXPECT_THAT(sample.chain, Not(Contains(kContextUserDeferred)));
      EXPECT_THAT(sample.chain, Contains(static_cast<std::uint64_t>(PERF_CONTEXT_USER)));
    }
  }
  EXPECT_EQ(samples, 1U);
}

TEST_F(DeferredUserParts, BelongToAThreadAndACookie) {
  deferring_sample(100, "k", 1, kPid);
  deferring_sample(101, "k", 1, kPid + 1);
  deferring_sample(102, "k", 2, kPid + 1);
  user_part(200, "c", 2, kPid + 1);
  user_part(201, "d", 1, kPid + 1);
  user_part(202, "E", 1, kPid);
  EXPECT_THAT(woven(), ElementsAre("kE", "kd", "kc"));
}

// The thread has returned to user space on another processor, whose buffer perf read first.
TEST_F(DeferredUserParts, MayPrecedeTheirSamplesByARound) {
  user_part(200, "E", 3);
  user_part(200, "c", 1);
  user_part(200, "d", 2);
  deferring_sample(100, "k", 1);
  end_round();
  deferring_sample(110, "k", 2);
  end_round();
  deferring_sample(120, "k", 3);
  EXPECT_THAT(woven(), ElementsAre("kc", "kd", "k[no deferred callchain]"));
}

TEST_F(DeferredUserParts, MayFollowManyRoundsLater) {
  deferring_sample(100, "k", 1);
  for (std::uint64_t i = 2; i < 100; ++i) {
    deferring_sample(100 * i, "k", i, kPid + 1);
    end_round();
    user_part(100 * i + 1, "d", i, kPid + 1);
  }
  user_part(20000, "c", 1);
  const auto chains = woven();
  EXPECT_EQ(chains.front(), "kc");
  EXPECT_EQ(std::ranges::count(chains, "kd"), 98);
}

TEST_F(DeferredUserParts, AreMarkedIfLost) {
  deferring_sample(100, "k", 1);
  user_part(120, "c", 2);
  raw_sample(130, {PERF_CONTEXT_KERNEL, kKernel, kContextUserDeferred});
  deferring_sample(140, "", 3);
  user_part(150, "", 3);
  EXPECT_THAT(woven(), ElementsAre("k[no deferred callchain]", "k[no deferred callchain]",
                                   "[no deferred callchain]"));
  EXPECT_EQ(summary_.no_user_part, 3U);
  EXPECT_THAT(summary_.dropped, testing::IsEmpty());
}

TEST_F(DeferredUserParts, GetPythonFrames) {
  context_.interpreters = {
      {kPid, {{.evaluator = {{.begin = kEvaluator, .end = kEvaluator + 0x1000}}}}}};
  deferring_sample(100, "k", 1);
  record(100, python({"ab", "x"}));
  user_part(120, "cEcEc", 1);
  deferring_sample(200, "k", 2);  // was lost
  record(200, python({"ab", "x"}));
  EXPECT_THAT(woven(), ElementsAre("kcExcEbac", "k[no deferred callchain]xba"));
}

TEST_F(DeferredUserParts, AreMissingIfTheirRecordIsDamaged) {
  deferring_sample(100, "k", 1);
  data_.data += test::made_record(perfdata::kCallchainDeferred, 0, test::words(1, 1000, 0x10));
  data_.data += test::made_record(perfdata::kCallchainDeferred, 0, test::words(1));
  EXPECT_THAT(woven(), ElementsAre("k[no deferred callchain]"));
}

TEST_F(DeferredUserParts, AreNotCopiedForADamagedSample) {
  data_.data +=
      test::made_record(PERF_RECORD_SAMPLE, 0, test::words(kClock, kCode, kTask, 100, 1000));
  EXPECT_THAT(woven(), ElementsAre());
  EXPECT_EQ(summary_.unreadable, 1U);
}

class DeferredChainsInLittleMemory : public DeferredUserParts {
 protected:
  static constexpr std::size_t kRoomForTwo = 500;
  [[nodiscard]] DeferredChains opened() const {
    return DeferredChains{std::get<perfdata::Input>(perfdata::Input::open(data_.file(), "made")),
                          kRoomForTwo};
  }
};

TEST_F(DeferredChainsInLittleMemory, AreFoundNearby) {
  data_.data.clear();
  for (std::uint64_t i = 0; i < 10; ++i) {
    user_part(100 + i, "c", i);
  }
  auto chains = opened();
  EXPECT_NE(chains.find({.tid = kPid, .cookie = 0}), nullptr);
  EXPECT_NE(chains.find({.tid = kPid, .cookie = 1}), nullptr);
  EXPECT_FALSE(chains.full());
  EXPECT_EQ(chains.find({.tid = kPid, .cookie = 9}), nullptr);
  EXPECT_TRUE(chains.full());
  auto input = std::get<perfdata::Input>(perfdata::Input::open(data_.file(), "made"));
  std::uint64_t cookie = 0;
  while (const auto record = input.next()) {
    chains.pass(*record);
    EXPECT_NE(chains.find({.tid = kPid, .cookie = cookie}), nullptr) << cookie;
    ++cookie;
  }
  EXPECT_EQ(cookie, 10U);
  EXPECT_EQ(chains.find({.tid = kPid, .cookie = 0}), nullptr);
  EXPECT_FALSE(chains.full()) << "the end of the file";
}

}  // namespace
}  // namespace pyinject::weave
