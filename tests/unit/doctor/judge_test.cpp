#include "doctor/judge.hpp"

#include "doctor/report.hpp"
#include "procfs/own_rights.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <string>

namespace pyinject::doctor {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr unsigned long long kAll = ~0ULL;

unsigned long long without(procfs::Capability capability) {
  const auto admin = 1ULL << static_cast<unsigned>(procfs::Capability::kSysAdmin);
  return kAll & ~admin & ~(1ULL << static_cast<unsigned>(capability));
}

// Root on a machine that lacks nothing.
Facts healthy() {
  Facts facts;
  facts.parts = {{.name = "--engine bpf", .built_in = true, .needs = "libbpf", .cost = "no bpf"}};
  facts.perf = {.path = "/usr/bin/perf", .major = 6, .minor = 1, .has_control = true};
  facts.perf.distribution = "debian ";
  facts.kernel = {.release = "6.18.1-amd64", .btf = true, .paranoid = 2, .kernel_names = true};
  facts.kernel.tracefs_mounted = true;
  facts.kernel.tracefs_readable = true;
  facts.own = {.root = true, .capabilities = kAll};
  facts.directory = {.path = "/root", .writable = true, .free_bytes = 1ULL << 40U};
  return facts;
}

// A user without capabilities on that machine.
Facts of_a_user() {
  auto facts = healthy();
  facts.own.root = false;
  facts.own.capabilities = 0;
  facts.own.bpf =
      bpf::Unavailable{.name = "no_rights", .found = "refused", .remedy = "run as root"};
  return facts;
}

Check check_of(const Facts& facts, std::string_view name) {
  const auto judgement = judge(facts);
  const auto found = std::ranges::find(judgement.checks, name, &Check::name);
  return found == judgement.checks.end() ? Check{.name = "none", .found = "none"} : *found;
}

TEST(Doctor, FindsNothingOnAHealthyMachine) {
  const auto judgement = judge(healthy());
  for (const auto& check : judgement.checks) {
    EXPECT_EQ(check.state, State::kOk) << check.name << ": " << check.found;
    EXPECT_THAT(check.cost + check.remedy + check.command, IsEmpty()) << check.name;
  }
  EXPECT_TRUE(judgement.works());
}

struct Broken {
  std::string name;  // of the check that finds it
  std::function<void(Facts&)> break_it;
  State state = State::kLimited;
  std::string command;  // part of it; empty: the remedy counts
  bool user = false;    // not root
};

// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest looks for
void PrintTo(const Broken& broken, std::ostream* stream) { *stream << broken.name; }

class DoctorFinds : public testing::TestWithParam<Broken> {};

TEST_P(DoctorFinds, TheCauseItsCostAndTheCommand) {
  const auto& broken = GetParam();
  auto facts = broken.user ? of_a_user() : healthy();
  broken.break_it(facts);
  const auto check = check_of(facts, broken.name);
  EXPECT_EQ(check.state, broken.state) << check.found;
  EXPECT_THAT(check.cost, Not(IsEmpty()));
  EXPECT_THAT(check.command, HasSubstr(broken.command));
  EXPECT_THAT(check.command + check.remedy, Not(IsEmpty()));
  EXPECT_EQ(judge(facts).works(), broken.state != State::kFailed);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, DoctorFinds,
    testing::Values(
        Broken{"perf",
               [](Facts& facts) {
                 facts.perf.problem =
                     "perf: cannot run 'perf': ENOENT: install linux-perf (Debian)";
               },
               State::kLimited, "apt-get install linux-perf"},
        Broken{"perf",
               [](Facts& facts) {
                 facts.perf.problem = "perf: cannot run 'x': ENOENT: install linux-perf (Debian)";
                 facts.perf.named = true;
               },
               State::kFailed, "apt-get install linux-perf"},
        Broken{"perf_control", [](Facts& facts) { facts.perf.has_control = false; }, State::kFailed,
               "apt-get install linux-perf"},
        Broken{"perf_addr2line", [](Facts& facts) { facts.perf.lacks_addr2line = true; },
               State::kLimited, "apt-get install binutils"},
        Broken{"perf_record", [](Facts& facts) { facts.perf.record_failure = "status 255"; },
               State::kFailed, ""},
        Broken{"paranoid", [](Facts&) {}, State::kLimited,
               "sudo sysctl kernel.perf_event_paranoid=1", true},
        Broken{"paranoid",
               [](Facts& facts) {
                 facts.kernel.paranoid = 4;
                 facts.perf.record_failure = "perf may not open events";
               },
               State::kFailed, "sudo sysctl kernel.perf_event_paranoid=1", true},
        Broken{"max_stack", [](Facts& facts) { facts.kernel.max_stack = 16; }, State::kLimited,
               "sysctl kernel.perf_event_max_stack=127"},
        Broken{"mlock", [](Facts& facts) { facts.kernel.mlock_kb = 64; }, State::kLimited,
               "sudo sysctl kernel.perf_event_mlock_kb=516", true},
        Broken{"kernel", [](Facts& facts) { facts.kernel.release = "5.10.0-28-amd64"; },
               State::kLimited, ""},
        Broken{"kernel", [](Facts& facts) { facts.kernel.release = "4.19"; }, State::kFailed, ""},
        Broken{"btf", [](Facts& facts) { facts.kernel.btf = false; }, State::kLimited, ""},
        Broken{"lockdown", [](Facts& facts) { facts.kernel.locked_down = true; }, State::kLimited,
               ""},
        Broken{"bpf",
               [](Facts& facts) {
                 facts.own.bpf = bpf::Unavailable{"no_memory", "none", "free"};
               },
               State::kLimited, ""},
        Broken{
            "cap_sys_ptrace",
            [](Facts& facts) { facts.own.capabilities = without(procfs::Capability::kSysPtrace); },
            State::kLimited, ""},
        Broken{"cap_perfmon", [](Facts&) {}, State::kLimited, "+perfmon", true},
        Broken{"cap_bpf", [](Facts&) {}, State::kLimited, "+bpf", true},
        Broken{"yama", [](Facts& facts) { facts.kernel.ptrace_scope = 1; }, State::kFailed,
               "sudo sysctl kernel.yama.ptrace_scope=0", true},
        Broken{"yama", [](Facts& facts) { facts.kernel.ptrace_scope = 3; }, State::kFailed,
               "ptrace_scope"},
        Broken{"seccomp",
               [](Facts& facts) {
                 facts.own.seccomp = true;
                 facts.own.blocked = {{.name = "perf_event_open"}};
               },
               State::kFailed, ""},
        Broken{"kptr_restrict",
               [](Facts& facts) {
                 facts.kernel.kptr_restrict = 2;
                 facts.kernel.kernel_names = false;
               },
               State::kLimited, "sysctl kernel.kptr_restrict=1"},
        Broken{"tracefs", [](Facts& facts) { facts.kernel.tracefs_mounted = false; },
               State::kLimited, "mount -t tracefs"},
        Broken{"pid_namespace", [](Facts& facts) { facts.own.first_pid_namespace = false; },
               State::kLimited, ""},
        Broken{"pid_namespace", [](Facts& facts) { facts.own.own_proc = false; }, State::kFailed,
               "mount -t proc proc /proc"},
        Broken{"hidepid", [](Facts& facts) { facts.own.hidden_processes = "2"; }, State::kLimited,
               "sudo mount -o remount,hidepid=0 /proc", true},
        Broken{"directory", [](Facts& facts) { facts.directory.writable = false; }, State::kFailed,
               "mktemp"},
        Broken{"directory", [](Facts& facts) { facts.directory.free_bytes = 0; }, State::kFailed,
               "mktemp"},
        Broken{"directory", [](Facts& facts) { facts.directory.free_bytes = 99 << 20U; },
               State::kLimited, "mktemp"},
        Broken{"build", [](Facts& facts) { facts.parts.front().built_in = false; }, State::kLimited,
               "scripts/setup build"}));

TEST(Doctor, CountsCapabilitiesInsteadOfSettings) {
  auto facts = healthy();
  facts.kernel.paranoid = 4;
  facts.kernel.ptrace_scope = 2;
  facts.kernel.mlock_kb = 64;
  facts.own.hidden_processes = "2";
  for (const auto* const name : {"paranoid", "yama", "mlock", "hidepid"}) {
    const auto check = check_of(facts, name);
    EXPECT_EQ(check.state, State::kOk) << name;
    EXPECT_THAT(check.found, HasSubstr("overrides it")) << name;
  }
}

TEST(Doctor, NamesThePackageOfTheDistribution) {
  auto facts = healthy();
  facts.perf.has_control = false;
  facts.perf.distribution = "ubuntu debian ";
  EXPECT_EQ(check_of(facts, "perf_control").command, "apt-get install linux-tools-$(uname -r)");
  facts.perf.distribution = "\"rocky\" \"rhel centos fedora\" ";
  EXPECT_EQ(check_of(facts, "perf_control").command, "dnf install perf");
  facts.perf.distribution = "unknown";
  EXPECT_EQ(check_of(facts, "perf_control").command, "");
}

TEST(Doctor, TriesNoRecordingWithoutPerf) {
  auto facts = healthy();
  facts.perf = {.problem = "perf: cannot run 'perf' (on PATH): none: install linux-perf"};
  EXPECT_EQ(check_of(facts, "perf").found, "cannot run 'perf' (on PATH): none");
  EXPECT_EQ(check_of(facts, "perf").remedy, "install linux-perf");
  EXPECT_EQ(check_of(facts, "perf_record").name, "none");
}

TEST(Doctor, BlocksOnlyTheEngineThatNeedsTheMissingPart) {
  auto facts = healthy();
  facts.kernel.btf = false;
  facts.own.bpf = bpf::Unavailable{"no_btf", "no type information", "another kernel"};
  auto judgement = judge(facts);
  EXPECT_TRUE(judgement.engines.front().works());
  EXPECT_THAT(judgement.engines.back().blocked_by, ElementsAre("btf", "bpf"));
  EXPECT_TRUE(judgement.works());

  facts.own.blocked = {{.name = "ptrace", .kills = true}};
  judgement = judge(facts);
  EXPECT_THAT(judgement.engines.front().blocked_by, ElementsAre("seccomp"));
  EXPECT_FALSE(judgement.works());
}

ProcessFacts refused(python::Reason reason, bool for_bpf) {
  ProcessFacts process;
  process.trampoline.pid = process.bpf.pid = base::Pid{4711};
  process.trampoline.refusal = python::Refusal{reason, "found this", "do that"};
  if (for_bpf) {
    process.bpf.refusal = process.trampoline.refusal;
  }
  return process;
}

TEST(Doctor, JudgesEachEngineForAProcess) {
  auto facts = healthy();
  facts.processes = {refused(python::Reason::kUnsafeExit, false)};
  EXPECT_TRUE(judge(facts).works());
  EXPECT_THAT(to_text(judge(facts)), HasSubstr("found this (unsafe_exit): do that"));
  facts.processes.push_back(refused(python::Reason::kNotPython, true));
  EXPECT_FALSE(judge(facts).works());
}

TEST(Doctor, BelievesTheDetectorRatherThanYama) {
  auto facts = of_a_user();
  facts.kernel.ptrace_scope = 1;
  facts.processes.emplace_back();  // not refused
  const auto judgement = judge(facts);
  EXPECT_FALSE(judgement.engines.front().works());
  EXPECT_TRUE(judgement.processes.front().engines.front().works());
}

TEST(Doctor, NamesThePackagesOfSymbols) {
  auto facts = healthy();
  facts.processes.emplace_back();
  auto& process = facts.processes.front();
  process.trampoline.version = python::Version{.major = 3, .minor = 11};
  process.interpreter = CodeFile{.path = "/usr/bin/python3.11"};
  process.libc = CodeFile{.path = "/usr/lib/x86_64-linux-gnu/libc.so.6"};
  auto checks = judge(facts).processes.front().checks;
  ASSERT_EQ(checks.size(), 2U);
  EXPECT_EQ(checks[0].command, "apt-get install python3.11-dbg");
  EXPECT_EQ(checks[1].command, "apt-get install libc6-dbg");
  process.other_mounts = true;
  checks = judge(facts).processes.front().checks;
  EXPECT_EQ(checks[1].command, "");
  EXPECT_THAT(checks[1].remedy, HasSubstr("where perf report runs"));
}

TEST(Doctor, PrintsForPrograms) {
  auto facts = healthy();
  facts.kernel.max_stack = 16;
  facts.processes = {refused(python::Reason::kUnsafeExit, false)};
  const auto json = nlohmann::json::parse(to_json(judge(facts)));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["works"], true);
  EXPECT_THAT(json["checks"], Contains(testing::Truly([](const auto& check) {
                return check["name"] == "max_stack" && check["state"] == "limited" &&
                       check["command"] == "sysctl kernel.perf_event_max_stack=127";
              })));
  const auto& engines = json["processes"][0]["engines"];
  EXPECT_EQ(engines[0]["reason"], "unsafe_exit");
  EXPECT_EQ(engines[1]["works"], true);
  EXPECT_TRUE(engines[1]["reason"].is_null());
}

TEST(Doctor, PrintsTheCostAndTheFixBelowEachCheck) {
  auto facts = healthy();
  facts.kernel.max_stack = 16;
  EXPECT_THAT(to_text(judge(facts)),
              HasSubstr("limited max_stack           kernel.perf_event_max_stack is 16\n"
                        "        cost: callchains of the kernel end after 16 functions\n"
                        "        fix:  sysctl kernel.perf_event_max_stack=127\n"));
}

}  // namespace
}  // namespace pyinject::doctor
