#include "cli/recipes.hpp"

#include "cli/command_line.hpp"
#include "unit/cli/mistake.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace pyinject::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using weave::TimedCall;

KnownEvents with_all() {
  return {.id_of = [](const std::string& tracepoint) -> std::optional<std::uint64_t> {
    return tracepoint.size();
  }};
}

KnownEvents with(std::map<std::string, std::uint64_t> ids) {
  return {.id_of = [ids = std::move(ids)](const std::string& tracepoint) {
    const auto found = ids.find(tracepoint);
    return found == ids.end() ? std::nullopt : std::optional{found->second};
  }};
}

Expansion expanded(const RecipeRequest& request, const KnownEvents& known = with_all()) {
  auto result = expand(request, known);
  EXPECT_EQ(result.index(), 0U);
  return std::get<Expansion>(std::move(result));
}

std::string why_not(const std::string& name, const KnownEvents& known) {
  const auto result = expand({.names = {name}}, known);
  return result.index() == 1 ? std::get<std::string>(result) : "expanded";
}

TEST(Recipes, AreAList) {
  EXPECT_THAT(parse_recipes("io"), ElementsAre("io"));
  EXPECT_THAT(parse_recipes("net,io,net"), ElementsAre("net", "io"));
  for (const auto* const list : {"disk", "io,", ",", "IO", "io,disk"}) {
    try {
      (void)parse_recipes(list);
      ADD_FAILURE() << list;
    } catch (const CommandLineError& error) {
      EXPECT_EQ(error.what(),
                fmt::format("--what {}: expected a list of io, net, alloc, memory, faults, malloc, "
                            "cache, locks, sched",
                            list));
      EXPECT_EQ(error.status(), record::kUsage);
    }
  }
}

TEST(Recipes, TimeTheSystemCallsThatExist) {
  const auto io = expanded({.names = {"io"}}, with({{"syscalls:sys_enter_read", 10},
                                                    {"syscalls:sys_exit_read", 9},
                                                    {"syscalls:sys_enter_fsync", 20},
                                                    {"syscalls:sys_exit_fsync", 19},
                                                    {"syscalls:sys_enter_connect", 30},
                                                    {"syscalls:sys_exit_connect", 29}}));
  EXPECT_EQ(io.events,
            "syscalls:sys_enter_read,syscalls:sys_enter_fsync,"
            "syscalls:sys_exit_read/call-graph=no/,syscalls:sys_exit_fsync/call-graph=no/");
  EXPECT_THAT(io.timed_calls,
              ElementsAre(TimedCall{.enter = 10, .exit = 9}, TimedCall{.enter = 20, .exit = 19}));
  EXPECT_THAT(io.notes, IsEmpty());
}

TEST(Recipes, CoverTheirCalls) {
  const std::map<std::string, std::vector<std::string>> all{
      {"io",
       {"openat", "read", "write", "pread64", "pwrite64", "readv", "writev", "fsync", "fdatasync"}},
      {"net", {"connect", "accept4", "sendto", "recvfrom", "sendmsg", "recvmsg", "poll"}},
      {"locks", {"futex"}}};
  for (const auto& [name, calls] : all) {
    const auto recipe = expanded({.names = {name}});
    for (const auto& call : calls) {
      EXPECT_THAT(recipe.events, HasSubstr("syscalls:sys_enter_" + call));
      EXPECT_THAT(recipe.events, HasSubstr("syscalls:sys_exit_" + call + "/call-graph=no/"));
    }
  }
}

TEST(Recipes, ExpandOtherEvents) {
  EXPECT_EQ(expanded({.names = {"faults"}}).events, "page-faults/period=1/");
  EXPECT_EQ(expanded({.names = {"cache"}}).events, "cache-misses");
  EXPECT_EQ(expanded({.names = {"sched"}}).events, "sched:sched_switch");
  const auto alloc = expanded({.names = {"alloc"}});
  EXPECT_EQ(alloc.events,
            "page-faults/period=1/,syscalls:sys_enter_brk,syscalls:sys_enter_mmap,"
            "syscalls:sys_enter_munmap,syscalls:sys_enter_mremap");
  EXPECT_THAT(alloc.timed_calls, IsEmpty());
  EXPECT_EQ(expanded({.names = {"faults", "alloc"}}).events, alloc.events);
  EXPECT_EQ(expanded({.names = {"malloc", "faults"}, .probes = {"g:malloc", "g:calloc"}}).events,
            "page-faults/period=1/,g:malloc,g:calloc");
}

TEST(Recipes, FollowMemoryUntilItIsGivenBack) {
  const auto memory = expanded({.names = {"memory"}}, with({{"syscalls:sys_enter_mmap", 10},
                                                            {"syscalls:sys_exit_mmap", 9},
                                                            {"syscalls:sys_enter_munmap", 20},
                                                            {"syscalls:sys_exit_munmap", 19}}));
  EXPECT_EQ(memory.events,
            "syscalls:sys_enter_mmap,syscalls:sys_exit_mmap/call-graph=no/,"
            "syscalls:sys_enter_munmap/call-graph=no/,syscalls:sys_exit_munmap/call-graph=no/");
  using weave::MemoryCall;
  EXPECT_THAT(memory.memory_calls,
              ElementsAre(MemoryCall{.kind = MemoryCall::Kind::kMap, .enter = 10, .exit = 9},
                          MemoryCall{.kind = MemoryCall::Kind::kUnmap, .enter = 20, .exit = 19}));
  EXPECT_THAT(expanded({.names = {"memory"}}).events, HasSubstr("sys_enter_mprotect,"));
  const auto told = expanded({.names = {"memory"}, .blocks = {"g:heap_alloc", "g:heap_free"}},
                             with({{"syscalls:sys_enter_brk", 10},
                                   {"syscalls:sys_exit_brk", 9},
                                   {"g:heap_alloc", 5},
                                   {"g:heap_free", 6}}));
  EXPECT_EQ(told.events,
            "syscalls:sys_enter_brk,g:heap_alloc,syscalls:sys_exit_brk/call-graph=no/,"
            "g:heap_free/call-graph=no/");
  EXPECT_THAT(told.memory_calls,
              ElementsAre(MemoryCall{.kind = MemoryCall::Kind::kBreak, .enter = 10, .exit = 9},
                          MemoryCall{.kind = MemoryCall::Kind::kAllocate, .enter = 5},
                          MemoryCall{.kind = MemoryCall::Kind::kFree, .enter = 6}));
  const auto refused = expand({.names = {"memory"}, .rate = true, .frequency = true}, {});
  ASSERT_EQ(refused.index(), 1U);
}

// Their ends come last, so that perf report shows the events with samples first.
TEST(Recipes, CanBeCombined) {
  EXPECT_EQ(expanded({.names = {"sched", "locks"}}).events,
            "syscalls:sys_enter_futex,sched:sched_switch,syscalls:sys_exit_futex/call-graph=no/");
}

TEST(Recipes, TimeNothingWithAFrequency) {
  const auto both = expanded({.names = {"locks", "faults"}, .rate = true, .frequency = true});
  EXPECT_EQ(both.events, "page-faults,syscalls:sys_enter_futex");
  EXPECT_THAT(both.timed_calls, IsEmpty());
  EXPECT_THAT(both.notes, ElementsAre("--what locks: with -F, only some of the calls are sampled, "
                                      "and none is timed"));
}

// A period has no effect on tracepoints.
TEST(Recipes, TimeEachCallWithAPeriod) {
  const auto both = expanded({.names = {"locks", "faults"}, .rate = true});
  EXPECT_EQ(both.events,
            "page-faults,syscalls:sys_enter_futex,syscalls:sys_exit_futex/call-graph=no/");
  EXPECT_EQ(both.timed_calls.size(), 1U);
  EXPECT_THAT(both.notes, IsEmpty());
}

TEST(Recipes, DoNotSampleSwitchesTwice) {
  const auto both = expanded({.names = {"sched", "faults"}, .off_cpu = true});
  EXPECT_EQ(both.events, "page-faults/period=1/");
  EXPECT_THAT(both.notes, ElementsAre(HasSubstr("--off-cpu already samples each switch")));
  EXPECT_EQ(expanded({.names = {"sched"}, .off_cpu = true}).events, "");
}

TEST(Recipes, NameTheNextBestWay) {
  auto known = with_all();
  known.cache_misses = false;
  EXPECT_THAT(why_not("cache", known), HasSubstr("no hardware counters"));
  EXPECT_THAT(why_not("cache", known), HasSubstr("-e cpu-clock"));
  known.why_no_tracepoints = "tracefs is not mounted: mount it";
  for (const auto* const name : {"io", "net", "locks", "sched"}) {
    EXPECT_THAT(why_not(name, known), HasSubstr("tracefs is not mounted: mount it; or --off-cpu"));
  }
  EXPECT_THAT(why_not("alloc", known), HasSubstr("or --what faults"));
  EXPECT_EQ(why_not("faults", known), "expanded");
  EXPECT_THAT(why_not("io", with({})), HasSubstr("CONFIG_FTRACE_SYSCALLS"));
  EXPECT_THAT(why_not("sched", with({})), HasSubstr("lacks the tracepoints (sched:sched_switch)"));
}

TEST(WhatOption, ImpliesTheEngineThatKnowsLines) {
  const auto record = [](std::vector<std::string> more) {
    std::vector<std::string> words{"record", "-p", "1", "--what", "io"};
    words.insert(words.end(), more.begin(), more.end());
    return std::get<RecordCommand>(parse_command_line(words, {}).options);
  };
  EXPECT_EQ(record({}).record.engine, record::EngineChoice::kBpf);
  EXPECT_THAT(record({}).what, ElementsAre("io"));
  EXPECT_EQ(record({"--engine", "trampoline"}).record.engine, record::EngineChoice::kTrampoline);
  EXPECT_EQ(record({"--engine", "auto"}).record.engine, record::EngineChoice::kAuto);
  EXPECT_THAT(mistake({"record", "-a", "--what", "malloc"}).text,
              HasSubstr("--what malloc is for running processes: -p PID"));
  EXPECT_THAT(mistake({"record", "-p", "1", "--functions", "--what", "io"}).text,
              HasSubstr("--functions does not work with --what"));
}

}  // namespace
}  // namespace pyinject::cli
