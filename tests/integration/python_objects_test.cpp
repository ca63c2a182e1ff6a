// asyncio's tasks, locks and thread names compared with the program's own view, on every
// interpreter.
#include "base/text.hpp"
#include "integration/detection.hpp"
#include "integration/expected_stack.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "python/objects/deadlocks.hpp"
#include "python/objects/object_reader.hpp"
#include "python/objects/thread_comms.hpp"
#include "support/covering.hpp"
#include "support/patience.hpp"
#include "support/untouched.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include <sched.h>

namespace pyinject::test {
namespace {

class PythonObjectsTest : public DetectionTest {};

python::ObjectReader object_reader(base::Pid pid) {
  auto made = python::ObjectReader::of(observe(pid));
  if (const auto* why = std::get_if<std::string>(&made)) {
    throw base::Error{"no object reader: " + *why};
  }
  return std::get<python::ObjectReader>(std::move(made));
}

TEST_P(PythonObjectsTest, ThreadsHaveTheirNames) {
  PythonProcess python{GetParam(), R"(
import os, sys, threading
names = ['plain', 'caf\u00e9', '\u0436\u6f22', '\U0001f40d', 'lone\udc80', '', 'x' * 300]
started = threading.Barrier(len(names) + 1)
def wait():
    started.wait()
    threading.Event().wait()
threads = [threading.Thread(target=wait, name=name, daemon=True) for name in names]
for thread, name in zip(threads, names):
    thread.start()
    thread.name = name  # an empty one is a default name before
started.wait()
threads[0].more = 'its attributes are in a dictionary'
vars(threads[1])
print('ready', flush=True)
for thread in [threading.main_thread(), *threads]:
    sys.stdout.buffer.write(f'{thread.native_id}\t{thread.name}\n'.encode(errors='replace'))
sys.stdout.flush()
sys.stdin.read()
)"};
  std::map<std::string, std::string> expected;
  for (int i = 0; i < 8; ++i) {
    const auto line = python.read_line();
    const auto fields = base::split(line, '\t');
    expected.emplace(fields.at(0), fields.at(1) == "lone?" ? "lone\xef\xbf\xbd" : fields.at(1));
  }
  auto reader = object_reader(python.pid());
  const Untouched before{python.pid()};
  std::map<std::string, std::string> found;
  for (const auto& thread : reader.thread_names()) {
    EXPECT_TRUE(thread.certain);
    found.emplace(std::to_string(thread.tid.value()), thread.name);
  }
  EXPECT_EQ(found, expected);
  EXPECT_THAT(before.differences(), testing::IsEmpty());
}

TEST_P(PythonObjectsTest, ThreadsGetTheNamesThatTheKernelLacks) {
  PythonProcess python{GetParam(), R"(
import _thread, ctypes, sys, threading
started = threading.Barrier(4)
def wait():
    if threading.current_thread().name == 'chosen':
        ctypes.CDLL(None).prctl(15, b'own name', 0, 0, 0)
    threading.get_native_id()
    started.wait()
    threading.Event().wait()
for name in ['a reader of the queue', 'chosen']:
    threading.Thread(target=wait, name=name, daemon=True).start()
_thread.start_new_thread(wait, ())
started.wait()
print('ready', flush=True)
sys.stdin.read()
)"};
  auto made = python::ThreadComms::of(observe(python.pid()));
  if (GetParam().minor >= 14) {
    EXPECT_FALSE(made.has_value()) << "these versions set the names themselves";
    return;
  }
  ASSERT_TRUE(made.has_value());
  const Untouched before{python.pid()};
  for (int look = 0; look < 2; ++look) {
    std::vector<std::string> names;
    for (const auto& thread : made->read()) {
      EXPECT_NE(thread.tid.value(), python.pid().value());
      names.push_back(thread.name);
    }
    EXPECT_THAT(names, testing::ElementsAre("a reader of the")) << "look " << look;
  }
  EXPECT_THAT(before.differences(), testing::IsEmpty());
}

// Each task: TASK name state, its frames, its awaiters.
constexpr auto kAsyncTelling = R"(
import asyncio, os, sys, threading
def chain(task):
    frames, at = [], task.get_coro()
    while at is not None:
        frame = next((frame for frame in (getattr(at, kind + '_frame', None) for kind in ('cr', 'gi', 'ag'))
                      if frame is not None), None)
        if frame is None:
            break
        frames.append(f'{frame.f_code.co_qualname}\t{frame.f_code.co_filename}\t{frame.f_lineno}')
        at = next((awaited for awaited in (getattr(at, name, None)
                                           for name in ('cr_await', 'gi_yieldfrom', 'ag_await'))
                   if awaited is not None), None)
    return frames[::-1]
def tell(tasks, current):
    text = 'ready\n'
    for task in tasks:
        state = 'running' if task is current else 'pending'
        text += f'TASK\t{task.get_name()}\t{state}\n'
        if task is not current:
            text += ''.join(frame + '\n' for frame in chain(task))
    os.write(1, (text + 'end\n').encode())
)";

struct ToldTask {
  std::string name;
  std::string state;
  std::vector<ToldFrame> frames;
  auto operator<=>(const ToldTask& other) const { return name <=> other.name; }
  bool operator==(const ToldTask&) const = default;
};
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const ToldTask& task, std::ostream* stream) {
  *stream << task.name << ' ' << task.state;
  for (const auto& frame : task.frames) {
    *stream << ", ";
    PrintTo(frame, stream);
  }
}

std::vector<ToldTask> read_tasks(PythonProcess& python) {
  std::vector<ToldTask> tasks;
  for (auto line = python.read_line(); line != "end"; line = python.read_line()) {
    const auto fields = base::split(line, '\t');
    if (fields.at(0) == "TASK") {
      tasks.push_back(
          {.name = std::string{fields.at(1)}, .state = std::string{fields.at(2)}, .frames = {}});
    } else {
      tasks.back().frames.push_back(
          {.qualname = std::string{fields.at(0)},
           .file = std::string{fields.at(1)},
           .line = static_cast<std::uint32_t>(std::stoul(std::string{fields.at(2)}))});
    }
  }
  std::ranges::sort(tasks);
  return tasks;
}

std::vector<ToldFrame> told_tasks(const python::AsyncTask& task) {
  std::vector<ToldFrame> frames;
  for (const auto& frame : task.awaits) {
    frames.push_back(
        {.qualname = frame.names.qualname, .file = frame.names.file, .line = frame.line});
  }
  return frames;
}

// Without the frames of those that run.
std::vector<ToldTask> told_tasks(const python::AsyncTasks& tasks) {
  std::vector<ToldTask> found;
  for (const auto& task : tasks.tasks) {
    const bool runs = task.state == python::AsyncTask::State::kRunning;
    found.push_back({.name = task.name,
                     .state = std::string{python::name(task.state)},
                     .frames = runs ? std::vector<ToldFrame>{} : told_tasks(task)});
  }
  std::ranges::sort(found);
  return found;
}

// Each task's awaiters, by name.
std::map<std::string, std::set<std::string>> awaiters(const python::AsyncTasks& tasks) {
  std::map<std::uint64_t, std::string> names;
  for (const auto& task : tasks.tasks) {
    names.emplace(task.address, task.name);
  }
  std::map<std::string, std::set<std::string>> found;
  for (const auto& task : tasks.tasks) {
    for (const auto awaiter : task.awaited_by) {
      found[task.name].insert(names.contains(awaiter) ? names[awaiter] : "?");
    }
  }
  return found;
}

constexpr auto kManyTasks = R"(
class Awaitable:
    def __init__(self, what):
        self.what = what
    def __await__(self):
        return (yield from self.what.__await__())
async def leaf(future):
    return await future
async def middle(future):
    await leaf(
        future)
async def through_object(future):
    await Awaitable(future)
async def deep(n, future):
    await (deep(n - 1, future) if n else future)
async def waits_for(task):
    await task
async def gathers(tasks):
    await asyncio.gather(*tasks)
async def gathers_twice(task):
    await asyncio.gather(asyncio.gather(task))
async def waits(tasks):
    await asyncio.wait(tasks)
async def shields(task):
    await asyncio.shield(task)
async def in_group(future):
    async with asyncio.TaskGroup() as group:
        group.create_task(middle(future), name='grouped')
async def main():
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    def task(coroutine, name=None):
        return asyncio.create_task(coroutine, name=name)
    tasks = [task(middle(future), 'middle'), task(through_object(future), 'object'),
             task(deep(200, future), 'deep'), task(leaf(future)), task(asyncio.sleep(1000), 'sl\u00e9ep'),
             task(leaf(future), 'gathered'), task(leaf(future), 'waited'), task(leaf(future), 'shielded'),
             task(leaf(future), 'also gathered'), task(leaf(future), 'gathered twice')]
    tasks += [task(waits_for(tasks[0]), 'first'), task(waits_for(tasks[0]), 'second'),
              task(gathers([tasks[5], tasks[8]]), 'gatherer'), task(waits([tasks[6]]), 'waiter'),
              task(shields(tasks[7]), 'shielder'), task(gathers_twice(tasks[9]), 'twice'), task(in_group(future), 'group')]
    for _ in range(5):
        await asyncio.sleep(0)
    tell(asyncio.all_tasks(), asyncio.current_task())
    blocks()
def blocks():
    sys.stdin.readline()
asyncio.run(main())
)";

TEST_P(PythonObjectsTest, TasksAreThoseOfTheProgram) {
  PythonProcess python{GetParam(), std::string{kAsyncTelling} + kManyTasks};
  const auto expected = read_tasks(python);
  auto reader = object_reader(python.pid());
  const Untouched before{python.pid()};
  const auto tasks = reader.tasks();
  EXPECT_TRUE(tasks.complete);
  EXPECT_EQ(told_tasks(tasks), expected);
  for (const auto& task : tasks.tasks) {
    EXPECT_TRUE(task.certain) << task.name;
    EXPECT_EQ(task.thread, base::Tid{python.pid().value()}) << task.name;
    EXPECT_NE(task.loop, 0U) << task.name;
    if (task.state == python::AsyncTask::State::kRunning) {
      ASSERT_EQ(task.awaits.size(), 2U);
      EXPECT_EQ(task.awaits[0].names.qualname, "blocks");
      EXPECT_EQ(task.awaits[1].names.qualname, "main");
    }
  }
  using Names = std::set<std::string>;
  EXPECT_EQ(awaiters(tasks), (std::map<std::string, Names>{{"middle", {"first", "second"}},
                                                           {"gathered", {"gatherer"}},
                                                           {"also gathered", {"gatherer"}},
                                                           {"gathered twice", {"twice"}},
                                                           {"waited", {"waiter"}},
                                                           {"shielded", {"shielder"}},
                                                           {"grouped", {"group"}}}));
  EXPECT_THAT(before.differences(), testing::IsEmpty());
}

// Frames that the program cannot see from outside: asynchronous generators, and what their
// iterators await.
TEST_P(PythonObjectsTest, ChainsGoThroughAsyncGenerators) {
  PythonProcess python{GetParam(), std::string{kAsyncTelling} + R"(
async def numbers(future):
    yield 1
    await future
async def loops(future):
    async for _ in numbers(future):
        pass
async def anexts(future):
    numbers_ = numbers(future)
    await anext(numbers_)
    await anext(numbers_, None)
def old_style():
    yield
class Yields:
    def __await__(self):
        yield from old_style()
async def yields():
    await Yields()
async def never_started():
    pass
async def main():
    future = asyncio.get_running_loop().create_future()
    tasks = [asyncio.create_task(coroutine, name=name) for name, coroutine in
             (('loops', loops(future)), ('anexts', anexts(future)))]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    tasks.append(asyncio.create_task(yields(), name='yields'))
    await asyncio.sleep(0)
    tasks.append(asyncio.create_task(never_started(), name='never started'))
    os.write(1, b'ready\n'); sys.stdin.readline()
asyncio.run(main())
)"};
  std::map<std::string, std::vector<std::string>> found;
  auto reader = object_reader(python.pid());
  for (const auto& task : reader.tasks().tasks) {
    EXPECT_TRUE(task.certain) << task.name;
    for (const auto& frame : told_tasks(task)) {
      found[task.name].push_back(frame.qualname);
    }
  }
  EXPECT_EQ(found["loops"], (std::vector<std::string>{"numbers", "loops"}));
  EXPECT_EQ(found["anexts"], (std::vector<std::string>{"numbers", "anexts"}));
  EXPECT_EQ(found["yields"], (std::vector<std::string>{"old_style", "Yields.__await__", "yields"}));
  EXPECT_EQ(found["never started"], (std::vector<std::string>{"never_started"}));
}

TEST_P(PythonObjectsTest, EachLoopHasItsThread) {
  PythonProcess python{GetParam(), std::string{kAsyncTelling} + R"(
ready = threading.Barrier(4)
async def main(name):
    asyncio.current_task().set_name('main of ' + name)
    task = asyncio.create_task(asyncio.sleep(1000), name='of ' + name)
    await asyncio.sleep(0)
    ready.wait()
    threading.Event().wait()
threads = [threading.Thread(target=lambda name=name: asyncio.run(main(name)), name=name, daemon=True)
           for name in ('one', 'two', 'three')]
for thread in threads:
    thread.start()
ready.wait()
os.write(1, b'ready\n'); sys.stdin.readline()
)"};
  auto reader = object_reader(python.pid());
  std::map<base::Tid, std::string> names;
  for (const auto& thread : reader.thread_names()) {
    names.emplace(thread.tid, thread.name);
  }
  const auto tasks = reader.tasks();
  EXPECT_TRUE(tasks.complete);
  EXPECT_EQ(tasks.tasks.size(), 6U);
  std::set<std::uint64_t> loops;
  for (const auto& task : tasks.tasks) {
    loops.insert(task.loop);
    ASSERT_TRUE(task.thread) << task.name;
    EXPECT_TRUE(task.name.ends_with("of " + names[*task.thread])) << task.name;
    EXPECT_EQ(task.state == python::AsyncTask::State::kRunning, task.name.starts_with("main"))
        << task.name;
  }
  EXPECT_EQ(loops.size(), 3U);
}

TEST_P(PythonObjectsTest, ProgramsWithoutAsyncioHaveNoTasks) {
  PythonProcess python{GetParam(), kIdle};
  auto reader = object_reader(python.pid());
  EXPECT_TRUE(reader.tasks().tasks.empty());
  EXPECT_TRUE(reader.tasks().complete);
  EXPECT_THAT(reader.thread_names(), testing::IsEmpty()) << "threading is not imported";
  python.terminate();
  EXPECT_TRUE(reader.tasks().tasks.empty());
}

// Tasks that live for some microseconds: those that wait are certain, and no frame is wrong.
TEST_P(PythonObjectsTest, TasksThatChangeAreMarked) {
  PythonProcess python{GetParam(), R"(
import asyncio
async def brief():
    await asyncio.sleep(0)
async def busy():
    while True:
        await asyncio.gather(*(brief() for _ in range(20)))
async def idle(future):
    await future
async def main():
    future = asyncio.get_running_loop().create_future()
    tasks = [asyncio.create_task(idle(future), name='idle') for _ in range(20)]
    tasks.append(asyncio.create_task(busy(), name='busy'))
    await asyncio.sleep(0)
    print('ready', flush=True)
    await asyncio.gather(*tasks)
asyncio.run(main())
)"};
  auto reader = object_reader(python.pid());
  const std::set<std::string> known{"brief", "busy", "idle", "main", "sleep", "__sleep0"};
  std::size_t certain = 0;
  for (int i = 0; i < 50; ++i) {
    const auto tasks = reader.tasks();
    std::size_t idle = 0;
    for (const auto& task : tasks.tasks) {
      if (!task.certain || task.state == python::AsyncTask::State::kRunning) {
        continue;
      }
      for (const auto& frame : task.awaits) {
        EXPECT_TRUE(known.contains(frame.names.qualname)) << frame.names.qualname;
      }
      idle += task.name == "idle" ? 1 : 0;
    }
    EXPECT_LE(idle, 20U);
    certain += idle;
  }
  EXPECT_GT(certain, 500U) << "of 1000";
}

constexpr auto kLocks = R"(
import os, queue, sys, threading
from concurrent import futures
def start(name, function):
    thread = threading.Thread(target=function, name=name, daemon=True)
    thread.start()
    return thread
)";

struct FoundWaits {
  std::vector<python::Wait> waits;
  // By the name of the waiting thread.
  std::map<std::string, std::string> owners;
  std::map<std::string, python::Wait> by_name;
};

// Once THREADS of its threads wait.
FoundWaits find_waits(PythonProcess& python, std::size_t threads) {
  auto stacks = stack_reader(python.pid());
  auto reader = object_reader(python.pid());
  const auto deadline = base::Deadline::after(kPatience);
  while (reader.waits(stacks.read()).size() < threads && !deadline.expired()) {
    ::sched_yield();
  }
  const Untouched before{python.pid()};
  FoundWaits found;
  std::map<base::Tid, std::string> names;
  for (const auto& thread : reader.thread_names()) {
    names.emplace(thread.tid, thread.name);
  }
  found.waits = reader.waits(stacks.read());
  for (const auto& wait : found.waits) {
    EXPECT_TRUE(wait.certain) << names[wait.waiter];
    found.by_name.emplace(names[wait.waiter], wait);
    found.owners.emplace(names[wait.waiter], wait.owner ? names[*wait.owner] : "");
  }
  EXPECT_THAT(before.differences(), testing::IsEmpty());
  return found;
}

TEST_P(PythonObjectsTest, WaitsNameTheirObjectAndItsOwner) {
  PythonProcess python{GetParam(), std::string{kLocks} + R"(
lock, rlock, condition, event = threading.Lock(), threading.RLock(), threading.Condition(), threading.Event()
semaphore, barrier, q, lifo = threading.Semaphore(0), threading.Barrier(2), queue.Queue(), queue.LifoQueue(1)
future, full = futures.Future(), queue.Queue(1)
full.put(1)
lock.acquire(); rlock.acquire(); rlock.acquire()
class Special(threading.Thread):
    pass
def with_lock():
    with lock:
        pass
def with_rlock():
    with rlock:
        pass
def with_condition():
    with condition:
        condition.wait()
def timed_condition():
    with condition:
        condition.wait_for(lambda: False, 10000)
joined = start('joined', event.wait)
threads = [joined] + [start(name, function) for name, function in {
    'lock': lambda: lock.acquire(), 'timed': lambda: lock.acquire(timeout=10000), 'with lock': with_lock,
    'rlock': lambda: rlock.acquire(), 'timed rlock': lambda: rlock.acquire(True, 10000),
    'with rlock': with_rlock, 'condition': with_condition, 'timed condition': timed_condition,
    'semaphore': semaphore.acquire, 'barrier': barrier.wait, 'queue': q.get, 'full': lambda: full.put(2),
    'lifo': lifo.get, 'future': future.result, 'join': joined.join,
    'timed join': lambda: joined.join(10000)}.items()]
print('ready', flush=True)
for object in (lock, rlock, condition, event, semaphore, barrier, q, full, lifo, future, joined):
    print(id(object), flush=True)
sys.stdin.read()
)"};
  std::map<std::string, std::uint64_t> address;
  for (const auto* name : {"lock", "rlock", "condition", "event", "semaphore", "barrier", "queue",
                           "full", "lifo", "future", "joined"}) {
    address.emplace(name, std::stoull(python.read_line()));
  }
  const auto found = find_waits(python, 17);
  using Kind = python::Wait::Kind;
  const auto expect = [&](const std::string& thread, Kind kind, const std::string& object,
                          const std::string& of, const std::string& owner) {
    ASSERT_TRUE(found.by_name.contains(thread)) << thread;
    const auto& wait = found.by_name.at(thread);
    EXPECT_EQ(wait.kind, kind) << thread;
    EXPECT_EQ(wait.object, object) << thread;
    EXPECT_EQ(wait.address, address.at(of)) << thread;
    EXPECT_EQ(found.owners.at(thread), owner) << thread;
    EXPECT_EQ(wait.count, kind == Kind::kRLock ? 2U : 0U) << thread;
  };
  expect("lock", Kind::kLock, "Lock", "lock", "");
  expect("timed", Kind::kLock, "Lock", "lock", "");
  expect("with lock", Kind::kLock, "Lock", "lock", "");
  expect("rlock", Kind::kRLock, "RLock", "rlock", "MainThread");
  expect("timed rlock", Kind::kRLock, "RLock", "rlock", "MainThread");
  expect("with rlock", Kind::kRLock, "RLock", "rlock", "MainThread");
  expect("condition", Kind::kCondition, "Condition", "condition", "");
  expect("timed condition", Kind::kCondition, "Condition", "condition", "");
  expect("joined", Kind::kEvent, "Event", "event", "");
  expect("semaphore", Kind::kSemaphore, "Semaphore", "semaphore", "");
  expect("barrier", Kind::kBarrier, "Barrier", "barrier", "");
  expect("queue", Kind::kQueue, "Queue", "queue", "");
  expect("full", Kind::kQueue, "Queue", "full", "");
  expect("lifo", Kind::kQueue, "LifoQueue", "lifo", "");
  expect("future", Kind::kFuture, "Future", "future", "");
  expect("join", Kind::kJoin, "Thread", "joined", "joined");
  expect("timed join", Kind::kJoin, "Thread", "joined", "joined");
  EXPECT_EQ(found.waits.size(), 17U) << "the main thread waits for a pipe";
  EXPECT_THAT(python::find_deadlocks(found.waits), testing::IsEmpty());
}

TEST_P(PythonObjectsTest, DeadlocksAreFound) {
  PythonProcess python{GetParam(), std::string{kLocks} + R"(
locks = [threading.RLock() for _ in range(6)]
def crossing(names, locks, both):
    def run(own, other):
        with own:
            both.wait()
            with other:
                pass
    return [start(name, lambda own=own, other=other: run(own, other))
            for name, own, other in zip(names, locks, locks[1:] + locks[:1])]
threads = crossing(['one', 'two'], locks[:2], threading.Barrier(2))
plain = [threading.Lock() for _ in range(3)]
threads += crossing(['left', 'right'], plain[:2], threading.Barrier(2))
held = threading.Event()
def holds():
    with plain[2]:
        inner()
def inner():
    held.set()
    threading.Event().wait()
threads.append(start('holder', holds))
held.wait()
threads.append(start('needs holder', plain[2].acquire))
threads += crossing(['a', 'b', 'c'], locks[2:5], threading.Barrier(3))
ready = threading.Event()
def joins():
    with locks[5]:
        ready.set()
        joined.join()
def needs():
    ready.wait()
    locks[5].acquire()
joined = threading.Thread(target=needs, name='joined', daemon=True)
joined.start()
threads += [joined, start('joins', joins), start('victim', lambda: locks[0].acquire())]
print('ready', flush=True)
sys.stdin.read()
)"};
  const auto found = find_waits(python, 12);
  std::map<base::Tid, std::string> names;
  for (const auto& [name, wait] : found.by_name) {
    names.emplace(wait.waiter, name);
  }
  std::set<std::set<std::string>> cycles;
  for (const auto& cycle : python::find_deadlocks(found.waits)) {
    std::set<std::string> members;
    for (const auto member : cycle) {
      members.insert(names[found.waits[member].waiter]);
    }
    cycles.insert(members);
  }
  EXPECT_EQ(cycles, (std::set<std::set<std::string>>{
                        {"one", "two"}, {"a", "b", "c"}, {"joined", "joins"}, {"left", "right"}}));
  EXPECT_EQ(found.owners.at("victim"), "one");
  EXPECT_EQ(found.owners.at("needs holder"), "holder");
}

COVER(PythonObjectsTest, kEveryVersion);
INSTANTIATE_TEST_SUITE_P(Pythons, PythonObjectsTest,
                         testing::ValuesIn(interpreters({.only_read = true})), InterpreterName{});

}  // namespace
}  // namespace pyinject::test
