#include "why/wait_use.hpp"

#include "unit/why/made_recording.hpp"

#include <gtest/gtest.h>

namespace pyinject::why {
namespace {

class WaitUseTest : public testing::Test, protected MadeRecording {
 protected:
  Use use(KernelWork work, sample::Gil gil = sample::Gil::kNone, std::uint32_t stack = 0,
          const Sighting* sighting = nullptr) {
    return WaitUses{recording}
        .of({.work = work, .gil = gil, .stack = stack, .sighting = sighting})
        .use;
  }
};

TEST_F(WaitUseTest, AFutexOfTheGilIsTheGil) {
  EXPECT_EQ(use(KernelWork::kFutex, sample::Gil::kWaitedFor), Use::kGil);
  EXPECT_EQ(use(KernelWork::kFutex), Use::kFutex);
}

TEST_F(WaitUseTest, ASnapshotTellsALockFromAQueue) {
  Sighting seen{.work = KernelWork::kFutex};
  EXPECT_EQ(use(KernelWork::kFutex, sample::Gil::kNone, 0, &seen), Use::kFutex);
  seen.object = Sighting::Object::kLock;
  EXPECT_EQ(use(KernelWork::kFutex, sample::Gil::kNone, 0, &seen), Use::kLock);
  seen.object = Sighting::Object::kThread;
  EXPECT_EQ(use(KernelWork::kFutex, sample::Gil::kNone, 0, &seen), Use::kThread);
}

TEST_F(WaitUseTest, AWaitThatNoSnapshotSawIsLikeOneWithTheSameStack) {
  const auto seen = stack({"locked"});
  const auto other = stack({"other"});
  sighting(1, 5, KernelWork::kFutex, seen).object = Sighting::Object::kLock;
  EXPECT_EQ(use(KernelWork::kFutex, sample::Gil::kNone, seen), Use::kLock);
  EXPECT_EQ(use(KernelWork::kFutex, sample::Gil::kNone, other), Use::kFutex);
  EXPECT_EQ(use(KernelWork::kSleep, sample::Gil::kNone, seen), Use::kSleep);
}

TEST_F(WaitUseTest, TellsAServerFromAClient) {
  Sighting seen{.work = KernelWork::kNetwork, .connected = true};
  EXPECT_EQ(use(KernelWork::kNetwork, sample::Gil::kNone, 0, &seen), Use::kNetwork);
  seen.by_client = true;
  EXPECT_EQ(use(KernelWork::kNetwork, sample::Gil::kNone, 0, &seen), Use::kClient);
  EXPECT_EQ(use(KernelWork::kAccept), Use::kClient);
}

TEST_F(WaitUseTest, APollOfOneConnectionWaitsForThatServer) {
  Sighting seen{.work = KernelWork::kPoll};
  EXPECT_EQ(use(KernelWork::kPoll, sample::Gil::kNone, 0, &seen), Use::kPoll);
  seen.connected = true;
  EXPECT_EQ(use(KernelWork::kPoll, sample::Gil::kNone, 0, &seen), Use::kNetwork);
}

TEST_F(WaitUseTest, UsesTheSnapshotIfKernelNamesAreMissing) {
  Sighting seen{.work = KernelWork::kDisk};
  EXPECT_EQ(use(KernelWork::kUnknown, sample::Gil::kNone, 0, &seen), Use::kDisk);
  EXPECT_EQ(use(KernelWork::kUnknown), Use::kUnknown);
}

}  // namespace
}  // namespace pyinject::why
