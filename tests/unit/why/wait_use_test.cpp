#include "why/wait_use.hpp"

#include "unit/why/made_recording.hpp"

#include <gtest/gtest.h>

namespace pyinject::why {
namespace {

class WaitUseTest : public testing::Test, protected MadeRecording {
 protected:
  Use use(Use work, sample::Gil gil = sample::Gil::kNone, std::uint32_t stack = 0,
          const Sighting* sighting = nullptr) {
    return WaitUses{recording}
        .of({.work = work, .gil = gil, .stack = stack, .sighting = sighting})
        .use;
  }
};

TEST_F(WaitUseTest, AFutexOfTheGilIsTheGil) {
  EXPECT_EQ(use(Use::kFutex, sample::Gil::kWaitedFor), Use::kGil);
  EXPECT_EQ(use(Use::kFutex), Use::kFutex);
}

TEST_F(WaitUseTest, ASnapshotTellsALockFromAQueue) {
  Sighting seen{.work = Use::kFutex};
  EXPECT_EQ(use(Use::kFutex, sample::Gil::kNone, 0, &seen), Use::kFutex);
  seen.object = Sighting::Object::kLock;
  EXPECT_EQ(use(Use::kFutex, sample::Gil::kNone, 0, &seen), Use::kLock);
  seen.object = Sighting::Object::kThread;
  EXPECT_EQ(use(Use::kFutex, sample::Gil::kNone, 0, &seen), Use::kThread);
}

TEST_F(WaitUseTest, AWaitThatNoSnapshotSawIsLikeOneWithTheSameStack) {
  const auto seen = stack({"locked"});
  const auto other = stack({"other"});
  sighting(1, 5, Use::kFutex, seen).object = Sighting::Object::kLock;
  EXPECT_EQ(use(Use::kFutex, sample::Gil::kNone, seen), Use::kLock);
  EXPECT_EQ(use(Use::kFutex, sample::Gil::kNone, other), Use::kFutex);
  EXPECT_EQ(use(Use::kSleep, sample::Gil::kNone, seen), Use::kSleep);
}

TEST_F(WaitUseTest, TellsAServerFromAClient) {
  Sighting seen{.work = Use::kNetwork, .connected = true};
  EXPECT_EQ(use(Use::kNetwork, sample::Gil::kNone, 0, &seen), Use::kNetwork);
  seen.by_client = true;
  EXPECT_EQ(use(Use::kNetwork, sample::Gil::kNone, 0, &seen), Use::kClient);
  EXPECT_EQ(use(Use::kClient), Use::kClient);
}

TEST_F(WaitUseTest, APollOfOneConnectionWaitsForThatServer) {
  Sighting seen{.work = Use::kPoll};
  EXPECT_EQ(use(Use::kPoll, sample::Gil::kNone, 0, &seen), Use::kPoll);
  seen.connected = true;
  EXPECT_EQ(use(Use::kPoll, sample::Gil::kNone, 0, &seen), Use::kNetwork);
}

TEST_F(WaitUseTest, UsesTheSnapshotIfKernelNamesAreMissing) {
  Sighting seen{.work = Use::kDisk};
  EXPECT_EQ(use(Use::kUnknown, sample::Gil::kNone, 0, &seen), Use::kDisk);
  EXPECT_EQ(use(Use::kUnknown), Use::kUnknown);
}

}  // namespace
}  // namespace pyinject::why
