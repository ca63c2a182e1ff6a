// Flame graphs and exports, compared with what perf script prints of the same recording.
#include "base/file.hpp"
#include "base/text.hpp"
#include "e2e/bpf_recording.hpp"
#include "support/child_process.hpp"
#include "support/page.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"
#include "support/shared.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace pyinject::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// The service of tests/targets/services.py that is slow for REASON.
class PicturedService {
 public:
  PicturedService(const Interpreter& python, const std::string& reason)
      : PicturedService{python, reason, target_source("services.py")} {}
  // Its functions have a file.
  static PicturedService of_file(const Interpreter& python, const std::string& reason) {
    return {python, reason,
            fmt::format("file = '{}/tests/targets/services.py'\n"
                        "exec(compile(open(file).read(), file, 'exec'))",
                        source_dir())};
  }
  [[nodiscard]] std::string pid() const { return std::to_string(python_.pid().value()); }
  // Records it into DATA; then it is paused.
  void record(const std::string& data, const std::string& engine, const std::string& length,
              const std::vector<std::string>& options = {}) {
    std::vector<std::string> command{tool(),      "record", "-p",  pid(), "--engine", engine,
                                     "--off-cpu", "-F",     "499", "-o",  data};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {"--", "sleep", length});
    const auto recorded = run(command);
    ASSERT_EQ(recorded.status, ExitStatus{}) << recorded.err;
    python_.pause();
  }

 private:
  PicturedService(const Interpreter& python, const std::string& reason, const std::string& program)
      : python_{python, program, {.interpreter_args = {}, .args = {reason}, .child = {}}} {}

  PythonProcess python_;
};

struct Pictured {
  int minor = 0;
  std::string engine;
};
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Pictured& recorded, std::ostream* stream) {
  *stream << "3." << recorded.minor << " " << recorded.engine;
}

// A recording of threads that wait for the GIL. The process stays: perf reads names of its files.
struct PicturedRecording {
  PicturedRecording(const Interpreter& python, const std::string& engine) : service{python, "gil"} {
    service.record(data, engine, "1");
  }
  TempDir directory;
  std::string data = directory / "perf.data";
  PicturedService service;
};

class Pictures : public testing::TestWithParam<Pictured> {
 protected:
  static void TearDownTestSuite() { recordings().forget(); }
  void SetUp() override {
    python_ = find_build({.minor = GetParam().minor});
    if (!python_) {
      GTEST_SKIP() << "no CPython 3." << GetParam().minor << " (scripts/pythons)";
    }
    if (const auto lacks = bpf_engine_lacks(); GetParam().engine == "bpf" && !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
  }
  [[nodiscard]] const Interpreter& python() const { return *python_; }
  [[nodiscard]] const TempDir& directory() const { return directory_; }
  // The path of a recording that the tests share.
  [[nodiscard]] std::string recorded() const {
    return recordings()
        .of(testing::PrintToString(GetParam()),
            [&] {
              return PicturedRecording{*python_, GetParam().engine};
            })
        .data;
  }

 private:
  static Shared<PicturedRecording>& recordings() {
    static Shared<PicturedRecording> all;
    return all;
  }
  TempDir directory_;
  std::optional<Interpreter> python_;
};

// Event, period, thread, and the Python functions, innermost first.
using Facts = std::tuple<std::string, std::uint64_t, std::string, std::vector<std::string>>;

std::vector<Facts> told_by_perf(const std::string& data) {
  std::vector<Facts> all;
  for (const auto& sample : scripted_samples(data)) {
    auto functions = sample.chain();
    std::ranges::reverse(functions);
    const auto event = sample.event.substr(0, sample.event.find_first_of(":/"));
    all.emplace_back(event, sample.period, sample.tid, std::move(functions));
  }
  std::ranges::sort(all);
  return all;
}

std::vector<Facts> told_by_export(const std::string& data) {
  const auto exported = run({tool(), "export", "-f", "jsonl", data});
  EXPECT_EQ(exported.status, ExitStatus{}) << exported.err;
  std::vector<Facts> all;
  for (const auto line : base::split(exported.out, '\n')) {
    if (line.empty()) {
      continue;
    }
    const auto sample = nlohmann::json::parse(line);
    std::vector<std::string> functions;
    for (const auto& frame : sample.at("stack")) {
      if (frame.at("kind") == "python") {
        functions.push_back(frame.at("function"));
      }
    }
    all.emplace_back(sample.at("event"), sample.at("period"),
                     std::to_string(sample.at("tid").get<int>()), std::move(functions));
  }
  std::ranges::sort(all);
  return all;
}

Facts without_functions(Facts facts) {
  std::get<3>(facts).clear();
  return facts;
}

// ARG has all functions of FEWER, in the same order.
MATCHER_P(HasAllOf, fewer, "") {
  auto next = fewer.begin();
  for (const auto& function : arg) {
    next += next != fewer.end() && *next == function ? 1 : 0;
  }
  return next == fewer.end();
}

TEST_P(Pictures, HaveTheSamplesOfPerfScript) {
  const auto data = recorded();
  const auto expected = told_by_perf(data);
  const auto got = told_by_export(data);
  EXPECT_GT(expected.size(), 200U);
  ASSERT_EQ(got.size(), expected.size());
  std::vector<Facts> ours;
  std::vector<Facts> perfs;
  std::ranges::set_difference(got, expected, std::back_inserter(ours));
  std::ranges::set_difference(expected, got, std::back_inserter(perfs));
  // perf does not name a trampoline in a sample that is older than the record of its memory.
  EXPECT_LE(ours.size(), got.size() / 100);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(without_functions(ours[i]), without_functions(perfs[i]));
    EXPECT_THAT(std::get<3>(ours[i]), HasAllOf(std::get<3>(perfs[i]))) << i;
  }
}

// Only Python's own frames: of C functions with several names, perf prints another one.
std::map<std::string, long> python_stacks(const std::string& folded) {
  std::map<std::string, long> counts;
  for (const auto line : base::split(folded, '\n')) {
    const auto blank = line.rfind(' ');
    if (blank == std::string_view::npos) {
      continue;
    }
    std::string key;
    for (const auto frame : base::split(line.substr(0, blank), ';')) {
      key += frame.starts_with("py::") || frame.starts_with("[GIL") || key.empty()
                 ? fmt::format(";{}", frame)
                 : "";
    }
    counts[key] += base::parse_number<long>(line.substr(blank + 1)).value_or(0);
  }
  return counts;
}

long samples_in(const std::map<std::string, long>& stacks) {
  long sum = 0;
  for (const auto& [stack, count] : stacks) {
    sum += count;
  }
  return sum;
}

// Samples that the two count for different stacks. See HaveTheSamplesOfPerfScript.
long samples_apart(const std::map<std::string, long>& left, std::map<std::string, long> right) {
  long apart = 0;
  for (const auto& [stack, count] : left) {
    apart += std::abs(count - right[stack]);
    right.erase(stack);
  }
  return (apart + samples_in(right)) / 2;
}

TEST_P(Pictures, FoldedStacksAreThoseOfTheScripts) {
  const auto data = recorded();
  const auto scripted =
      run({"perf", "script", "-s",
           source_dir() + "/perf-scripts/scripts/python/pyinject-collapsed.py", "-i", data});
  const auto exported = run({tool(), "export", "-f", "folded", data});
  ASSERT_EQ(scripted.status, ExitStatus{}) << scripted.err;
  ASSERT_EQ(exported.status, ExitStatus{}) << exported.err;
  const auto stacks = python_stacks(exported.out);
  EXPECT_THAT(exported.out, HasSubstr(";py::compute:"));
  const auto expected = python_stacks(scripted.out);
  EXPECT_LE(samples_apart(stacks, expected), samples_in(stacks) / 100);
  EXPECT_EQ(samples_in(stacks), samples_in(expected));
}

// By function: self, python and native, kernel, total. The script divides the second by names.
using Figures = std::map<std::string, std::vector<long>>;

long number(std::string_view text) { return base::parse_number<long>(text).value_or(-1); }

// FOLDED: stacks without the interpreter's machinery.
Figures figures_of_stacks(const std::string& folded) {
  Figures figures;
  for (const auto line : base::split(folded, '\n')) {
    const auto blank = line.rfind(' ');
    if (blank == std::string_view::npos) {
      continue;
    }
    const auto count = number(line.substr(blank + 1));
    const auto frames = base::split(line.substr(0, blank), ';');
    std::string innermost;
    std::set<std::string> functions;
    for (const auto frame : frames) {
      if (frame.starts_with("py::")) {
        innermost = frame.substr(4, frame.find(':', 4) - 4);
        functions.insert(innermost);
      }
    }
    for (const auto& function : functions) {
      figures[function].resize(4);
      figures[function][3] += count;
    }
    if (!functions.empty()) {
      const auto leaf = frames.back();
      figures[innermost][0] += count;
      figures[innermost][leaf.ends_with("_[k]") ? 2 : 1] += count;
    }
  }
  return figures;
}

TEST_P(Pictures, ReportHasTheFiguresOfTheScripts) {
  const auto data = recorded();
  const auto scripted = run({"perf", "script", "-s",
                             source_dir() + "/perf-scripts/scripts/python/pyinject-collapsed.py",
                             "-i", data, "--", "--strip-interpreter"});
  const auto reported = run({tool(), "report", "--csv", data});
  ASSERT_EQ(scripted.status, ExitStatus{}) << scripted.err;
  ASSERT_EQ(reported.status, ExitStatus{}) << reported.err;
  auto expected = figures_of_stacks(scripted.out);
  Figures got;
  for (const auto line : base::split(reported.out, '\n')) {
    const auto cells = base::split(line, ',');
    if (cells.size() == 9 && cells[0].ends_with("-clock")) {  // task-clock since perf 6.8
      got[std::string{cells[6]}] = {number(cells[1]), number(cells[2]) + number(cells[3]),
                                    number(cells[4]), number(cells[5])};
    }
  }
  EXPECT_TRUE(expected.contains("compute")) << scripted.out;
  ASSERT_EQ(got.size(), expected.size()) << reported.out << scripted.out;
  const auto most_apart = got.at("Thread.run").back() / 100;  // see HaveTheSamplesOfPerfScript
  for (const auto& [function, figures] : got) {
    for (std::size_t i = 0; i < figures.size(); ++i) {
      EXPECT_LE(std::abs(figures[i] - expected[function].at(i)), most_apart)
          << reported.out << scripted.out;
    }
  }
}

TEST_P(Pictures, AreMadeByOneCommand) {
  const PicturedService service{python(), "python"};
  const TempDir temporary;
  const auto page = directory() / "page.html";
  RunOptions options;
  options.child.env["TMPDIR"] = temporary.path();
  options.child.env["PERF_CONFIG"] = directory() / "perfconfig";
  options.child.env["HOME"] = directory() / "home";
  const auto drawn = run({tool(), "flamegraph", "-p", service.pid(), "--engine", GetParam().engine,
                          "-d", "1", "-o", page},
                         options);
  EXPECT_EQ(drawn.status, ExitStatus{}) << drawn.err;
  EXPECT_THAT(drawn.err, HasSubstr(page + ": "));
  EXPECT_THAT(base::read_file(page).value_or(""), StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(data_of_page(page).at("facts").get<std::string>(),
              HasSubstr(GetParam().engine == "bpf" ? " BPF engine " : " trampoline engine "));
  EXPECT_TRUE(std::filesystem::is_empty(temporary.path())) << "the recording is still there";
  EXPECT_FALSE(std::filesystem::exists(directory() / "home")) << "perf's cache has grown";
}

INSTANTIATE_TEST_SUITE_P(Pythons, Pictures,
                         testing::Values(Pictured{12, "trampoline"}, Pictured{12, "bpf"},
                                         Pictured{13, "trampoline"}, Pictured{13, "bpf"},
                                         Pictured{14, "trampoline"}, Pictured{14, "bpf"},
                                         Pictured{15, "trampoline"}, Pictured{15, "bpf"}),
                         [](const auto& each) {
                           return fmt::format("py3_{}_{}", each.param.minor, each.param.engine);
                         });

class Page : public testing::Test {
 protected:
  void SetUp() override {
    python_ = find_build({.minor = 15});
    if (!python_) {
      GTEST_SKIP() << "no CPython 3.15 (scripts/pythons)";
    }
    if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
  }
  [[nodiscard]] const Interpreter& python() const { return *python_; }
  [[nodiscard]] std::string path(const std::string& name) const { return directory_ / name; }
  void draw(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command{tool(), "flamegraph"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const auto drawn = run(command);
    ASSERT_EQ(drawn.status, ExitStatus{}) << drawn.err;
  }

 private:
  TempDir directory_;
  std::optional<Interpreter> python_;
};

TEST_F(Page, CanBeUsedInABrowser) {
  auto service = PicturedService::of_file(python(), "gil");
  service.record(path("gil.data"), "bpf", "3", {"--lines"});
  PicturedService{python(), "python"}.record(path("python.data"), "bpf", "1");
  draw({path("gil.data"), "-o", path("gil.html")});
  draw({path("gil.data"), "--diff", path("python.data"), "-o", path("diff.html")});
  const auto used = run({"python3", source_dir() + "/tests/flamegraph/exercise_page.py",
                         path("gil.html"), "compute", path("diff.html")});
  constexpr int kNoBrowser = 77;
  if (used.status.code == kNoBrowser) {
    GTEST_SKIP() << "no Chromium (scripts/setup test)";
  }
  EXPECT_EQ(used.status, ExitStatus{}) << used.out << used.err;
}

TEST_F(Page, IsDrawnOfWhatIsThereAtCtrlC) {
  const PicturedService service{python(), "python"};
  ChildProcess drawing{
      {tool(), "flamegraph", "-p", service.pid(), "-d", "600", "-o", path("page.html")}};
  await(drawing, "attached read-only");
  // The first samples are there when the recording's file grows, which only perf knows: a signal
  // before is one more case.
  drawing.signal(SIGINT);
  const auto status = drawing.wait(base::Deadline::after(kPatience));
  ASSERT_TRUE(status) << drawing.err();
  const bool drawn = std::filesystem::exists(path("page.html"));
  EXPECT_EQ(drawn, *status == ExitStatus{}) << drawing.err();
}

TEST_F(Page, IsNamedAfterItsOneProcess) {
  const PicturedService service{python(), "python"};
  const auto shown = run({tool(), "flamegraph", "-p", service.pid(), "-d", "1", "-o", "-"});
  EXPECT_EQ(shown.status, ExitStatus{}) << shown.err;
  EXPECT_THAT(shown.out, StartsWith("<!DOCTYPE html>"));
}

class Exports : public Page {};

// The samples of each function and its callees, by name: of what go tool pprof -top prints.
std::map<std::string, long> totals_of_go(const std::string& top) {
  constexpr std::size_t kColumns = 6;  // flat flat% sum% cum cum% name
  std::map<std::string, long> totals;
  for (const auto line : base::split(top, '\n')) {
    std::vector<std::string_view> words;
    for (const auto word : base::split(line, ' ')) {
      if (!word.empty()) {
        words.push_back(word);
      }
    }
    if (words.size() == kColumns && words[4].ends_with('%')) {
      totals[std::string{words[5]}] = number(words[3]);
    }
  }
  return totals;
}

// The real reader. Its functions are those of `report`.
TEST_F(Exports, GoReadsPprof) {
  if (run({"sh", "-c", "command -v go"}).status != ExitStatus{}) {
    GTEST_SKIP() << "no go (golang-go)";
  }
  PicturedService{python(), "python"}.record(path("perf.data"), "bpf", "1");
  const auto exported =
      run({tool(), "export", "-f", "pprof", path("perf.data"), "-o", path("cpu.pb.gz")});
  ASSERT_EQ(exported.status, ExitStatus{}) << exported.err;
  RunOptions options;
  options.child.env["HOME"] = path(".");
  const auto top = run({"go", "tool", "pprof", "-top", "-sample_index=samples", "-nodecount=9999",
                        "-nodefraction=0", path("cpu.pb.gz")},
                       options);
  ASSERT_EQ(top.status, ExitStatus{}) << top.err;
  EXPECT_THAT(top.out, HasSubstr("Type: samples"));
  const auto totals = totals_of_go(top.out);
  const auto reported = run({tool(), "report", "--json", path("perf.data")});
  ASSERT_EQ(reported.status, ExitStatus{}) << reported.err;
  const auto report = nlohmann::json::parse(reported.out);
  std::vector<std::string> compared;
  for (const auto& table : report.at("tables")) {
    if (table.at("event") != "cpu-clock") {
      continue;
    }
    for (const auto& row : table.at("rows")) {
      const auto name = row.at("name").get<std::string>();
      if (const auto known = totals.find(name); known != totals.end()) {
        EXPECT_EQ(known->second, row.at("total").get<long>()) << name << "\n" << top.out;
        compared.push_back(name);
      }
    }
  }
  EXPECT_THAT(compared, testing::IsSupersetOf({"compute", "handle_in_python"})) << top.out;
}

// A warning names the version that the receiver has to speak; the other formats need none.
TEST_F(Exports, WarnOfAProtocolInAlpha) {
  PicturedService{python(), "python"}.record(path("perf.data"), "bpf", "1");
  for (const std::string format : {"otlp", "perfetto"}) {
    const auto exported =
        run({tool(), "export", "-f", format, path("perf.data"), "-o", path(format)});
    EXPECT_EQ(exported.status, ExitStatus{}) << exported.err;
    const auto warned =
        exported.err.find("alpha: this is v1development as of") != std::string::npos;
    EXPECT_EQ(warned, format == "otlp") << exported.err;
    EXPECT_GT(std::filesystem::file_size(path(format)), 1'000U);
  }
}

struct BadUse {
  std::string name;
  std::vector<std::string> arguments;
  int status = 0;
  std::string says;
};
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const BadUse& use, std::ostream* stream) { *stream << use.name; }

class BadUses : public testing::TestWithParam<BadUse> {};

TEST_P(BadUses, AreToldInOneSentence) {
  const TempDir directory;
  auto command = GetParam().arguments;
  command.insert(command.begin(), tool());
  RunOptions options;
  options.child.directory = directory.path();
  const auto refused = run(command, options);
  EXPECT_EQ(refused.status.code, GetParam().status) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr(GetParam().says));
  EXPECT_THAT(refused.out, IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BadUses,
    testing::Values(
        BadUse{"NoFile", {"flamegraph"}, 125, "cannot open perf.data"},
        BadUse{"NoRecording", {"export", "-f", "folded", "/etc/passwd"}, 125, "/etc/passwd: "},
        BadUse{"NoFormat", {"export"}, 129, "export needs a format: -f folded|pprof"},
        BadUse{"UnknownFormat", {"export", "-f", "xml"}, 129, "--format xml: expected one of"},
        BadUse{"TwoSources", {"flamegraph", "-p", "1", "perf.data"}, 129, "give either FILE or"},
        BadUse{"TwoFiles", {"flamegraph", "-i", "a", "b"}, 129, "give one FILE"},
        BadUse{"AMissingFile", {"flamegraph", "no-such.data"}, 125, "cannot open no-such.data"},
        BadUse{"NoOneOfThisName",
               {"export", "-f", "folded", "no-such-name-as-this"},
               125,
               "neither a file nor a process is called no-such-name-as-this"},
        BadUse{"TimeOfAFile", {"flamegraph", "-d", "5"}, 129, "--duration is for a new recording"},
        BadUse{"NoDirectory",
               {"flamegraph", "/etc/passwd", "-o", "/nonexistent/page.html"},
               125,
               "cannot open the directory /nonexistent"},
        BadUse{
            "UnknownView", {"report", "--view", "x"}, 129, "--view x: expected one of: functions"},
        BadUse{"NoTime", {"report", "--time", "5"}, 129, "expected a range such as 2-5"},
        BadUse{"NoFileToReport", {"report"}, 125, "cannot open perf.data"},
        BadUse{"NoProcess", {"flamegraph", "-p", "999999999"}, 125, "999999999"}),
    [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace pyinject::test
