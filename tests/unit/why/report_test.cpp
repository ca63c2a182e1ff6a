#include "why/report.hpp"

#include "base/text.hpp"
#include "unit/why/made_recording.hpp"
#include "why/report_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace pyinject::why {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::SizeIs;
using testing::StartsWith;
using testing::UnorderedElementsAre;

class ReportTest : public testing::Test, protected MadeRecording {
 protected:
  Report report() { return make_report(recording, account(recording)); }
  static std::vector<std::string> unusual(const Report& report) {
    std::vector<std::string> names;
    std::ranges::transform(report.unusual, std::back_inserter(names), &Unusual::name);
    return names;
  }
  // Thread TID uses the CPU for all of the time.
  void busy(std::uint32_t tid, CodeKind code = CodeKind::kEvaluator) {
    in(tid, 0);
    sample(tid, 50, code, stack({"work"}));
  }
};

TEST_F(ReportTest, SaysWhatThreadsWithoutWorkDo) {
  thread(1, "main");
  sighting(1, 5, Use::kPoll);
  const auto number = [this](const char* text) { return recording.names.number(text); };
  recording.awaited = {{{.function = number("call"), .file = number("/srv/gw.py"), .line = 8}, 20},
                       {{.function = number("tick"), .file = number("/srv/gw.py"), .line = 3}, 2}};
  const auto made = report();
  EXPECT_EQ(made.cause, "nothing");
  EXPECT_THAT(to_text(made),
              StartsWith("pid 7: idle: its threads have work for 0.0 of 0.1 s; 100 % "
                         "of their time: waits for events; 20 of 22 asyncio tasks "
                         "wait in call gw.py:8\n"));
}

TEST_F(ReportTest, SaysToWhichServersAnIdleProcessIsConnected) {
  thread(1, "main");
  sighting(1, 5, Use::kPoll);
  recording.servers = {{"10.0.0.3:5432", 1}, {"10.0.0.4:80", 20}, {"[::1]:6379", 2}, {"a", 1}};
  EXPECT_THAT(report().verdict,
              EndsWith("; connected to 10.0.0.4:80 (20), [::1]:6379 (2), a (1) and 1 more"));
}

// By the waits that a snapshot saw.
TEST_F(ReportTest, NamesTheServerTheFileAndTheChildThatItWaitsFor) {
  struct Case {
    Use use;
    const char* awaited;
    const char* verdict;
  };
  for (const auto& [use, awaited, verdict] :
       {Case{Use::kNetwork, "10.0.0.3:5432", "network-bound"},
        Case{Use::kDisk, "/srv/a.db", "disk"}, Case{Use::kChild, "pid 12", "waits for child"}}) {
    MadeRecording made;
    const auto line = made.stack({"fetch"});
    made.in(1, 0);
    for (std::uint64_t ms = 1; ms < 90; ms += 30) {
      made.out(1, ms, use, line);
      made.in(1, ms + 29);
    }
    made.sighting(1, 10, use, line).awaited = made.recording.names.number("another");
    for (const std::uint64_t ms : {40U, 70U}) {
      made.sighting(1, ms, use, line).awaited = made.recording.names.number(awaited);
    }
    const auto report = make_report(made.recording, account(made.recording));
    EXPECT_THAT(report.verdict, AllOf(StartsWith(verdict),
                                      EndsWith(" fetch app.py:10 (" + std::string{awaited} + ")")));
    EXPECT_THAT(report.groups.front().uses.front().top, SizeIs(1));
  }
}

TEST_F(ReportTest, SaysWhoHasTheCpusAndWhatElseTakesTime) {
  in(1, 0);
  sample(1, 5, CodeKind::kEvaluator, stack({"work"}));
  event(1, 10, Event::Kind::kPreempted);
  in(1, 80);
  sample(1, 85, CodeKind::kEvaluator, stack({"work"}));
  recording.others = {{"cc1plus", 90 * kMs}, {"", 20 * kMs}, {"sshd", 2 * kMs}};
  recording.busy_cpus = 2;
  const auto made = report();
  EXPECT_EQ(made.cause, "preempted");
  EXPECT_EQ(
      made.verdict,
      "short of CPUs: threads with work wait for a CPU for 70 % of their working time, mostly "
      "in code without Python functions; meanwhile on CPUs: its own threads 0.3, cc1plus 0.9, "
      "processes that ended 0.2, others 0.6; besides CPU-bound in Python for 30 % of their working "
      "time, mostly in "
      "work app.py:10");
  EXPECT_EQ(made.next, "perf-pyinject top -p 7");
  recording.cpu_limit = {
      .cgroup = "/sys/fs/cgroup/pod", .cpus = 0.5, .throttled = std::chrono::milliseconds{3140}};
  const auto limited = report();
  EXPECT_THAT(limited.verdict,
              HasSubstr("; its cgroup /sys/fs/cgroup/pod may use 0.5 CPUs, and was "
                        "throttled for 3.1 s over all CPUs; besides CPU-bound"));
  EXPECT_THAT(unusual(limited), testing::Contains("throttled"));
}

TEST_F(ReportTest, SaysThatSamplesLackPythonFunctions) {
  thread(1, "main");
  busy(1);
  EXPECT_THAT(unusual(report()), Not(testing::Contains("stacks")));
  recording.python.back().kind = perfdata::StackKind::kCut;
  const auto cut = report();
  EXPECT_THAT(unusual(cut), testing::Contains("stacks"));
  EXPECT_THAT(to_text(cut), HasSubstr("100.0 % of the 1 samples lack Python functions: 1 cut"));
  recording.python.clear();
  const auto unread = nlohmann::json::parse(to_json(report()));
  EXPECT_EQ(unread.at("stacks").at("unread"), 1) << "there is a sample, but no stack";
  EXPECT_EQ(unread.at("stacks").at("complete"), 0);
}

TEST_F(ReportTest, SaysThatAProcessCannotRun) {
  sighting(1, 5, Use::kSleep, stack({"pay"}));
  thread(1, "one");
  thread(2, "two");
  recording.deadlocks = {{1, 2}};
  EXPECT_THAT(
      to_text(report()),
      StartsWith("pid 7: deadlock: thread 1 \"one\" in pay app.py:10, thread 2 \"two\" wait "
                 "for each other\nnext: perf-pyinject dump -p 7\n"));
  EXPECT_THAT(unusual(report()), Not(testing::Contains("deadlock")));
  recording.traced = true;
  EXPECT_THAT(to_text(report()), AllOf(StartsWith("pid 7: stopped by its debugger\n"),
                                       HasSubstr("next: grep TracerPid /proc/7/status\n")));
  recording.stopped = true;
  EXPECT_THAT(to_text(report()),
              AllOf(StartsWith("pid 7: stopped by a signal"), HasSubstr("\nnext: kill -CONT 7\n")));
  recording.frozen = "/sys/fs/cgroup/shop.slice";
  EXPECT_THAT(to_text(report()),
              AllOf(StartsWith("pid 7: frozen by its cgroup /sys/fs/cgroup/shop.slice"),
                    HasSubstr("echo 0 > /sys/fs/cgroup/shop.slice/cgroup.freeze")));
  recording.exited = true;
  EXPECT_EQ(report().cause, "exited");
  EXPECT_THAT(to_text(report()), StartsWith("pid 7: it exited after 0.1 s of the recording"));
}

TEST_F(ReportTest, SaysThatTheMemoryGrows) {
  busy(1);
  const auto resident = [this](std::initializer_list<std::uint64_t> megabytes) {
    recording.resident_kb.clear();
    for (const auto each : megabytes) {
      recording.resident_kb.push_back(each << 10);
    }
  };
  resident({48, 48, 48, 48, 48, 48});
  EXPECT_THAT(unusual(report()), Not(testing::Contains("memory_growth")));
  resident({48, 66, 48, 66, 48, 66});
  EXPECT_THAT(unusual(report()), Not(testing::Contains("memory_growth"))) << "it comes and goes";
  resident({48, 52, 56, 60, 64, 66});
  recording.end = at(2000);
  EXPECT_THAT(report().verdict, EndsWith("; its memory grew from 48 to 66 MB (resident), 9 MB/s"));
  EXPECT_THAT(unusual(report()), testing::Contains("memory_growth"));
  const auto stack = recording.stacks.number({{.function = recording.names.number("keep"),
                                               .file = recording.names.number("/srv/shop.py"),
                                               .line = 3}});
  const auto fault = [&](std::uint64_t count) {  // each stands for 128 kB
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto time = at(i);
      recording.faults.push_back({.time = time, .tid = 1});
      recording.python.push_back({.time = time, .tid = 1, .stack = stack});
    }
  };
  fault(100);
  EXPECT_THAT(report().verdict, EndsWith(" % of its new pages in keep shop.py:3"));
  fault(300);
  EXPECT_THAT(report().verdict, EndsWith(" MB/s")) << "most pages come and go";
}

TEST_F(ReportTest, TheVerdictIsTheLargestUseWithoutIdleOnes) {
  busy(1);
  for (const std::uint32_t tid : {2U, 3U, 4U}) {
    sighting(tid, 5, Use::kSleep);
  }
  EXPECT_EQ(report().cause, "cpu_python");
}

TEST_F(ReportTest, SwappingIsACause) {
  in(1, 0);
  sample(1, 1, CodeKind::kEvaluator);
  out(1, 20, Use::kSwap);
  const auto made = report();
  EXPECT_EQ(made.cause, "swap");
  EXPECT_THAT(made.verdict, StartsWith("swapping: threads with work wait for memory that was "
                                       "swapped out for 80 % of their working time"));
  EXPECT_EQ(made.next, "vmstat 1");
}

TEST_F(ReportTest, TheDelaysOfWakeupsAreNoWork) {
  in(1, 0);
  for (std::uint64_t ms = 1; ms < 100; ms += 50) {
    out(1, ms, Use::kSleep);
    event(1, ms + 40, Event::Kind::kWakeup);
    in(1, ms + 44);
    sample(1, ms + 44, CodeKind::kEvaluator);
    out(1, ms + 45, Use::kSleep);
  }
  EXPECT_EQ(report().cause, "nothing");
}

TEST_F(ReportTest, AContendedGilOutweighsTheWorkOfItsHolder) {
  busy(1);
  in(2, 0);
  sample(2, 1, CodeKind::kEvaluator, stack({"other"}));
  out(2, 40, Use::kFutex, stack({"other"}), sample::Gil::kWaitedFor);
  auto made = report();
  EXPECT_EQ(made.cause, "gil");
  EXPECT_THAT(to_text(made), AllOf(HasSubstr("GIL-bound: "), HasSubstr("who has the GIL"),
                                   HasSubstr("work  app.py:10")));
  EXPECT_THAT(unusual(made), testing::Contains("gil_holder"));
  EXPECT_THAT(made.verdict,
              EndsWith("mostly in other app.py:10; for 100 % of that, thread 1 holds it in work "
                       "app.py:10"));
}

TEST_F(ReportTest, TheHolderIsNamedByAllWaitsNotOnlyByThoseShown) {
  in(1, 0);
  sample(1, 10, CodeKind::kEvaluator, stack({"work"}));
  sample(1, 60, CodeKind::kEvaluator, stack({"play"}));
  for (std::uint32_t tid = 2; tid < 42; ++tid) {
    const std::uint64_t begin = tid % 2 == 0 ? 0 : 50;
    const auto place = stack({std::to_string(tid)});
    in(tid, begin);
    sample(tid, begin + 1, CodeKind::kEvaluator, place);
    out(tid, begin + 2, Use::kFutex, place, sample::Gil::kWaitedFor);
    in(tid, begin + 42);
    out(tid, begin + 43, Use::kSleep);
  }
  const auto made = report();
  EXPECT_THAT(made.gil, SizeIs(20));
  EXPECT_THAT(made.verdict, testing::ContainsRegex("; for [0-9]+ % of that, thread 1 holds it in"));
  EXPECT_THAT(made.verdict, Not(HasSubstr("; for 100 % of that")));
}

TEST_F(ReportTest, GroupsThreadsWhoseNamesDifferInDigits) {
  thread(1, "worker-1");
  thread(2, "worker-12");
  thread(3, "worker");
  busy(1);
  busy(2);
  const auto made = report();
  ASSERT_THAT(made.groups, SizeIs(2));
  EXPECT_EQ(made.groups.front().name, "worker-*");
  EXPECT_THAT(made.groups.front().tids, SizeIs(2));
}

TEST_F(ReportTest, SaysTheNumberOfAThreadWithoutANameOnce) {
  busy(1);
  EXPECT_THAT(to_text(report()), HasSubstr("\nthread 1: has work 100 % of the time\n"));
  thread(1, "main");
  EXPECT_THAT(to_text(report()), HasSubstr("\nmain (thread 1): has work 100 % of the time\n"));
}

TEST_F(ReportTest, GroupsShortThreads) {
  for (const std::uint32_t tid : {11U, 12U, 13U}) {
    event(tid, 20 * tid, Event::Kind::kStart);
    in(tid, 20 * tid);
    event(tid, 20 * tid + (tid == 13 ? 200 : 10), Event::Kind::kExit);
  }
  recording.end = at(1000);
  thread(12, "Thread-12 (handle)");
  thread(13, "Thread-13 (handle)");
  std::map<std::string, std::vector<std::uint32_t>> groups;
  for (const auto& group : report().groups) {
    groups[group.name] = group.tids;
  }
  EXPECT_THAT(groups, UnorderedElementsAre(Pair("short threads", ElementsAre(11, 12)),
                                           Pair("Thread-13 (handle)", ElementsAre(13))));
  EXPECT_THAT(to_text(report()), HasSubstr("short threads (2 threads, 0.02 at a time)"));
}

TEST_F(ReportTest, WritesNumbersWithoutExponents) {
  EXPECT_EQ(short_number(0.00002), "less than 0.01");
  EXPECT_EQ(short_number(0.35), "0.35");
  EXPECT_EQ(short_number(1.94), "1.9");
  EXPECT_EQ(short_number(9.96), "10");
  EXPECT_EQ(short_number(255.7), "256");
}

TEST_F(ReportTest, SaysHowMuchTheChildrenWorkOfAProcessThatIsIdleOrNot) {
  recording.descendants = {.processes = 256, .on_cpu = std::chrono::seconds{20}};
  thread(1, "main");
  sighting(1, 5, Use::kSleep);
  const auto idle = report();
  EXPECT_THAT(idle.verdict, HasSubstr("; its child processes use 200 CPUs"));
  EXPECT_EQ(idle.next, "perf-pyinject why -p 7 --children");
  EXPECT_THAT(unusual(idle), Not(testing::Contains("children")));
  busy(1);
  EXPECT_THAT(unusual(report()), testing::Contains("children"));
}

TEST_F(ReportTest, AnIdleParentLeadsOnToItsIdleWorkers) {
  sighting(1, 5, Use::kPoll);
  recording.workers = 3;
  const auto idle = report();
  EXPECT_THAT(idle.verdict, EndsWith("; 3 child processes run the same program"));
  EXPECT_EQ(idle.next, "perf-pyinject why -p 7 --children");
}

TEST_F(ReportTest, NamesTheChildThatUsesMost) {
  recording.descendants = {.processes = 3,
                           .on_cpu = std::chrono::milliseconds{60},
                           .living = {{base::Pid{8}, std::chrono::milliseconds{50}},
                                      {base::Pid{9}, std::chrono::milliseconds{10}}}};
  thread(1, "main");
  out(1, 0, Use::kChild);
  const auto waiting = report();
  EXPECT_EQ(waiting.cause, "child");
  EXPECT_THAT(waiting.verdict, HasSubstr("; its child processes use 0.6 CPUs, pid 8 0.5"));
  EXPECT_EQ(waiting.next, "perf-pyinject why -p 7 --children");
  EXPECT_THAT(unusual(waiting), Not(testing::Contains("children")));
  recording.descendants.living.at(base::Pid{8}) = std::chrono::milliseconds{20};
  EXPECT_THAT(report().verdict, Not(HasSubstr("pid 8")));
}

TEST_F(ReportTest, SaysWhatWasConsidered) {
  thread(1, "main");
  auto made = report();
  EXPECT_THAT(to_text(made), Not(HasSubstr("busiest")));
  made.considered = {{.pid = 7, .command = "a", .cpu = 0.5}, {.pid = 8, .command = "b", .cpu = 0}};
  EXPECT_THAT(to_text(made), HasSubstr("\nthe busiest of 2 processes, by their use of a CPU just "
                                       "before: 7 50 %, 8 0 %\n"));
  made.considered.resize(9);
  EXPECT_THAT(to_text(made), HasSubstr(" and 3 more\n"));
}

TEST_F(ReportTest, ShowsTheCallersOfTheStandardLibrary) {
  Lines lines{{.function = recording.names.number("sleep"),
               .file = recording.names.number("/usr/lib/python3.12/threading.py"),
               .line = 5},
              {.function = recording.names.number("handler"),
               .file = recording.names.number("/usr/lib/python3.12/site-packages/app.py"),
               .line = 6}};
  in(1, 0);
  sample(1, 50, CodeKind::kEvaluator, recording.stacks.number(lines));
  const auto made = report();
  EXPECT_EQ(made.groups.front().uses.front().top.front().function, "handler");
}

TEST_F(ReportTest, FindsABlockedEventLoop) {
  const auto loop =
      stack({"BaseEventLoop._run_once"}, "/usr/lib/python3.12/asyncio/base_events.py");
  Lines lines{{.function = recording.names.number("handler"),
               .file = recording.names.number("/srv/app.py"),
               .line = 4},
              {.function = recording.names.number("Handle._run"),
               .file = recording.names.number("/usr/lib/python3.12/asyncio/events.py"),
               .line = 5}};
  const auto callback = recording.stacks.number(lines);
  recording.end = at(1000);
  in(1, 0);
  sample(1, 10, CodeKind::kEvaluator, loop);
  out(1, 100, Use::kSleep, callback);
  in(1, 500);
  out(1, 510, Use::kPoll, loop);
  const auto made = report();
  EXPECT_EQ(made.cause, "event_loop");
  EXPECT_THAT(made.verdict, AllOf(HasSubstr("up to 400 ms"), HasSubstr("handler app.py:4")));
}

// Not by the line that was sampled last, nor by the single line that was sampled most.
TEST_F(ReportTest, ALoopIsBlockedByTheFunctionThatTakesMostOfTheTime) {
  const auto callback = [&](const std::string& function, std::uint32_t line) {
    return recording.stacks.number(
        {{.function = recording.names.number(function),
          .file = recording.names.number("/srv/app.py"),
          .line = line},
         {.function = recording.names.number("Handle._run"),
          .file = recording.names.number("/usr/lib/python3.12/asyncio/events.py"),
          .line = 5}});
  };
  recording.end = at(1000);
  recording.polls = true;
  in(1, 0);
  for (std::uint64_t ms = 10; ms < 800; ms += 10) {
    const auto line = static_cast<std::uint32_t>(4 + ms / 10 % 3);
    sample(1, ms, CodeKind::kEvaluator,
           ms % 40 == 0 ? callback("after", 20) : callback("hot", line == 6 ? 4 : line));
  }
  sample(1, 800, CodeKind::kEvaluator, callback("after", 20));
  const auto made = report();
  EXPECT_EQ(made.cause, "event_loop");
  EXPECT_THAT(made.verdict, HasSubstr("in hot app.py:4"));
}

// It has nothing to do until its supervisor says something.
TEST_F(ReportTest, AThreadThatWaitsForOrdersIsNoReasonBesideOneThatWorks) {
  const auto waiting = stack({"pong"});
  out(2, 0, Use::kNetwork, waiting);
  auto& seen = sighting(2, 50, Use::kNetwork, waiting);
  seen.connected = false;
  seen.unnamed = true;
  EXPECT_EQ(report().cause, "network") << "there is nothing else";
  busy(1);
  EXPECT_EQ(report().cause, "cpu_python");
  recording.sightings.front().unnamed = false;
  EXPECT_EQ(report().cause, "network") << "a server may have been asked";
}

// A loop in C has no functions of its own; trio runs tasks below its own.
TEST_F(ReportTest, TasksBlockLoopsOtherThanAsyncios) {
  for (const auto& [function, file] :
       {std::pair{"unrolled_run", "/srv/trio/_core/_run.py"},
        std::pair{"Runner.run", "/usr/lib/python3.12/asyncio/runners.py"}}) {
    MadeRecording made{1000};
    auto& names = made.recording.names;
    const Line bottom{.function = names.number(function), .file = names.number(file), .line = 4};
    const Line poll{.function = names.number("poll"),
                    .file = names.number("/srv/trio/_core/_io_epoll.py"),
                    .line = 5};
    const Line own{
        .function = names.number("resize"), .file = names.number("/srv/app.py"), .line = 6};
    made.recording.polls = true;
    made.in(1, 0);
    for (std::uint64_t ms = 10; ms < 300; ms += 10) {
      made.sample(1, ms, CodeKind::kEvaluator, made.recording.stacks.number({poll, bottom}));
    }
    for (std::uint64_t ms = 300; ms <= 700; ms += 10) {
      made.sample(1, ms, CodeKind::kEvaluator, made.recording.stacks.number({own, bottom}));
    }
    made.event(1, 705, Event::Kind::kPoll);
    const auto report = make_report(made.recording, account(made.recording));
    EXPECT_EQ(report.cause, "event_loop") << function;
    EXPECT_THAT(report.verdict, AllOf(HasSubstr("for 40 % of the time, up to 400 ms"),
                                      HasSubstr("in resize app.py:6")));
  }
}

TEST_F(ReportTest, ARoundOfTheLoopEndsWithAPoll) {
  const auto callback = stack({"Handle._run"}, "/usr/lib/python3.12/asyncio/events.py");
  recording.end = at(1000);
  in(1, 0);
  for (std::uint64_t ms = 10; ms < 900; ms += 10) {
    sample(1, ms, CodeKind::kEvaluator, callback);
  }
  EXPECT_EQ(report().cause, "cpu_python");  // nothing is known about its rounds
  recording.polls = true;
  EXPECT_EQ(report().cause, "event_loop");
  for (std::uint64_t ms = 15; ms < 900; ms += 50) {
    event(1, ms, Event::Kind::kPoll);
  }
  EXPECT_EQ(report().cause, "cpu_python");
}

// gevent's hub is on the stack only while nothing else runs, or in callbacks of the loop.
TEST_F(ReportTest, GreenletsBlockGeventsHub) {
  const auto hub_line = Line{.function = recording.names.number("Hub.run"),
                             .file = recording.names.number("/srv/lib/gevent/hub.py"),
                             .line = 647};
  const auto line = [&](const char* function, const char* file) {
    return Line{.function = recording.names.number(function),
                .file = recording.names.number(file),
                .line = 4};
  };
  const auto hub =
      recording.stacks.number({line("loop.run", "/srv/lib/gevent/_ffi/loop.py"), hub_line});
  const auto callback = recording.stacks.number({line("timer", "/srv/app.py"), hub_line});
  recording.end = at(1000);
  recording.polls = true;
  thread(1, "main");
  in(1, 0);
  for (std::uint64_t ms = 10; ms < 400; ms += 10) {
    sample(1, ms, CodeKind::kEvaluator, hub);
  }
  event(1, 395, Event::Kind::kPoll);
  for (std::uint64_t ms = 400; ms <= 700; ms += 10) {
    sample(1, ms, CodeKind::kEvaluator, ms < 500 ? callback : stack({"handler"}));
  }
  event(1, 705, Event::Kind::kPoll);
  sample(1, 710, CodeKind::kEvaluator, stack({"short"}));
  event(1, 715, Event::Kind::kPoll);
  const auto made = report();
  EXPECT_EQ(made.cause, "event_loop");
  EXPECT_THAT(made.verdict, StartsWith("blocked event loop: greenlets keep thread 1 \"main\" from "
                                       "gevent's hub for 30 % of the time, up to 300 ms, in "
                                       "handler app.py:10"));
}

// The hub may be suspended all the time.
TEST_F(ReportTest, AGreenletMayBlockGeventsHubForever) {
  recording.end = at(1000);
  recording.polls = true;
  in(1, 0);
  for (std::uint64_t ms = 10; ms < 1000; ms += 10) {
    sample(1, ms, CodeKind::kEvaluator, stack({"handler"}));
  }
  EXPECT_EQ(report().cause, "cpu_python");
  recording.threads[1].hub = true;
  EXPECT_EQ(report().cause, "event_loop");
}

python::SuspendedGreenlet greenlet(std::uint32_t functions) {
  python::SuspendedGreenlet one;
  one.type = "g.Own\x1b";
  for (std::uint32_t line = 1; line <= functions; ++line) {
    one.frames.push_back({.names = {.qualname = "f\x1b", .file = "a.py"}, .line = line});
  }
  return one;
}

TEST_F(ReportTest, ListsSuspendedGreenlets) {
  thread(1, "main");
  sighting(1, 5, Use::kPoll);
  recording.greenlets = {greenlet(1), greenlet(12), greenlet(1), greenlet(2),
                         greenlet(3), greenlet(4),  greenlet(5)};
  recording.all_greenlets = false;
  recording.switched_away = {
      {{.function = recording.names.number("call"), .file = 0, .line = 8}, 6},
      {{.function = recording.names.number("tick"), .file = 0, .line = 8}, 1}};
  const auto made = report();
  EXPECT_THAT(made.verdict, testing::EndsWith("; 6 of 7 greenlets wait in call :8"));
  EXPECT_THAT(to_text(made), HasSubstr("\n\n7 greenlets are suspended\n"
                                       "  2 greenlets (g.Own\\x1b)\n"
                                       "    f\\x1b  a.py:1\n"
                                       "  1 greenlet (g.Own\\x1b)\n"
                                       "    f\\x1b  a.py:1\n"
                                       "    f\\x1b  a.py:2\n"));
  EXPECT_THAT(to_text(made), HasSubstr("  ... 3 more stacks (perf-pyinject dump -p 7)\n"
                                       "... more greenlets could not be read in time\n"));
  const auto all = nlohmann::json::parse(to_json(made));
  EXPECT_EQ(all.at("greenlets"), 7);
  EXPECT_EQ(all.at("all_greenlets"), false);
  ASSERT_THAT(all.at("greenlet_stacks"), SizeIs(6));
  const auto& first = all.at("greenlet_stacks").at(0);
  EXPECT_EQ(first.at("count"), 2);
  EXPECT_EQ(first.at("type"), "g.Own\\x1b");
  EXPECT_EQ(first.at("frames").at(0).at("function"), "f\\x1b");
  EXPECT_EQ(first.at("frames").at(0).at("line"), 1);
  recording.greenlets = {greenlet(12)};
  EXPECT_THAT(to_text(report()),
              HasSubstr("    f\\x1b  a.py:5\n"
                        "    ... 7 outer functions (perf-pyinject dump -p 7)\n"));
}

TEST_F(ReportTest, ListsWhatIsUnusualWithTheNextCommand) {
  busy(1);
  thread(1, "main");
  recording.threads[1].major_faults = 12;
  recording.swapped_kb = 4096;
  recording.lost = 3;
  recording.stolen = 0.3;
  recording.exited = true;
  recording.deadlocks = {{1, 2}};
  const auto made = report();
  EXPECT_EQ(made.cause, "deadlock");
  EXPECT_THAT(unusual(made),
              testing::UnorderedElementsAre("major_faults", "swap", "lost", "stolen", "exited"));
  EXPECT_THAT(to_text(made), HasSubstr("    next: vmstat 1\n"));
}

TEST_F(ReportTest, RepeatsTheVerdictIfTheScreenIsTooSmall) {
  busy(1);
  const auto made = report();
  const auto all = to_text(made, {.bold = true});
  const auto first = all.substr(0, all.find("\nnext: "));
  EXPECT_THAT(first, AllOf(StartsWith("\033[1mpid 7: CPU-bound"), EndsWith("app.py:10\033[0m")));
  const auto lines = static_cast<std::size_t>(std::ranges::count(all, '\n'));
  EXPECT_EQ(to_text(made, {.bold = true, .rows = lines + 1}), all);
  EXPECT_EQ(to_text(made, {.bold = true, .rows = lines}),
            all + "\n" + first + "\nnext: perf-pyinject top -p 7\n");
}

TEST_F(ReportTest, LeavesOutGroupsWithLittleWorkFromALongOutput) {
  for (std::uint32_t tid = 1; tid < 7; ++tid) {
    thread(tid, std::string(tid, 'a'));
    in(tid, 0);
    for (std::uint64_t ms = 1; ms < 90; ms += 10) {
      sample(tid, ms, CodeKind::kEvaluator, stack({"f" + std::to_string(ms % 3)}));
      out(tid, ms + 1, Use::kDisk, stack({"g" + std::to_string(ms % 3)}));
      in(tid, ms + 5);
    }
  }
  const auto text = to_text(report());
  EXPECT_LE(std::ranges::count(text, '\n'), 40);
  EXPECT_THAT(text, HasSubstr("\n3 more groups with less work\n"));
  EXPECT_THAT(text, HasSubstr("\naaa ("));
}

// In a block that no name of the process can end.
TEST_F(ReportTest, IsAPageInMarkdown) {
  in(1, 0);
  sample(1, 50, CodeKind::kEvaluator, stack({"``` **x**"}));
  const auto page = to_markdown(report(), "shop-1, 2026-11-30 10:00:00 UTC");
  EXPECT_THAT(page, StartsWith("**pid 7: CPU-bound in Python**\n\n"
                               "    shop-1, 2026-11-30 10:00:00 UTC\n"
                               "    pid 7: CPU-bound in Python: threads"));
  EXPECT_THAT(page, HasSubstr("\n    next: perf-pyinject top -p 7\n"));
  const auto block = page.substr(page.find("\n\n") + 2);
  for (const auto line : base::split(block, '\n')) {
    EXPECT_TRUE(line.empty() || line.starts_with("    ")) << line;
  }
}

TEST_F(ReportTest, IsPrintable) {
  thread(1, "bad\x1bname");
  busy(1);
  auto made = report();
  EXPECT_THAT(to_text(made), Not(HasSubstr("\x1b")));
  EXPECT_THAT(to_json(made), Not(HasSubstr("\x1b")));
}

TEST_F(ReportTest, HasTheSameTimesAsJson) {
  busy(1);
  thread(1, "main");
  const auto all = nlohmann::json::parse(to_json(report()));
  EXPECT_EQ(all.at("version"), 1);
  EXPECT_EQ(all.at("cause"), "cpu_python");
  const auto& group = all.at("groups").at(0);
  EXPECT_EQ(group.at("name"), "main");
  EXPECT_DOUBLE_EQ(group.at("wall_seconds"), 0.1);
  const auto& use = group.at("uses").at(0);
  EXPECT_EQ(use.at("use"), "python");
  EXPECT_EQ(use.at("idle"), false);
  EXPECT_DOUBLE_EQ(use.at("seconds"), 0.1);
  EXPECT_EQ(use.at("top").at(0).at("function"), "work");
}

}  // namespace
}  // namespace pyinject::why
