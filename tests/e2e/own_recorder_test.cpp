// `record` without perf: by the tool's own recorder. Stock perf reads what it writes.
#include "base/text.hpp"
#include "e2e/both_engines.hpp"
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "pyinject/base/deadline.hpp"
#include "support/bpf_engine.hpp"
#include "support/find_perf.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/python_process.hpp"
#include "support/stand_in_perf.hpp"
#include "support/temp_dir.hpp"
#include "support/until_worked.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <unistd.h>

namespace pyinject::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class OwnRecorder : public testing::TestWithParam<Recorded> {
 protected:
  void SetUp() override {
    if (GetParam().engine == "bpf") {
      if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
        GTEST_SKIP() << lacks;
      }
    }
  }
  [[nodiscard]] std::string data() const { return directory_ / "data"; }
  [[nodiscard]] std::vector<std::string> arguments(const std::string& pid) const {
    return {"-p",         pid,   "--engine", GetParam().engine,
            "--recorder", "own", "-e",       "cpu-clock",
            "-F",         "999", "-o",       data()};
  }

 private:
  TempDir directory_;
};
INSTANTIATE_TEST_SUITE_P(Pythons, OwnRecorder, testing::ValuesIn(recordings()), recorded_name);

TEST_P(OwnRecorder, RecordsWholeStacksThatEveryPerfReads) {
  ServedTree tree{GetParam().python};
  RunningRecord record{arguments(tree.pid())};
  tree.serve(10, std::chrono::milliseconds{400});
  EXPECT_EQ(record.finish(), ExitStatus{}) << record.child().err();
  for (const auto& perf : perfs_that_read("perf")) {
    SCOPED_TRACE(perf);
    expect_right(count_named(read_samples(perf, data()), tree.pid()), record.child().err());
  }
  const auto shown = run({tool(), "report", "--json", data()});
  EXPECT_EQ(shown.status, ExitStatus{}) << shown.err;
  const auto table = json::parse(shown.out).at("tables").at(0);
  EXPECT_EQ(table.at("event"), "cpu-clock");
  EXPECT_EQ(table.at("all"), read_samples("perf", data()).size());
}

TEST_P(OwnRecorder, DescribesTheMachineAsPerfDoes) {
  ServedTree tree{GetParam().python};
  RunningRecord record{arguments(tree.pid())};
  tree.serve(1);
  EXPECT_EQ(record.finish(), ExitStatus{}) << record.child().err();
  const auto header = run({"perf", "report", "--header-only", "-I", "-i", data()});
  for (const auto* const field :
       {"# hostname : ", "# os release : ", "# arch : ", "# nrcpus online : ", "# cpudesc : ",
        "# total memory : ", "# cmdline : ", "# event : name = cpu-clock, ",
        "# clockid: monotonic (1)", "# time of first sample : ", "# sibling sockets : "}) {
    EXPECT_THAT(header.out, HasSubstr(field)) << header.err;
  }
  const auto ids = run({"perf", "buildid-list", "-i", data()});
  EXPECT_THAT(ids.out, AllOf(HasSubstr("[kernel.kallsyms]"), HasSubstr("/libc.so.6")));
}

// Bytes of a file that has more than what it begins with.
constexpr std::uintmax_t kSomeSamples = 20'000;

class OwnRecorderOfOne : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    python_ = plain_interpreter(13);
    if (!python_) {
      GTEST_SKIP() << "no CPython 3.13 (scripts/pythons)";
    }
  }
  [[nodiscard]] const Interpreter& python() const { return *python_; }
  [[nodiscard]] std::string path_of(const std::string& name) const { return directory_ / name; }
  // An environment in which there is no perf.
  [[nodiscard]] ChildOptions without_perf() const {
    std::filesystem::create_directories(directory_ / "nothing");
    ChildOptions options;
    options.env["PATH"] = directory_ / "nothing";
    options.unset = {"PERF"};
    return options;
  }
  [[nodiscard]] RunResult run_without_perf(const std::vector<std::string>& words) const {
    return run(words, {.child = without_perf(), .input = {}, .deadline = kPatience});
  }

 private:
  TempDir directory_;
  std::optional<Interpreter> python_;
};

TEST_F(OwnRecorderOfOne, TakesThePlaceOfAPerfThatIsNotInstalled) {
  ServedTree tree{python()};
  const auto data = path_of("data");
  RunningRecord record{
      {"-p", tree.pid(), "--engine", "bpf", "-e", "cpu-clock", "-o", data},
      {"/bin/sh", "-c", fmt::format("T=$1; shift; PATH={} exec \"$T\" \"$@\"", path_of("nothing")),
       "sh", tool()}};
  tree.serve(10, std::chrono::milliseconds{200});
  EXPECT_EQ(record.finish(), ExitStatus{}) << record.child().err();
  EXPECT_THAT(record.child().err(), AllOf(HasSubstr("perf is not installed: recording without it"),
                                          HasSubstr("next: perf-pyinject report " + data + "\n"),
                                          Not(HasSubstr("perf report -i"))));
  const auto report = run_without_perf({tool(), "report", data});
  EXPECT_EQ(report.status, ExitStatus{}) << report.err;
  for (const auto& chain : served_chains()) {
    EXPECT_THAT(report.out, HasSubstr(chain.back()));
  }
  const auto page = path_of("page.html");
  const auto drawn = run_without_perf({tool(), "flamegraph", tree.pid(), "-d", "1", "-o", page});
  EXPECT_EQ(drawn.status, ExitStatus{}) << drawn.err;
  EXPECT_TRUE(std::filesystem::exists(page));
}

TEST_F(OwnRecorderOfOne, NamesTheOptionsThatNeedPerf) {
  const PythonProcess target{python(), "print('ready', flush=True)\ninput()"};
  const auto pid = std::to_string(target.pid().value());
  const auto refused = run({tool(), "record", "--recorder", "own", "-p", pid, "-o", path_of("data"),
                            "--filter", "a == 1", "-d", "1"});
  EXPECT_EQ(refused.status, (ExitStatus{.code = 129}));
  EXPECT_THAT(refused.err,
              HasSubstr("error: --filter a == 1 needs perf: apt install linux-perf (Debian)"));
  EXPECT_FALSE(std::filesystem::exists(path_of("data")));
}

// With the tracepoints' formats, perf prints their fields.
TEST_F(OwnRecorderOfOne, RecordsSystemCallsWithTheirFields) {
  if (!has_tracepoints()) {
    GTEST_SKIP() << "no tracefs";
  }
  const PythonProcess target{python(), R"(
import os
null = os.open('/dev/null', os.O_WRONLY)
print('ready', flush=True)
while True:
    os.write(null, b'seven..')
)"};
  const auto data = path_of("data");
  const auto recorded =
      run({tool(), "record", "--recorder", "own", "-p", std::to_string(target.pid().value()), "-o",
           data, "--what", "io", "-d", "1"});
  EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  const auto script = run({"perf", "script", "-i", data, "-F", "event,trace"});
  EXPECT_THAT(script.out, HasSubstr("count: 0x00000007")) << script.err;
  const auto report = json::parse(run({tool(), "report", "--json", data}).out);
  const auto tables = report.at("tables");
  const auto writes = std::ranges::find_if(tables, [](const json& table) {
    return table.at("event").get<std::string>().starts_with("syscalls:sys_enter_write");
  });
  ASSERT_NE(writes, tables.end()) << report;
  EXPECT_EQ(writes->at("unit"), "ns") << "the calls are timed";
}

// With stack copies, no sample fits into a ring of one page.
TEST_F(OwnRecorderOfOne, TellsWhichSamplesAreLost) {
  ServedTree tree{python()};
  RunningRecord record{{"-p", tree.pid(), "--engine", "trampoline", "--recorder", "own", "-e",
                        "cpu-clock", "-F", "999", "-m", "1", "--call-graph", "dwarf,16384", "-o",
                        path_of("data")}};
  tree.serve(10, std::chrono::milliseconds{200});
  (void)record.finish();
  EXPECT_THAT(record.child().err(), HasSubstr("up to 100.0 % of the samples: "));
}

// perf unwinds the copied stacks of a file that the tool has not completed.
TEST_F(OwnRecorderOfOne, CopiesStacksThatPerfUnwinds) {
  ServedTree tree{python()};
  const auto data = path_of("data");
  RunningRecord record{{"-p", tree.pid(), "--engine", "trampoline", "--recorder", "own",
                        "--keep-raw", "-e", "cpu-clock", "-F", "499", "--call-graph", "dwarf,32768",
                        "-o", data}};
  tree.serve(10, std::chrono::milliseconds{400});
  EXPECT_EQ(record.finish(), ExitStatus{}) << record.child().err();
  expect_right(count_named(read_samples("perf", data), tree.pid()), record.child().err());
  const auto raw = read_samples("perf", data + ".raw");
  EXPECT_GT(count_named(raw, tree.pid()).any, 90);
}

TEST_F(OwnRecorderOfOne, CompressesRecords) {
  ServedTree tree{python()};
  const auto data = path_of("data");
  RunningRecord record{{"-p", tree.pid(), "--engine", "bpf", "--recorder", "own", "--keep-raw",
                        "-e", "cpu-clock", "-F", "999", "-z", "-o", data}};
  tree.serve(10, std::chrono::milliseconds{200});
  EXPECT_EQ(record.finish(), ExitStatus{}) << record.child().err();
  const auto raw = data + ".raw";
  EXPECT_THAT(run({"perf", "report", "--header-only", "-i", raw}).out,
              HasSubstr("# compressed : Zstd, level = 1, ratio = "));
  const auto samples = read_samples("perf", data).size();
  EXPECT_GT(samples, 100U);
  for (const auto& perf : perfs_that_read("perf")) {
    EXPECT_EQ(read_samples(perf, raw).size(), samples) << perf;
  }
}

// The kernel makes such records too long for the second of two recordings, and puts leftovers of
// the ring at their ends: docs/kernel-notes.md.
TEST_F(OwnRecorderOfOne, RecordsBpfProgramsThatOthersLoad) {
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  ServedTree tree{python()};
  const auto recording = [&](const std::string& name) {
    return std::vector<std::string>{"-a", "--engine",   "bpf", "--recorder", "own",
                                    "-e", "cpu-clock",  "-F",  "99",         "-m",
                                    "64", "--keep-raw", "-o",  path_of(name)};
  };
  RunningRecord first{recording("first")};
  RunningRecord second{recording("second")};
  // Fills the rings more than once, with records of programs that start and end.
  (void)run({"sh", "-c", "i=0; while [ $i -lt 600 ]; do /bin/true; i=$((i + 1)); done"});
  const auto loads = run({tool(), "record", "-p", tree.pid(), "--engine", "bpf", "--recorder",
                          "own", "-e", "cpu-clock", "-o", path_of("data"), "--", "true"});
  EXPECT_EQ(loads.status, ExitStatus{}) << loads.err;
  EXPECT_EQ(second.finish(), ExitStatus{}) << second.child().err();
  EXPECT_EQ(first.finish(), ExitStatus{}) << first.child().err();
  for (const auto& perf : perfs_that_read("perf")) {
    for (const auto* const name : {"first.raw", "second.raw"}) {
      const auto read = run({perf, "script", "--show-bpf-events", "--kallsyms",
                             few_kernel_symbols(), "-i", path_of(name)});
      EXPECT_EQ(read.status, ExitStatus{}) << perf << ": " << read.err;
      EXPECT_THAT(read.out, HasSubstr("PERF_RECORD_KSYMBOL addr ")) << perf;
      EXPECT_THAT(read.out, HasSubstr("PERF_RECORD_BPF_EVENT type 1, ")) << perf;
    }
  }
}

// The recorder that TOOL has started; 0: none.
pid_t recorder_of(base::Pid tool) {
  const auto children = run({"ps", "-o", "pid=,args=", "--ppid", std::to_string(tool.value())});
  for (const auto line : base::split(children.out, '\n')) {
    if (line.find(" perf-record ") != std::string_view::npos) {
      return std::stoi(std::string{base::trim(line)});
    }
  }
  return 0;
}

TEST_F(OwnRecorderOfOne, LeavesAFileWhenItIsKilled) {
  ServedTree tree{python()};
  for (const int signal : {SIGKILL, SIGTERM}) {
    SCOPED_TRACE(signal);
    const auto data = path_of("data" + std::to_string(signal));
    RunningRecord record{{"-p", tree.pid(), "--engine", "trampoline", "--recorder", "own", "-e",
                          "cpu-clock", "-F", "999", "-o", data}};
    const auto deadline = base::Deadline::after(kPatience);
    while (std::filesystem::file_size(data) < kSomeSamples && !deadline.expired()) {
      tree.serve(1);
    }
    const auto recorder = recorder_of(record.child().pid());
    ASSERT_NE(recorder, 0);
    ::kill(recorder, signal);
    EXPECT_EQ(record.wait(), (ExitStatus{.code = 125}));
    EXPECT_THAT(record.child().err(), HasSubstr("killed by signal " + std::to_string(signal)));
    EXPECT_EQ(trampoline_of(tree.pid()), "off");
    // What was in the rings is lost: of a second at most. The file has the rest.
    for (const auto& perf : perfs_that_read("perf")) {
      EXPECT_GT(read_samples(perf, data).size(), 10U) << perf;
    }
    const auto report = run({tool(), "report", "--json", data});
    EXPECT_EQ(report.status, ExitStatus{}) << report.err << record.child().err();
  }
}

// Where no signal says so: the tool's file has capabilities, and its user is not root.
TEST_F(OwnRecorderOfOne, CompletesItsFileWhenTheToolIsGone) {
  const PythonProcess target{python(), "print('ready', flush=True)\ninput()"};
  ChildProcess recorder{{tool(), "perf-record", "-p", std::to_string(target.pid().value()), "-e",
                         "cpu-clock", "-o", path_of("data"), "--control", "fd:0,1"}};
  recorder.write("ping\n");
  EXPECT_EQ(recorder.read_line(base::Deadline::after(kPatience)), "ack") << recorder.err();
  recorder.close_stdin();
  EXPECT_EQ(recorder.wait(base::Deadline::after(kPatience)), ExitStatus{}) << recorder.err();
  const auto header = run({"perf", "report", "--header-only", "-i", path_of("data")});
  EXPECT_THAT(header.out, HasSubstr("# event : name = cpu-clock, ")) << header.err;
}

// A perf on PATH can have capabilities of its own (docs/rights.md).
TEST_F(OwnRecorderOfOne, DrawsPicturesUnlessPerfMayHaveMoreRights) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root, to have the rights and to drop them";
  }
  ServedTree tree{python()};
  const TempDir directory;
  (void)stand_in_perf(directory, fmt::format("echo >{}\nexec $PERF \"$@\"\n", path_of("ran")));
  const auto draw = [&](std::vector<std::string> words) {
    words.insert(words.end(), {tool(), "flamegraph", tree.pid(), "-d", "1", "--engine",
                               "trampoline", "-o", path_of("page.html")});
    ChildOptions options;
    options.env["PATH"] = directory.path().string() + ":" + std::getenv("PATH");
    options.unset = {"PERF"};
    (void)run(words, {.child = options, .input = {}, .deadline = kPatience});
  };
  draw({});
  EXPECT_TRUE(std::filesystem::exists(path_of("page.html")));
  EXPECT_FALSE(std::filesystem::exists(path_of("ran")));
  // Whether perf may record is the machine's.
  draw({"setpriv", "--bounding-set=-cap_38,-sys_admin", "--inh-caps=-cap_38,-sys_admin"});
  EXPECT_TRUE(std::filesystem::exists(path_of("ran")));
}

TEST_F(OwnRecorderOfOne, LeavesAFileWhenTheDiskIsFull) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "mounting needs root";
  }
  ServedTree tree{python()};
  const auto disk = path_of("disk");
  const auto data = path_of("data");
  std::filesystem::create_directory(disk);
  const auto script = fmt::format(
      "mount -t tmpfs -o size=128k tmpfs {0}; \"$@\"; s=$?; cp {0}/perf.data {1}; exit $s", disk,
      data);
  RunningRecord record{{"-p", tree.pid(), "--engine", "trampoline", "--recorder", "own", "-e",
                        "cpu-clock", "-F", "999", "-o", disk + "/perf.data"},
                       {"unshare", "-m", "sh", "-c", script, "sh", tool()}};
  tree.serve(10, std::chrono::milliseconds{600});
  EXPECT_EQ(record.finish(), (ExitStatus{.code = 125}));
  EXPECT_THAT(record.child().err(), HasSubstr("No space left on device"));
  EXPECT_EQ(trampoline_of(tree.pid()), "off");
  const auto report = run({tool(), "report", "--json", data});
  EXPECT_EQ(report.status, ExitStatus{}) << report.err;
}

TEST_F(OwnRecorderOfOne, SaysWhichLimitIsTooLow) {
  const PythonProcess target{python(), R"(
import threading
for _ in range(100):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
print('ready', flush=True)
input()
)"};
  const auto record = [&](const std::string& shell, const std::string& pages) {
    std::vector<std::string> words{"sh", "-c", shell + " \"$@\"", "sh", tool(), "record"};
    words.insert(words.end(), {"-p", std::to_string(target.pid().value()), "--engine", "bpf"});
    words.insert(words.end(), {"--recorder", "own", "-e", "cpu-clock", "-m", pages});
    words.insert(words.end(), {"-o", path_of("data"), "--", "true"});
    const auto result = run(words);
    EXPECT_EQ(result.status, (ExitStatus{.code = 125})) << result.err;
    EXPECT_FALSE(std::filesystem::exists(path_of("data")));
    return result.err;
  };
  // More than the tool needs for itself, fewer than 100 for each processor.
  const auto descriptors = 60 + 15 * ::sysconf(_SC_NPROCESSORS_ONLN);
  EXPECT_THAT(record(fmt::format("ulimit -n {}; exec", descriptors), "128"),
              HasSubstr("descriptor for each thread"));
  // At -1 there is no limit.
  if (::geteuid() == 0 && contents_of("/proc/sys/kernel/perf_event_paranoid") >= "0") {
    EXPECT_THAT(record("exec setpriv --bounding-set -ipc_lock prlimit --memlock=0", "512M"),
                HasSubstr("exceeds kernel.perf_event_mlock_kb"));
  }
}

}  // namespace
}  // namespace pyinject::test
