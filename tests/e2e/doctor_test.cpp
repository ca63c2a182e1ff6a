// Set-ups in which something is missing: doctor names it, and its command mends it.
#include "e2e/doctored_machine.hpp"
#include "support/bpf_engine.hpp"
#include "support/find_perf.hpp"
#include "support/interpreters.hpp"
#include "support/own_tmp.hpp"
#include "support/patience.hpp"
#include "support/python_process.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::HasSubstr;

constexpr auto kNobodyId = "65534";
constexpr auto kWaits = "print('ready', flush=True); import sys; sys.stdin.readline()";

// Settings in memory instead of the kernel's: sysctl(8) changes only these.
std::string settings(const std::string& lines) {
  return "mount -t tmpfs -o mode=755 none /proc/sys/kernel\ncd /proc/sys/kernel\nmkdir yama\n" +
         lines;
}

class Doctor : public DoctoredMachine {};

TEST_F(Doctor, SettingsAreMendedByItsCommands) {
  if (!make(settings("echo 1 >yama/ptrace_scope; echo 4 >perf_event_paranoid\n"
                     "echo 16 >perf_event_max_stack; echo 64 >perf_event_mlock_kb\n"
                     "echo 1 >kptr_restrict\n"))) {
    GTEST_SKIP() << "nothing can be mounted";
  }
  const auto arguments = "--perf " + debians_perf();
  const auto broken = doctor(arguments, kNobodyId, "cd /tmp &&");
  EXPECT_EQ(broken.status, 1);
  EXPECT_EQ(broken.state("paranoid"), "failed") << broken.report;
  EXPECT_EQ(broken.state("perf_record"), "failed");
  EXPECT_EQ(broken.state("yama"), "failed");
  EXPECT_EQ(broken.state("max_stack"), "limited");
  EXPECT_EQ(broken.state("mlock"), "limited");
  EXPECT_EQ(broken.state("kptr_restrict"), "limited");
  for (const auto* const name : {"paranoid", "yama", "max_stack", "mlock"}) {
    mend(broken.check(name));
  }
  const auto mended = doctor(arguments, kNobodyId, "cd /tmp &&");
  EXPECT_EQ(mended.status, 0) << mended.report;
  for (const auto* const name : {"paranoid", "perf_record", "yama", "max_stack", "mlock"}) {
    EXPECT_EQ(mended.state(name), "ok") << name;
  }
}

TEST_F(Doctor, NamesTheKernelsLacksAndMendsSome) {
  if (!make(settings("echo 3 >yama/ptrace_scope; echo 2 >kptr_restrict\n") +
            "mount -t tmpfs none /sys/kernel/btf\n"
            "mount -t tmpfs none /sys/kernel/security\n"
            "echo 'none integrity [confidentiality]' >/sys/kernel/security/lockdown\n"
            "mount -t tmpfs none /sys/kernel/tracing\n"
            "if [ -d /sys/kernel/debug ]; then mount -t tmpfs none /sys/kernel/debug; fi\n"
            "echo '0000000000000000 T _text' >/sys/kernel/security/kallsyms\n"
            "mount --bind /sys/kernel/security/kallsyms /proc/kallsyms\n"
            "mkdir /sys/kernel/security/full\n"
            "mount -t tmpfs -o size=64k none /sys/kernel/security/full\n"
            "head -c 65536 /dev/zero >/sys/kernel/security/full/data\n")) {
    GTEST_SKIP() << "nothing can be mounted";
  }
  const auto broken = doctor("", "", "cd /sys/kernel/security/full &&");
  EXPECT_EQ(broken.status, 1);
  for (const auto* const name : {"btf", "lockdown", "bpf", "kptr_restrict", "tracefs"}) {
    EXPECT_EQ(broken.state(name), "limited") << name;
  }
  EXPECT_EQ(broken.state("yama"), "failed");
  EXPECT_THAT(broken.check("yama").dump(), HasSubstr("reboot"));
  EXPECT_EQ(broken.state("directory"), "failed");
  mend(broken.check("tracefs"));
  const auto elsewhere = broken.check("directory").value("command", "false");
  const auto mended = doctor("", "", elsewhere + " &&");
  EXPECT_EQ(mended.state("tracefs"), "ok");
  EXPECT_THAT(mended.state("directory"), AnyOf("ok", "limited")) << elsewhere;
}

TEST_F(Doctor, GetsAUserHisRights) {
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  const auto closed = directory_ / "closed";
  fs::create_directory(closed);
  const auto broken = doctor("", kNobodyId, "cd " + closed + " &&");
  EXPECT_EQ(broken.status, 1);
  for (const auto* const name : {"cap_sys_ptrace", "cap_perfmon", "cap_bpf", "bpf"}) {
    EXPECT_EQ(broken.state(name), "limited") << name;
  }
  EXPECT_EQ(broken.state("directory"), "failed");
  EXPECT_THAT(broken.check("directory").dump(), HasSubstr("Permission denied"));
  // The command as nobody's sudo would run it.
  const auto command = broken.check("cap_bpf").value("command", "");
  const auto mended = shell(
      "cd /tmp; id() { echo 65534; }; sudo() { \"$@\"; }\n"
      "PATH=${0%/*}:$PATH; eval \"" +
      [&] {
        std::string escaped;
        for (const char c : command) {
          escaped += c == '$' ? "\\$" : std::string{c};
        }
        return escaped;
      }() +
      " --json\"");
  const auto report = nlohmann::json::parse(mended.out, nullptr, false);
  ASSERT_FALSE(report.is_discarded()) << mended.out << mended.err;
  const Opinion opinion{.status = mended.status.code, .report = report};
  for (const auto* const name : {"cap_sys_ptrace", "cap_perfmon", "cap_bpf", "bpf", "paranoid"}) {
    EXPECT_EQ(opinion.state(name), "ok") << name << opinion.report;
  }
  EXPECT_EQ(mended.status, ExitStatus{});
}

TEST_F(Doctor, FindsThePerfThatIsMissingOrUnfit) {
  const auto real = find_perf("perf").value();
  const auto none = doctor("", "", "cd /tmp && PATH=/nonexistent");
  EXPECT_EQ(none.status, 0);
  EXPECT_EQ(none.state("perf"), "limited");
  EXPECT_THAT(none.check("perf").dump(),
              AllOf(HasSubstr("--perf PATH"), HasSubstr("record without it")));
  const auto named = doctor("--perf /nonexistent");
  EXPECT_EQ(named.status, 1);
  EXPECT_EQ(named.state("perf"), "failed");

  const auto old =
      directory_.file("old", "#!/bin/sh\n[ \"$2\" = -h ] || exec " + real + " \"$@\"\n" + real +
                                 " record -h 2>&1 | grep -v -e --control\n");
  fs::permissions(old, fs::perms::owner_all);
  const auto unfit = doctor("--perf " + old);
  EXPECT_EQ(unfit.status, 1);
  EXPECT_EQ(unfit.state("perf"), "ok");
  EXPECT_EQ(unfit.state("perf_control"), "failed");

  const auto wrapper = directory_.file(
      "wrapper", "#!/bin/sh\necho 'WARNING: perf not found for kernel 5.15.0-1' >&2\nexit 2\n");
  fs::permissions(wrapper, fs::perms::owner_all);
  EXPECT_THAT(doctor("--perf " + wrapper).check("perf").dump(), HasSubstr("is a wrapper"));

  const auto mended = doctor("--perf " + real, "", "cd /tmp && PATH=/nonexistent:/bin");
  EXPECT_EQ(mended.state("perf"), "ok");
  EXPECT_EQ(mended.state("perf_control"), "ok");
}

TEST_F(Doctor, FindsTheBordersOfAContainer) {
  const auto inside = shell(
      "unshare --mount --pid --fork --kill-child sh -c '\"$0\" doctor --json; "
      "mount -t proc proc /proc && \"$0\" doctor' \"$0\"");
  EXPECT_THAT(inside.out, HasSubstr("/proc belongs to another pid namespace"));
  EXPECT_THAT(inside.out, HasSubstr("mount -t proc proc /proc"));
  EXPECT_THAT(inside.out, HasSubstr("limited pid_namespace"));
  EXPECT_THAT(inside.out, HasSubstr("--pid=host"));
}

TEST_F(Doctor, FindsHiddenProcesses) {
  if (!make("mount -t proc -o hidepid=2 proc /proc")) {  // an instance of its own
    GTEST_SKIP() << "nothing can be mounted";
  }
  const auto broken = doctor("-p 1", kNobodyId, "cd /tmp &&");
  EXPECT_EQ(broken.state("hidepid"), "limited");
  EXPECT_EQ(broken.verdict(0, kTrampoline), "no_such_process");
  mend(broken.check("hidepid"));
  const auto mended = doctor("-p 1", kNobodyId, "cd /tmp &&");
  EXPECT_EQ(mended.state("hidepid"), "ok");
  EXPECT_EQ(mended.verdict(0, kTrampoline), "no_permission");
}

// argv: the program to execute. perf_event_open(2) fails, ptrace(2) kills.
constexpr auto kFilteredExec = R"(
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
def statement(code, k, jt=0, jf=0):
    return struct.pack('HBBI', code, jt, jf, k)
program = [statement(0x20, 0)]
for number, action in ((298, 0x50001), (101, 0x80000000)):
    program += [statement(0x15, number, 0, 1), statement(0x06, action)]
program.append(statement(0x06, 0x7fff0000))
buffer = ctypes.create_string_buffer(b''.join(program))
class Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('filter', ctypes.c_void_p)]
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(len(program), ctypes.addressof(buffer)))) == 0
os.execv(sys.argv[1], sys.argv[1:])
)";

TEST_F(Doctor, FindsItsOwnSeccompFilter) {
  const auto script = directory_.file("filtered.py", kFilteredExec);
  const auto broken = doctor("", "", "cd /tmp && python3 " + script);
  EXPECT_EQ(broken.status, 1);
  EXPECT_EQ(broken.state("seccomp"), "failed");
  EXPECT_THAT(broken.check("seccomp").dump(), HasSubstr("perf_event_open fails"));
  EXPECT_THAT(broken.check("seccomp").dump(), HasSubstr("ptrace kills the caller"));
  EXPECT_THAT(broken.check("seccomp").dump(), HasSubstr("seccomp=unconfined"));
}

std::string number(const PythonProcess& process) { return std::to_string(process.pid().value()); }

TEST_F(Doctor, SaysWhatEachEngineWouldDoWithAProcess) {
  const auto python = plain_interpreter(14);
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty() || !python) {
    GTEST_SKIP() << "no CPython 3.14, or " << lacks;
  }
  const PythonProcess ready{*python, kWaits};
  Interpreter without_tmp = *python;
  const auto mounted = unshared_with_tmpfs("", "ro");
  without_tmp.command.insert(without_tmp.command.begin(), mounted.begin(), mounted.end());
  const PythonProcess read_only{without_tmp, kWaits};
  ChildProcess other{{"sh", "-c", "echo ready; read line"}};
  ASSERT_EQ(other.read_line(base::Deadline::after(kPatience)), "ready");
  const auto fine = doctor("-p " + number(ready), "", "cd /tmp &&");
  EXPECT_EQ(fine.status, 0) << fine.report;
  EXPECT_EQ(fine.verdict(0, kTrampoline), "ready");
  EXPECT_EQ(fine.verdict(0, kBpf), "ready");

  const auto all = doctor(fmt::format("-p {},{},4194304", number(read_only), other.pid().value()),
                          "", "cd /tmp &&");
  EXPECT_EQ(all.status, 1);
  EXPECT_EQ(all.verdict(0, kTrampoline), "map_directory");
  EXPECT_EQ(all.verdict(0, kBpf), "ready");
  EXPECT_EQ(all.verdict(1, kTrampoline), "not_python");
  EXPECT_EQ(all.verdict(1, kBpf), "not_python");
  EXPECT_EQ(all.verdict(2, kBpf), "no_such_process");

  const auto foreign = doctor("-p " + number(ready), kNobodyId, "cd /tmp &&");
  EXPECT_EQ(foreign.status, 1);
  EXPECT_EQ(foreign.verdict(0, kTrampoline), "no_permission");
  EXPECT_EQ(foreign.verdict(0, kBpf), "no_permission");
}

constexpr auto kTraces = R"(
import ctypes, sys
assert ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), 0, 0) == 0  # PTRACE_SEIZE
print('ready', flush=True)
sys.stdin.readline()
)";

TEST_F(Doctor, NamesProcessesThatOnlyOneEngineOrNoneCanRecord) {
  const auto traced_by = plain_interpreter(14);
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty() || !traced_by) {
    GTEST_SKIP() << "no CPython 3.14, or " << lacks;
  }
  const PythonProcess traced{*traced_by, kWaits};
  PythonOptions traces;
  traces.args = {number(traced)};
  const PythonProcess tracer{*traced_by, kTraces, traces};
  std::string pids = number(traced);
  std::optional<PythonProcess> threaded;
  if (const auto python =
          find_interpreter({.root = false, .free_threaded = true, .only_read = true})) {
    threaded.emplace(*python, kWaits);
    pids += "," + number(*threaded);
  }
  const auto all = doctor("-p " + pids, "", "cd /tmp &&");
  EXPECT_EQ(all.verdict(0, kTrampoline), "traced");
  if (threaded) {
    EXPECT_EQ(all.verdict(1, kTrampoline), "free_threaded");
    EXPECT_EQ(all.verdict(1, kBpf), "ready");
  }
}

}  // namespace
}  // namespace pyinject::test
