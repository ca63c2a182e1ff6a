#include "python/layout/runtime_view.hpp"

#include "python/stacks/thread_list.hpp"
#include "unit/memory/fake_memory.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include <unistd.h>

namespace pyinject::python {
namespace {

constexpr std::uint64_t kRuntime = 0x10000;
constexpr std::uint64_t kInterpreters = 0x20000;
constexpr std::uint64_t kThreads = 0x1000000;
constexpr std::uint64_t kThreadBytes = 64;

// Synthetic structures of a few words.
RuntimeLayout layout() {
  RuntimeLayout layout;
  layout.interpreters_main = 16;
  layout.next_interpreter = 8;
  layout.threads_head = 16;
  layout.next_thread = 8;
  layout.thread_interpreter = 16;
  layout.thread_id = 24;
  layout.stack.native_thread_id = 32;
  return layout;
}

class MadeLists : public testing::Test {
 protected:
  static std::uint64_t interpreter(std::uint64_t number) { return kInterpreters + 64 * number; }

  // COUNT interpreters; the last one links to the one with the index NEXT.
  void put_interpreters(std::uint64_t count, std::uint64_t next) {
    memory_.put(kRuntime + 8, interpreter(0));
    for (std::uint64_t number = 0; number < count; ++number) {
      memory_.put(interpreter(number) + 8, interpreter(number + 1 < count ? number + 1 : next));
      memory_.put(interpreter(number) + 16, std::uint64_t{0});
    }
  }

  void put_threads(std::uint64_t whose, std::uint64_t count, std::uint64_t native_id) {
    memory_.put(interpreter(whose) + 16, kThreads);
    for (std::uint64_t number = 0; number < count; ++number) {
      const auto at = kThreads + number * kThreadBytes;
      memory_.put(at + 8, number + 1 < count ? at + kThreadBytes : std::uint64_t{0});
      memory_.put(at + 16, interpreter(whose));
      memory_.put(at + 24, std::uint64_t{1});
      memory_.put(at + 32, native_id);
    }
  }

  test::FakeMemory memory_;
  RuntimeLayout layout_ = layout();
};

using RuntimeViewOfMadeLists = MadeLists;
using ThreadListOfMadeLists = MadeLists;

TEST_F(RuntimeViewOfMadeLists, ListsEachInterpreterOfACircleOnce) {
  put_interpreters(3, 1);
  const RuntimeView view{memory_, layout_, base::RemoteAddress{kRuntime}};
  EXPECT_EQ(view.interpreters().size(), 3U);
}

TEST_F(RuntimeViewOfMadeLists, ListsAnInterpreterThatIsItsOwnNextOnce) {
  put_interpreters(1, 0);
  const RuntimeView view{memory_, layout_, base::RemoteAddress{kRuntime}};
  EXPECT_EQ(view.interpreters().size(), 1U);
}

TEST_F(ThreadListOfMadeLists, KeepsNoStateOfAThreadThatDoesNotExist) {
  put_interpreters(1, 0);
  put_threads(0, 100, 4'000'000'000);
  ThreadList list{memory_, layout_, base::RemoteAddress{kRuntime},
                  ThreadNumbers{base::Pid{::getpid()}}};
  EXPECT_EQ(list.update(), 0U);
  EXPECT_TRUE(list.threads().empty());
}

TEST_F(ThreadListOfMadeLists, KeepsAFewStatesOfOneThread) {
  put_interpreters(1, 0);
  put_threads(0, 1000, static_cast<std::uint64_t>(::getpid()));
  ThreadList list{memory_, layout_, base::RemoteAddress{kRuntime},
                  ThreadNumbers{base::Pid{::getpid()}}};
  EXPECT_EQ(list.update(), 0U);
  EXPECT_FALSE(list.threads().empty());
  EXPECT_LE(list.threads().size(), 64U);
}

TEST_F(ThreadListOfMadeLists, ReadsSoManyStatesOfAllInterpretersTogether) {
  constexpr std::uint64_t kMany = 9000;
  put_interpreters(20, 0);
  for (std::uint64_t number = 0; number < 20; ++number) {
    memory_.put(interpreter(number) + 16, kThreads);
  }
  put_threads(0, kMany, 4'000'000'000);
  ThreadList list{memory_, layout_, base::RemoteAddress{kRuntime},
                  ThreadNumbers{base::Pid{::getpid()}}};
  EXPECT_GT(list.update(), 0U);
  EXPECT_LT(memory_.reads(), 5 * kMany);
}

}  // namespace
}  // namespace pyinject::python
