// The asyncio task that a thread runs, as the BPF program sees it.
#include "integration/bpf_sampling.hpp"
#include "pyinject/base/deadline.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <vector>

namespace pyinject::test {
namespace {

using testing::IsEmpty;

class BpfTasks : public BpfSampling {
 protected:
  void SetUp() override {
    if (!since(14)) {
      GTEST_SKIP() << "it does not tell where its tasks are";
    }
  }
  static bool in_task(const sample::Stack& stack) { return !stack.task.empty(); }
};

// Each task awaits its own function, which has the name of the task.
TEST_P(BpfTasks, HaveTheirNamesAlsoWhereEarlierOnesWere) {
  PythonProcess python{GetParam(), std::string{kReady} + R"(
import asyncio, time
def work(name):
    scope = {'time': time}
    exec(f'''
async def {name}():
    end = time.monotonic() + 0.003
    while time.monotonic() < end:
        pass
''', scope)
    return scope[name]()
async def serve():
    number = 0
    while True:
        names = [f'handle_request_from_client_{number + i:08}' for i in range(50)]
        number += 50
        await asyncio.gather(*(asyncio.create_task(work(name), name=name) for name in names))
ready()
asyncio.run(serve())
)"};
  open({.tasks = true});
  sample(python.pid());
  constexpr std::string_view kPrefix = "handle_request_";
  // The function of a running task; while its coroutine is created, there is no task yet.
  const auto innermost = [this](const sample::Stack& stack) {
    const bool made = text(stack).find(" work ") != std::string::npos;
    return stack.frames.empty() || made ? std::string{} : names_[stack.frames.front().code];
  };
  collect(1500, [&](const auto& stack) { return innermost(stack).starts_with(kPrefix); });
  std::set<std::string> seen;
  std::vector<std::string> wrong;
  for (const auto& stack : stacks_) {
    if (const auto name = innermost(stack); name.starts_with(kPrefix)) {
      seen.insert(name);
      if (stack.task != name) {
        wrong.push_back(fmt::format("{} in [{}]", text(stack), stack.task));
      }
    }
  }
  EXPECT_THAT(wrong, IsEmpty());
  EXPECT_GT(seen.size(), 100U);
}

TEST_P(BpfTasks, HaveAsynciosNamesIfUnnamed) {
  PythonProcess python{GetParam(), std::string{kReady} + R"(
import asyncio
async def main():
    spin()
asyncio.run(main())
)"};
  open({.gil = true, .tasks = true});
  sample(python.pid());
  collect(20);
  EXPECT_EQ(std::ranges::count(stacks_, "Task-1", &sample::Stack::task), std::ssize(stacks_));
}

// In 3.14, tasks are in a separate module.
TEST_P(BpfTasks, AreSeenIfAsyncioIsLoadedLater) {
  PythonProcess python{GetParam(), std::string{kReady} + R"(
ready()
sys.stdin.readline()
import asyncio
async def main():
    spin()
asyncio.run(main())
)"};
  open({.tasks = true});
  sample(python.pid());
  EXPECT_EQ(layout_.tasks_later, !since(15));
  sampler_->look_for_modules();  // not loaded yet
  python.send_line("go");
  ASSERT_EQ(python.read_line(), "ready");
  sampler_->look_for_modules();
  collect(20, in_task);
}

// The thread's own state in the newest interpreter has no task.
TEST_P(BpfTasks, AreThoseOfAnyInterpreterThatTheThreadRuns) {
  PythonProcess python{GetParam(), std::string{kReady} + R"(
import asyncio, _interpreters
async def main():
    _interpreters.run_string(_interpreters.create(), '''
print("ready", flush=True)
while True:
    pass
''')
asyncio.run(main())
)"};
  open({.tasks = true});
  sample(python.pid());
  collect(20, in_task);
}

INSTANTIATE_TEST_SUITE_P(Pythons, BpfTasks, testing::ValuesIn(interpreters({.only_read = true})),
                         InterpreterName{});

}  // namespace
}  // namespace pyinject::test
