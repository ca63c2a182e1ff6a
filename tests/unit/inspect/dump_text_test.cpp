#include "pyinject/inspect/dump_text.hpp"

#include "unit/inspect/made_snapshot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pyinject::inspect {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

python::AsyncTask task(std::uint64_t address, std::vector<std::uint64_t> awaited_by) {
  python::AsyncTask one;
  one.address = address;
  one.loop = 1;
  one.name = "t" + std::to_string(address);
  one.awaited_by = std::move(awaited_by);
  return one;
}

TEST(DumpText, ShowsThreadsThatAreKeptFromWorkFirstAndThoseWithoutPythonLast) {
  EXPECT_EQ(to_text(test::made_snapshot()),
            "pid 10 (www-data), Python 3.14.0, 3 threads: python3 app.py\n"
            "  thread 12 \"worker\" (interpreter 1): waits for the GIL (held by thread 10), "
            "sleeping\n"
            "    ... inner functions changed while they were read\n"
            "    work  /srv/app.py:3\n"
            "    ... outer functions are missing: the stack is too deep\n"
            "  thread 10 \"python3\" (main): in read(fd 3: /tmp/a\\x1b[31m) [anon_pipe_read]\n"
            "    wait  /srv/app.py:7\n"
            "    <module>  /srv/app.py:?\n"
            "  thread 11 \"blas\": sleeping\n");
}

TEST(DumpText, SaysWhyAFunctionHasNoVariables) {
  auto process = test::made_snapshot();
  process.has_locals = true;
  process.threads.resize(1);
  process.threads.front().frames = {{.function = "read", .file = "a.py", .line = 1},
                                    {.function = "changed", .file = "a.py", .line = 2},
                                    {.function = "late", .file = "a.py", .line = 3}};
  process.threads.front().frames[0].locals =
      python::Locals{.variables = {{.name = "one", .value = "1"}}};
  process.threads.front().frames[2].locals = python::Locals{.late = true};
  EXPECT_THAT(to_text(process),
              HasSubstr("    read  a.py:1\n"
                        "        one: 1\n"
                        "    changed  a.py:2\n"
                        "        ... its variables changed while they were read\n"
                        "    late  a.py:3\n"
                        "        ... its variables were not read, for lack of time\n"));
}

TEST(DumpText, ShowsThreadsThatDoTheSameTogether) {
  auto process = test::made_snapshot();
  process.threads.resize(1);
  for (int i = 0; i < 10; ++i) {
    auto& thread = process.threads.emplace_back();
    thread.tid = base::Tid{20 + i};
    thread.name = "io-" + std::to_string(i);
    thread.python = true;
    thread.activity = Activity::kSleeping;
    auto& wait = thread.wait.emplace();
    wait.kind = python::Wait::Kind::kQueue;
    wait.object = "Queue";
    wait.address = 0x7f00;
    auto& call = thread.call.emplace();
    call.number = SYS_futex;
    call.name = "futex";
    call.arguments = {"0x8" + std::to_string(i)};
    thread.frames = {
        {.function = "get", .file = "/usr/lib/python3.14/queue.py", .line = i == 9 ? 1U : 2U}};
  }
  EXPECT_THAT(to_text(process),
              HasSubstr("  9 threads \"io-*\" (20, 21, 22, 23, 24, 25 and 3 more): waits for Queue "
                        "0x7f00, in futex(0x...)\n"
                        "    get  queue.py:2\n"
                        "  thread 29 \"io-9\": waits for Queue 0x7f00, in futex(0x89)\n"
                        "    get  queue.py:1\n"));
  EXPECT_THAT(to_text(process, {.verbose = true}),
              AllOf(HasSubstr("  thread 24 \"io-4\": waits for Queue 0x7f00, in futex(0x84)\n"
                              "    get  /usr/lib/python3.14/queue.py:2\n"),
                    Not(HasSubstr("threads \""))));
}

TEST(DumpText, ShowsTasksThatWaitInTheSamePlaceTogether) {
  auto process = test::made_snapshot();
  for (std::uint64_t i = 1; i <= 50; ++i) {
    process.tasks.push_back(task(i, i == 1 ? std::vector<std::uint64_t>{} : std::vector{1UL}));
  }
  process.same_await = {{3, std::chrono::seconds{1}}, {4, std::chrono::seconds{5}}};
  EXPECT_THAT(
      to_text(process),
      HasSubstr("    task \"t1\": pending\n"
                "      49 tasks \"t*\": pending, seen in the same await for 1.0 s to 5.0 s, "
                "awaited by \"t1\"\n"));
  EXPECT_THAT(to_text(process, {.verbose = true}),
              HasSubstr("      task \"t50\": pending, awaited by \"t1\"\n"));
}

TEST(DumpText, SaysForHowLongTheProcessWasStopped) {
  auto process = test::made_snapshot();
  EXPECT_THAT(to_text(process), Not(HasSubstr("stopped for")));
  process.stopped_for = std::chrono::microseconds{3140};
  EXPECT_THAT(to_text(process), HasSubstr("python3 app.py\n  stopped for 3.1 ms\n  thread 12 "));
  process.stopped_for = std::chrono::microseconds{7};
  EXPECT_THAT(to_text(process), HasSubstr("  stopped for 0.1 ms\n"));
}

TEST(DumpText, NamesTheFilesOfCFunctions) {
  auto process = test::made_snapshot();
  auto& frames = process.threads.at(0).frames;
  frames.insert(frames.begin(),
                {{.function = "read", .file = "/lib/libc.so.6", .native = true},
                 {.function = {}, .file = "/lib/\x1b.so", .native = true, .address = 0x1af},
                 {.function = "gettime", .file = "[vdso]", .native = true},
                 {.function = {}, .file = {}, .native = true, .address = 0x7f00}});
  process.threads.at(0).native_missing = "no unwind information in generated code";
  EXPECT_THAT(to_text(process),
              HasSubstr("    read  [libc.so.6]\n"
                        "    0x1af  [\\x1b.so]\n"
                        "    gettime  [vdso]\n"
                        "    0x7f00  [unknown]\n"
                        "    wait  /srv/app.py:7\n"
                        "    <module>  /srv/app.py:?\n"
                        "    ... C functions are missing: no unwind information in generated "
                        "code\n"));
}

// Thread 10 waits for the lock of thread 12, which waits for thread 10 to end.
inspect::ProcessSnapshot deadlocked(python::Wait::Kind kind) {
  auto process = test::made_snapshot();
  auto& main = process.threads.at(0);
  auto& worker = process.threads.at(2);
  main.python_name = "MainThread";
  main.wait = python::Wait{
      .waiter = main.tid, .kind = kind, .object = "RLock", .address = 0xabc, .owner = worker.tid};
  worker.python_name = "wörker";
  worker.frames.insert(worker.frames.begin(),
                       {.function = "Thread.join", .file = "/lib/threading.py", .line = 9});
  worker.wait = python::Wait{.waiter = worker.tid,
                             .kind = python::Wait::Kind::kJoin,
                             .object = "Thread",
                             .address = 0xdef,
                             .owner = main.tid};
  process.deadlocks = {{main.tid, worker.tid}};
  return process;
}

TEST(DumpText, ListsDeadlocksFirst) {
  const auto text = to_text(deadlocked(python::Wait::Kind::kRLock));
  EXPECT_THAT(text, HasSubstr("app.py\n"
                              "  DEADLOCK of 2 threads:\n"
                              "    thread 10 \"python3\" waits for RLock 0xabc of thread 12 "
                              "\"wörker\"  /srv/app.py:7\n"
                              "    thread 12 \"wörker\" waits for the end of thread 10 "
                              "\"python3\"  /srv/app.py:3\n"
                              "  thread 10 "));
  EXPECT_THAT(text, HasSubstr("waits for RLock 0xabc (held by thread 12), in read("));
  EXPECT_THAT(text, HasSubstr("waits for thread 10 to end, sleeping\n"));
}

TEST(DumpText, SaysThatTheOwnerOfALockIsInferred) {
  const auto text = to_text(deadlocked(python::Wait::Kind::kLock));
  EXPECT_THAT(text, HasSubstr("  probable DEADLOCK of 2 threads, as far as the owners of locks "
                              "are known:\n"));
  EXPECT_THAT(text, HasSubstr("waits for RLock 0xabc (thread 12 is inside 'with')"));
}

TEST(DumpText, ShowsTasksBelowThoseThatAwaitThem) {
  auto process = test::made_snapshot();
  process.tasks = {task(3, {2}), task(2, {9}), task(4, {2, 2}), task(7, {8}), task(8, {7})};
  process.tasks[0].thread = base::Tid{10};
  process.tasks[0].awaits = {{.names = {.qualname = "read\x1b", .file = "a.py"}, .line = 5}};
  process.tasks[2].certain = false;
  process.all_tasks = false;
  EXPECT_THAT(to_text(process),
              HasSubstr("  asyncio, loop of thread 10: 5 tasks\n"
                        "    task \"t2\": pending\n"
                        "      task \"t3\": pending, awaited by \"t2\"\n"
                        "        read\\x1b  a.py:5\n"
                        "      task \"t4\": pending, awaited by \"t2\", \"t2\" (changed while it "
                        "was read)\n"
                        "    task \"t7\": pending, awaited by \"t8\"\n"
                        "      task \"t8\": pending, awaited by \"t7\"\n"
                        "  ... more asyncio tasks changed while they were read\n"));
}

python::SuspendedGreenlet greenlet(std::string type, std::uint32_t line) {
  python::SuspendedGreenlet one;
  one.type = std::move(type);
  one.frames = {{.names = {.qualname = "f\x1b", .file = "a.py"}, .line = line}};
  return one;
}

TEST(DumpText, ShowsGreenletsWithEqualStacksTogether) {
  auto process = test::made_snapshot();
  process.greenlets = {greenlet("Hub", 1),   greenlet("Hub", 1),   greenlet("g.Own", 0),
                       greenlet("g.Own", 7), greenlet("g.Own", 7), greenlet("g.Own", 7)};
  process.greenlets[5].certain = false;
  process.all_greenlets = false;
  EXPECT_THAT(to_text(process), HasSubstr("  6 greenlets are suspended\n"
                                          "    2 greenlets (g.Own)\n"
                                          "      f\\x1b  a.py:7\n"
                                          "    1 greenlet (g.Own): changed while it was read\n"
                                          "      f\\x1b  a.py:7\n"
                                          "    1 greenlet (g.Own)\n"
                                          "      f\\x1b  a.py:?\n"
                                          "    2 greenlets (Hub)\n"
                                          "      f\\x1b  a.py:1\n"
                                          "  ... more greenlets could not be read in time\n"));
}

TEST(DumpText, SaysWhereTheFunctionOfAGreenletIsUnknown) {
  auto process = test::made_snapshot();
  process.greenlets = {greenlet("g.Own", 7)};
  process.greenlets[0].frames.emplace_back();
  process.greenlets[0].certain = false;
  EXPECT_THAT(to_text(process), HasSubstr("changed while it was read\n"
                                          "      f\\x1b  a.py:7\n"
                                          "      [unknown]\n"));
}

TEST(DumpText, ShowsAHundredStacksOfGreenletsUnlessVerbose) {
  auto process = test::made_snapshot();
  for (std::uint32_t line = 1; line <= 150; ++line) {
    process.greenlets.push_back(greenlet("g.Own", line));
  }
  EXPECT_THAT(to_text(process), HasSubstr("    ... 50 more stacks (-v or --json: all)\n"));
  EXPECT_THAT(to_text(process, {.verbose = true}), HasSubstr("a.py:150\n"));
}

TEST(DumpText, ShowsAHundredTasksUnlessVerbose) {
  auto process = test::made_snapshot();
  for (std::uint64_t i = 1; i <= 150; ++i) {
    process.tasks.push_back(task(i, i == 1 ? std::vector<std::uint64_t>{} : std::vector{i - 1}));
  }
  EXPECT_THAT(to_text(process), HasSubstr("    ... 50 more tasks (-v or --json: all)\n"));
  EXPECT_THAT(to_text(process, {.verbose = true}), HasSubstr("task \"t150\": pending"));
}

TEST(DumpText, NamesEachState) {
  const auto state = [](Activity activity) {
    auto process = test::made_snapshot();
    auto& thread = process.threads.front();
    thread.activity = activity;
    thread.processor = 3;
    thread.kernel.clear();
    thread.call.reset();
    thread.gil = sample::Gil::kHeld;
    return to_text(process);
  };
  EXPECT_THAT(state(Activity::kOnProcessor), HasSubstr(": holds the GIL, running on CPU 3\n"));
  EXPECT_THAT(state(Activity::kRunnable), HasSubstr("runnable, last on CPU 3\n"));
  EXPECT_THAT(state(Activity::kRunningOrRunnable), HasSubstr("running or runnable, CPU 3\n"));
  EXPECT_THAT(state(Activity::kUninterruptible), HasSubstr("uninterruptible\n"));
  EXPECT_THAT(state(Activity::kStopped), HasSubstr("stopped\n"));
  EXPECT_THAT(state(Activity::kTraced), HasSubstr("stopped by a tracer\n"));
  EXPECT_THAT(state(Activity::kZombie), HasSubstr("zombie\n"));
}

TEST(DumpText, NamesAStoppedProcessAndWhatIsMissing) {
  auto process = test::made_snapshot();
  process.stopped = true;
  process.main_thread_exited = true;
  process.no_stacks = "it is strange";
  process.threads.front().ran_meanwhile = true;
  process.threads.back().unreadable = true;
  EXPECT_THAT(
      to_text(process),
      AllOf(HasSubstr("\n  stopped by a signal: kill -CONT 10 continues it\n"),
            HasSubstr("\n  its main thread has exited\n"),
            HasSubstr("\n  no Python stacks: it is strange\n"),
            HasSubstr(" (ran while it was read)\n"),
            HasSubstr("    ... its Python functions were changing and could not be read\n")));
}

ProcessSnapshot made_core_snapshot() {
  auto process = test::made_snapshot();
  process.core = CoreOrigin{.file = "/tmp/core\x1b.10",
                            .size = 100,
                            .expected_size = 100,
                            .signal = 11,
                            .signal_name = "SIGSEGV",
                            .cause = "no memory is mapped at 0x10",
                            .thread = base::Tid{10}};
  for (auto& thread : process.threads) {
    thread.processor = -1;
  }
  return process;
}

TEST(DumpText, SaysWhichSignalACoreIsOf) {
  auto process = made_core_snapshot();
  process.threads.front().activity = Activity::kUnknown;
  EXPECT_THAT(to_text(process),
              AllOf(HasSubstr("\n  core file: /tmp/core\\x1b.10\n"
                              "  SIGSEGV: no memory is mapped at 0x10 (thread 10)\n"),
                    HasSubstr(" (main): received SIGSEGV, not blocked in a system call"),
                    Not(HasSubstr("truncated")), Not(HasSubstr(" CPU "))));
  process.core->signal = 0;
  EXPECT_THAT(to_text(process), AllOf(HasSubstr("\n  no signal: a debugger wrote the core\n"),
                                      Not(HasSubstr("received"))));
}

TEST(DumpText, SaysWhatACoreDoesNotHold) {
  auto process = made_core_snapshot();
  process.core->expected_size = 300;
  process.threads[1].complete = false;
  process.threads[1].name.clear();
  process.threads[2].unreadable = true;
  EXPECT_THAT(
      to_text(process),
      AllOf(HasSubstr("\n  the core file is truncated: it has 100 of 300 bytes\n"),
            HasSubstr("  thread 11: sleeping\n"),
            HasSubstr("    ... Python functions may be missing: this core does not hold all of "),
            HasSubstr("    ... outer functions may be missing: this core does not hold all of "),
            HasSubstr("    ... its Python functions cannot be read from this core\n")));
}

TEST(DumpText, ListsKernelFunctionsIfVerbose) {
  EXPECT_THAT(
      to_text(test::made_snapshot(), {.verbose = true}),
      AllOf(HasSubstr("\n  interpreter: /usr/bin/python3\n"),
            HasSubstr("\n    anon_pipe_read  [kernel]\n    vfs_read  [kernel]\n    wait ")));
}

TEST(DumpText, HasNoControlCharactersWithoutColor) {
  EXPECT_THAT(to_text(test::made_snapshot()), Not(HasSubstr("\x1b")));
  EXPECT_THAT(to_text(test::made_snapshot(), {.color = true}), HasSubstr("\x1b[1mpid 10\x1b[0m"));
}

}  // namespace
}  // namespace pyinject::inspect
