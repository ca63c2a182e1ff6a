// Python stacks compared with the program's own view, on every interpreter.
#include "base/file.hpp"
#include "integration/detection.hpp"
#include "integration/expected_stack.hpp"
#include "procfs/status.hpp"
#include "procfs/tasks.hpp"
#include "support/covering.hpp"
#include "support/untouched.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>

#include <unistd.h>

namespace pyinject::test {
namespace {

class PythonStackReaderTest : public DetectionTest {};

// Functions called by C code are named *_entry: each starts a new group.
constexpr auto kShapes = R"(
import asyncio, functools
class Outer:
    class Inner:
        def method(self, go):
            def nested(x):
                return go(x)
            return (lambda x: nested(x))(1)
def by_sort(x):
    return sorted([x],
                  key=key_entry)
def key_entry(x):
    return functools.reduce(
        reduce_entry, [x, x])
def reduce_entry(x, y):
    return list(map(lambda_entry, [x]))
lambda_entry = lambda x: list(
    generator_entry(x))
lambda_entry.__code__ = lambda_entry.__code__.replace(co_qualname='lambda_entry')
def generator_entry(x):
    yield from inner_generator(x)
def inner_generator(x):

    yield asyncio.run(coroutine_entry(x))
async def coroutine_entry(x):
    return await inner_coroutine(x)
async def inner_coroutine(x):
    async with Context():
        return 1
class Context:
    async def __aenter__(self):
        recurse(500)
    async def __aexit__(self, *failure):
        pass
def recurse(n):
    if n == 0:
        pause()
    else:
        recurse(n - 1)
Outer.Inner().method(by_sort)
)";

TEST_P(PythonStackReaderTest, NamesLinesAndGroupsAreRight) {
  PythonProcess python{GetParam(), std::string{kTelling} + kShapes};
  const auto expected = read_told(python);
  auto reader = stack_reader(python.pid());
  const Untouched before{python.pid()};
  const auto stacks = reader.read();
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_EQ(stacks.front().tid.value(), python.pid().value());
  EXPECT_TRUE(stacks.front().complete);
  const auto found = told(reader, stacks.front());
  ASSERT_EQ(found.size(), expected.frames.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i], expected.frames[i]) << i;
    if (found[i].file == "<string>") {
      const auto& name = found[i].qualname;
      EXPECT_EQ(stacks.front().frames[i].outermost, name.ends_with("_entry") || name == "<module>")
          << name;
    }
  }
  const auto again = reader.read(std::vector{stacks.front().tid});
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again.front().frames, stacks.front().frames);
  EXPECT_EQ(told(reader, again.front()), found);
  EXPECT_EQ(reader.losses().changed + reader.losses().unreadable + reader.losses().interpreters,
            0U);
  EXPECT_THAT(before.differences(), testing::IsEmpty());
}

TEST_P(PythonStackReaderTest, DoesNotShowWhatPythonHides) {
  // Once specialized, a call of a class goes through an internal frame of CPython.
  PythonProcess python{GetParam(), std::string{kTelling} + R"(
class Made:
    def __init__(self, go):
        go()
def make(go):
    Made(go)
for _ in range(1000):
    make(int)
make(pause)
)"};
  const auto expected = read_told(python);
  auto reader = stack_reader(python.pid());
  const auto stacks = reader.read();
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_EQ(told(reader, stacks.front()), expected.frames);
}

// throw() of an outer generator makes it the caller of the inner one without starting an evaluator.
TEST_P(PythonStackReaderTest, ReadsGeneratorsThatAreThrownInto) {
  PythonProcess python{GetParam(), std::string{kTelling} + R"(
def inner():
    try:
        yield
    except ValueError:
        pause()
        yield
def middle():
    yield from inner()
def outer():
    yield from middle()
def throw(generator):
    generator.throw(ValueError())
generator = outer()
next(generator)
throw(generator)
)"};
  const auto expected = read_told(python);
  ASSERT_EQ(expected.frames.size(), 6U);
  auto reader = stack_reader(python.pid());
  const auto stacks = reader.read();
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_EQ(told(reader, stacks.front()), expected.frames);
}

TEST_P(PythonStackReaderTest, ReadsNamesInAnyScript) {
  PythonProcess python{GetParam(), std::string{kTelling} + R"(
def define(name, file):
    found = {}
    exec(compile(f'def {name}(go, *rest): go(*rest)', file, 'exec'), found)
    return found[name]
functions = [define('caf\u00e9', '\u00fc.py'), define('\u0436\u6f22', '\u65e5\u672c.py'),
             define('\U00010400x', '\U0001f40d.py'), define('plain', 'a\udc80.py'),
             define('x' * 70000, 'long.py')]
functions[0](*functions[1:], pause)
)"};
  read_told(python);
  auto reader = stack_reader(python.pid());
  const auto stacks = reader.read();
  ASSERT_EQ(stacks.size(), 1U);
  const auto found = told(reader, stacks.front());
  ASSERT_EQ(found.size(), 7U);
  EXPECT_EQ(found[1], (ToldFrame{std::string(65536, 'x'), "long.py", 1})) << "cut";
  EXPECT_EQ(found[2], (ToldFrame{"plain", "a\xef\xbf\xbd.py", 1}));
  EXPECT_EQ(found[3], (ToldFrame{"\xf0\x90\x90\x80x", "\xf0\x9f\x90\x8d.py", 1}));
  EXPECT_EQ(found[4], (ToldFrame{"\xd0\xb6\xe6\xbc\xa2", "\xe6\x97\xa5\xe6\x9c\xac.py", 1}));
  EXPECT_EQ(found[5], (ToldFrame{"caf\xc3\xa9", "\xc3\xbc.py", 1}));
}

// Five threads, each in its own function, print their tids.
constexpr auto kThreads = R"(
def make(n):
    def wait(gate):
        os.write(1, f'{threading.get_native_id()} {n}\n'.encode()); os.read(gate, 1)
    wait.__code__ = wait.__code__.replace(co_qualname=f'wait_{n}')
    return wait
gates = os.pipe()
print('ready', flush=True)
for n in range(5):
    threading.Thread(target=make(n), args=(gates[0],), daemon=True).start()
os.write(1, b'all\n'); sys.stdin.read()
)";

void expect_five_threads(PythonProcess& python, base::Pid pid) {
  std::map<long, std::string> functions;  // of each thread, by tid
  for (int lines = 0; lines < 6; ++lines) {
    const auto line = python.read_line();
    if (const auto blank = line.find(' '); blank != std::string::npos) {
      functions.emplace(std::stol(line.substr(0, blank)), "wait_" + line.substr(blank + 1));
    }
  }
  auto reader = stack_reader(pid);
  const auto stacks = reader.read();
  ASSERT_EQ(stacks.size(), 6U);
  std::vector<base::Tid> tids;
  for (const auto& stack : stacks) {
    tids.push_back(stack.tid);
    const auto status = procfs::read_status(pid, stack.tid);
    ASSERT_TRUE(status.has_value());
    const long native = status->namespace_pids.back();
    const auto names = qualnames(reader, stack);
    if (stack.tid.value() == pid.value()) {
      EXPECT_THAT(names, testing::ElementsAre("<module>"));
      continue;
    }
    EXPECT_EQ(names.front(), functions[native]);
    EXPECT_EQ(names.back(), "Thread._bootstrap");
    EXPECT_TRUE(stack.frames.back().outermost);
  }
  EXPECT_THAT(tids, testing::UnorderedElementsAreArray(procfs::list_tasks(pid)));

  const std::vector<base::Tid> two{tids.at(1), tids.at(3), base::Tid{1}};
  const auto some = reader.read(two);
  ASSERT_EQ(some.size(), 2U);
  for (const auto& stack : some) {
    EXPECT_TRUE(stack.tid == tids.at(1) || stack.tid == tids.at(3));
    const auto all = std::ranges::find(stacks, stack.tid, &python::ThreadStack::tid);
    EXPECT_EQ(stack.frames, all->frames);
  }
}

TEST_P(PythonStackReaderTest, TellsThreadsApart) {
  PythonProcess python{GetParam(), std::string{"import os, sys, threading"} + kThreads};
  expect_five_threads(python, python.pid());
}

TEST_P(PythonStackReaderTest, KnowsThreadsOfAnotherPidNamespaceByOurNumbers) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "namespaces need root";
  }
  PythonProcess python{wrapped(GetParam(), {"unshare", "--pid", "--fork", "--kill-child"}),
                       std::string{"import os, sys, threading"} + kThreads};
  const auto children =
      base::read_file(fmt::format("/proc/{0}/task/{0}/children", python.pid().value()));
  ASSERT_TRUE(children.has_value());
  expect_five_threads(python, base::Pid{static_cast<pid_t>(std::stol(*children))});
}

// CPython is not told of the fork: its thread state keeps the parent's native id.
TEST_P(PythonStackReaderTest, ReadsAProcessThatCForked) {
  PythonProcess python{GetParam(), std::string{kTelling} + R"(
import ctypes, signal
def worker():
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG
    pause()
def other():
    signal.pause()
threading.Thread(target=other, daemon=True).start()
worker() if ctypes.PyDLL(None).fork() == 0 else signal.pause()
)"};
  const auto expected = read_told(python);
  const base::Pid child{static_cast<int>(expected.native_id)};
  ASSERT_NE(child, python.pid());
  auto reader = stack_reader(child);
  const auto stacks = reader.read();
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_EQ(stacks.front().tid.value(), child.value());
  EXPECT_EQ(told(reader, stacks.front()), expected.frames);
}

TEST_P(PythonStackReaderTest, SeesThreadsThatComeAndGo) {
  PythonProcess python{GetParam(), std::string{kTelling} + R"(
os.write(1, told())
for _ in range(3):
    sys.stdin.readline()
    thread = threading.Thread(target=pause)
    thread.start()
    thread.join()
    os.write(1, b'joined\n')
)"};
  read_told(python);
  auto reader = stack_reader(python.pid());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(reader.read(procfs::list_tasks(python.pid())).size(), 1U);
    python.send_line("");
    ASSERT_EQ(python.read_line(), "ready");
    const auto expected = read_told(python);
    const auto stacks = reader.read(std::vector{base::Tid{static_cast<pid_t>(expected.native_id)}});
    ASSERT_EQ(stacks.size(), 1U);
    EXPECT_EQ(told(reader, stacks.front()), expected.frames);
    python.send_line("");
    ASSERT_EQ(python.read_line(), "joined");
  }
}

TEST_P(PythonStackReaderTest, NamesOnlyCodeObjects) {
  PythonProcess python{GetParam(), std::string{kTelling} + "pause()\n"};
  read_told(python);
  auto reader = stack_reader(python.pid());
  const auto stacks = reader.read();
  ASSERT_EQ(stacks.size(), 1U);
  const auto& frame = stacks.front().frames.front();
  EXPECT_EQ(reader.names(frame.code)->qualname, "pause");
  EXPECT_EQ(reader.names(frame.code)->first_line, 11U);
  EXPECT_EQ(reader.names(frame.address), std::nullopt);
  EXPECT_EQ(reader.names(base::RemoteAddress{16}), std::nullopt);
  auto other = frame;
  ++other.code_serial;
  EXPECT_EQ(reader.names(other), std::nullopt);

  python.terminate();
  EXPECT_TRUE(reader.read().empty());
}

COVER(PythonStackReaderTest, kEveryVersion);
INSTANTIATE_TEST_SUITE_P(Pythons, PythonStackReaderTest,
                         testing::ValuesIn(interpreters({.only_read = true, .both_ways = true})),
                         InterpreterName{});

}  // namespace
}  // namespace pyinject::test
