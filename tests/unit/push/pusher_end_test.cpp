// More recordings than the pusher can export.
#include "support/asleep.hpp"
#include "support/profile_server.hpp"
#include "unit/push/pusher_fixture.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <semaphore>
#include <string>

#include <unistd.h>

namespace pyinject::push {
namespace {

using testing::HasSubstr;

class PusherEnd : public PusherTest {};

// The first export takes longer than the end allows, and a server hangs.
TEST_F(PusherEnd, IsBoundedAndCountsWhatItLeaves) {
  test::ProfileServer hanging{{"hang"}};
  auto all = options({"pyroscope=" + hanging.url()});
  all.export_patience = {};
  all.patience = std::chrono::milliseconds{10};
  fake::Logger logger;
  std::atomic<bool> finishing = false;
  std::counting_semaphore<> reads{0};
  const auto read = [&](const std::string& file) {
    reads.release();
    finishing.wait(false);
    test::wait_until_asleep(base::Pid{::getpid()});  // finish() waits for this thread
    return read_made(file);
  };
  Pusher pusher{all, read, made_labels, no_process, logger};
  for (int i = 0; i < 3; ++i) {
    pusher.add("web");
  }
  reads.acquire();
  finishing = true;
  finishing.notify_all();
  pusher.finish();
  EXPECT_THAT(logger.text(base::LogLevel::kWarning),
              HasSubstr("2 recordings are not pushed: not exported within 0 s of the end"));
  EXPECT_EQ(pusher.counts().dropped, 2U);
  EXPECT_EQ(pusher.counts().spooled, 1U) << "the one that was being exported";
}

TEST_F(PusherEnd, RecordingsThatFinishFasterThanTheirExportsAreDropped) {
  auto all = options({"pprof-dir=" + (directory() / "profiles")});
  fake::Logger logger;
  std::atomic<bool> go = false;
  std::counting_semaphore<> reads{0};
  const auto read = [&](const std::string& file) {
    reads.release();
    go.wait(false);
    return read_made(file);
  };
  Pusher pusher{all, read, made_labels, no_process, logger};
  pusher.add("web");
  reads.acquire();
  constexpr int kWaiting = 64;
  for (int i = 0; i < kWaiting + 1; ++i) {
    pusher.add("web");
  }
  EXPECT_THAT(logger.text(base::LogLevel::kWarning),
              HasSubstr("web is not pushed: recordings finish faster than they can be exported"));
  EXPECT_EQ(pusher.counts().dropped, 1U);
  go = true;
  go.notify_all();
}

}  // namespace
}  // namespace pyinject::push
