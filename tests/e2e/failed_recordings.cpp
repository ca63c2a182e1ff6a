#include "e2e/failed_recordings.hpp"

#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/cpu_time.hpp"
#include "support/paths.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace pyinject::test {

std::string working_program(const std::string& meanwhile) {
  return R"py(
import select, sys
def first():
    for _ in range(1000):
        pass
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    first()
sys.stdin.readline()
names = {}
exec("def second():\n  for _ in range(1000): pass\ndef third():\n  while True: second()", names)
)py" + meanwhile +
         R"py(
print("new", flush=True)
names["third"]()
)py";
}

void FailedRecordings::SetUp() {
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
    GTEST_SKIP() << lacks;  // without BPF, the trampoline fails in other ways
  }
}

std::string FailedRecordings::map() const {
  return fmt::format("{}/tmp/perf-{}.map", GetParam().python.root, pid());
}

std::vector<std::string> FailedRecordings::arguments(std::vector<std::string> more,
                                                     const std::string& output) const {
  std::vector<std::string> words{
      "--engine", GetParam().engine, "-F", "999",
      "-e",       "cpu-clock",       "-o", output.empty() ? data() : output};
  words.insert(words.end(), more.begin(), more.end());
  words.insert(words.end(), {"-p", pid()});
  return words;
}

std::vector<std::string> FailedRecordings::record_until(const std::vector<std::string>& command,
                                                        std::vector<std::string> more) const {
  auto words = arguments(std::move(more));
  words.insert(words.begin(), "record");
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

void FailedRecordings::work() const {
  constexpr std::chrono::milliseconds kWorked{300};
  wait_for_cpu_time(process(), kWorked);
}

void FailedRecordings::limit(__rlimit_resource resource, rlim_t value) const {
  rlimit limits{};
  ASSERT_EQ(::prlimit(process().value(), resource, nullptr, &limits), 0);
  limits.rlim_cur = value;
  ASSERT_EQ(::prlimit(process().value(), resource, &limits, nullptr), 0);
}

std::string FailedRecordings::record_new_functions(const std::string& program) {
  auto& target = start(program);
  RunningRecord running{arguments()};
  work();
  target.send_line("more");
  EXPECT_EQ(target.read_line(), "new");
  work();
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  return running.child().err();
}

void FailedRecordings::expect_refused(const std::vector<std::string>& words,
                                      const std::vector<std::string>& prefix) const {
  auto command = prefix;
  command.push_back(tool());
  const auto record = record_until();
  command.insert(command.end(), record.begin(), record.end());
  const auto result = run(command);
  EXPECT_EQ(result.status, ExitStatus{.code = 125}) << result.err;
  for (const auto& word : words) {
    EXPECT_THAT(result.err, testing::HasSubstr(word));
  }
  EXPECT_FALSE(std::filesystem::exists(data()));
}

void FailedRecordings::expect_readers_repeat(const std::string& messages,
                                             const std::string& words) const {
  const auto at = messages.find(words);
  ASSERT_NE(at, std::string::npos) << "no " << words << " in: " << messages;
  const auto begin = messages.rfind('\n', at) + 1;  // 0 on the first line
  expect_readers_say(testing::HasSubstr(messages.substr(begin, messages.find('\n', at) - begin)));
}

void FailedRecordings::expect_readers_say(const testing::Matcher<std::string>& message,
                                          const std::string& file) const {
  const std::vector<std::vector<std::string>> verbs{
      {"report"},
      {"flamegraph", "-o", directory_ / "page.html"},
      {"export", "-f", "folded", "-o", directory_ / "folded"}};
  for (auto verb : verbs) {
    verb.push_back(file.empty() ? data() : file);
    EXPECT_THAT(run_tool(verb).err, message) << verb.front();
  }
}

}  // namespace pyinject::test
