// What a process does on a CPU: `why`, `top`, `report`, the labels of pprof and the page of
// `flamegraph` divide its time as it tells it itself.
#include "base/text.hpp"
#include "e2e/bpf_recording.hpp"
#include "elf/elf_file.hpp"
#include "procfs/maps.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "support/covering.hpp"
#include "support/decoded_message.hpp"
#include "support/interpreters.hpp"
#include "support/page.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fcntl.h>

namespace pyinject::test {
namespace {

using nlohmann::json;

// By use, as `why` names them.
using Shares = std::map<std::string, double>;

std::string use_of(const std::string& function) {
  return function == "do_byte_code" ? "python"
         : function == "do_collect" ? "gc"
         : function == "do_import"  ? "import"
         : function == "do_read"    ? "kernel"
                                    : "c";
}

// Of the processor time that uses.py tells between two moments.
class ToldTimes {
 public:
  explicit ToldTimes(PythonProcess& python) : python_{python}, first_(ask()) {}
  [[nodiscard]] Shares shares() {
    const auto last = ask();
    Shares shares;
    double all = 0;
    for (const auto& [function, time] : last.items()) {
      if (function != "switches") {
        const auto spent = time.get<double>() - first_.at(function).get<double>();
        shares[use_of(function)] += spent;
        all += spent;
      }
    }
    for (auto& [use, share] : shares) {
      share /= all;
    }
    switching_ =
        kSwitch * (last.at("switches").get<double>() - first_.at("switches").get<double>()) / all;
    return shares;
  }
  // After shares(): how much of the time the kernel may have taken to switch threads, at most. The
  // process counts it for what it did at that moment.
  [[nodiscard]] double switching() const { return switching_; }

 private:
  [[nodiscard]] json ask() {
    python_.send_line("");
    return json::parse(python_.read_line());
  }
  static constexpr double kSwitch = 50'000;  // nanoseconds, with two events on its CPU
  PythonProcess& python_;
  json first_;  // braces would make an array of it
  double switching_ = 0;
};

// One point for what is between the measurements, SWITCHING, and the error of SAMPLES: for a right
// program, one run in ten millions exceeds it.
void expect_near(const Shares& found, const Shares& told, double samples, double switching) {
  constexpr double kDeviations = 5.4;
  for (const auto& [use, share] : told) {
    const auto at = found.find(use);
    const auto shown = at == found.end() ? 0 : at->second;
    EXPECT_NEAR(shown, share,
                0.01 + switching + kDeviations * std::sqrt(share * (1 - share) / samples))
        << use;
  }
}

// Whether a file of the interpreter has the names of all its functions.
bool has_all_names(base::Pid pid) {
  const auto maps = procfs::read_maps(pid);
  return maps && std::ranges::any_of(*maps, [&](const procfs::Mapping& mapping) {
           if (!mapping.executable || mapping.path.find("python") == std::string::npos) {
             return false;
           }
           const auto path = fmt::format("/proc/{}/root{}", pid.value(), mapping.path);
           const auto file =
               elf::ElfFile::open(base::UniqueFd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)});
           const auto* const opened = std::get_if<elf::ElfFile>(&file);
           return opened != nullptr && opened->section(".symtab").has_value();
         });
}

// The number of samples with [gc] as a Python function, in the text of `export -f folded`.
double folded_collections(const std::string& data) {
  const auto folded = run({tool(), "export", "-f", "folded", data, "-o", "-"});
  EXPECT_EQ(folded.status, ExitStatus{}) << folded.err;
  double sum = 0;
  for (const auto line : base::split(base::trim(folded.out), '\n')) {
    if (line.find(";py::[gc]") != std::string_view::npos) {
      sum += base::parse_number<int>(line.substr(line.rfind(' ') + 1)).value_or(0);
    }
  }
  return sum;
}

class UsesOfTime : public testing::TestWithParam<Interpreter> {
 protected:
  void SetUp() override {
    if (const auto lack = bpf_engine_lacks(); !lack.empty()) {
      GTEST_SKIP() << lack;
    }
  }
  PythonProcess python_{GetParam(), target_source("uses.py")};
  const std::string pid_ = std::to_string(python_.pid().value());
};
INSTANTIATE_TEST_SUITE_P(Pythons, UsesOfTime, testing::ValuesIn(interpreters({})),
                         InterpreterName{});

TEST_P(UsesOfTime, AreDividedByWhyAsTheProcessTells) {
  ToldTimes told{python_};
  const auto shown = run({tool(), "why", "-p", pid_, "-d", "4", "--json"});
  const auto shares = told.shares();
  ASSERT_EQ(shown.status, ExitStatus{}) << shown.err;
  const auto report = json::parse(shown.out);
  Shares found;
  double all = 0;
  for (const auto& use : report.at("groups").at(0).at("uses")) {
    const auto name = use.at("use").get<std::string>();
    if (!use.at("idle").get<bool>() && name != "preempted") {
      found[name == "fault" ? "kernel" : name] += use.at("seconds").get<double>();
      all += use.at("seconds").get<double>();
    }
    if (name == "c") {
      EXPECT_TRUE(use.at("top").at(0).at("function").get<std::string>().starts_with("do_")) << use;
    }
  }
  for (auto& [use, share] : found) {
    share /= all;
  }
  expect_near(found, shares, report.at("samples").get<double>(), told.switching());
}

TEST_P(UsesOfTime, IncludeTheCollectorWithTheTrampolineIfItsFunctionsHaveNames) {
  const TempDir directory;
  const auto data = (directory.path() / "uses.data").string();
  ToldTimes told{python_};
  const auto recorded =
      run({tool(), "record", pid_, "-F", "999", "-e", "cpu-clock", "-o", data, "-d", "4"});
  const auto shares = told.shares();
  ASSERT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  python_.pause();
  const auto report = run({tool(), "report", "--json", data});
  ASSERT_EQ(report.status, ExitStatus{}) << report.err;
  const auto table = json::parse(report.out).at("tables").at(0);
  const auto all = table.at("all").get<double>();
  double collects = 0;
  for (const auto& row : table.at("rows")) {
    collects += row.at("name") == "[gc]" ? row.at("self").get<double>() : 0;
  }
  EXPECT_EQ(folded_collections(data), collects);
  if (has_all_names(python_.pid())) {
    expect_near({{"gc", collects / all}}, {{"gc", shares.at("gc")}}, all, told.switching());
  } else {
    EXPECT_EQ(collects, 0);
    EXPECT_GT(table.value("undecided", 0), all * shares.at("gc") / 2) << report.out;
  }
}

TEST_P(UsesOfTime, AreDividedByTopAsTheProcessTells) {
  ToldTimes told{python_};
  const auto shown = run({tool(), "top", "--once", "--json", "-d", "4", "-p", pid_});
  const auto shares = told.shares();
  ASSERT_EQ(shown.status, ExitStatus{}) << shown.err;
  const auto top = json::parse(shown.out);
  const auto all = top.at("cpu").get<double>();
  Shares found;
  for (const auto& [use, share] : top.at("uses").items()) {
    found[use] = share.get<double>() / all;
  }
  expect_near(found, shares, top.at("samples").get<double>(), told.switching());
  EXPECT_LT(found.at("unknown"), 0.01);
}

// Of the labels "use" of a profile in the format of pprof (its proto/profile.proto).
Shares shares_of_labels(const std::string& pprof) {
  const DecodedMessage profile{pprof};
  const auto strings = profile.texts(6);
  Shares shares;
  double all = 0;
  for (const auto& sample : profile.messages(2)) {
    const auto count = static_cast<double>(sample.numbers(2).at(0));
    for (const auto& label : sample.messages(3)) {
      if (strings.at(label.number(1)) == "use") {
        shares[strings.at(label.number(2))] += count;
      }
    }
    all += count;
  }
  for (auto& [use, share] : shares) {
    share /= all;
  }
  return shares;
}

// Of the samples in the page that `flamegraph` writes.
Shares shares_of_page(const std::string& page) {
  const auto data = data_of_page(page);
  const auto& samples = data.at("samples");
  Shares shares;
  double all = 0;
  for (std::size_t i = 0; i < samples.at("use").size(); ++i) {
    const auto weight = samples.at("weight").at(i).get<double>();
    shares[data.at("uses").at(samples.at("use").at(i).get<std::size_t>())] += weight;
    all += weight;
  }
  for (auto& [use, share] : shares) {
    share /= all;
  }
  return shares;
}

TEST_P(UsesOfTime, AreDividedByReportAndPprofAndThePageAsTheProcessTells) {
  const TempDir directory;
  const auto data = (directory.path() / "uses.data").string();
  std::vector<std::string> record{tool(), "record"};
  std::ranges::copy(bpf_record(pid_, data), std::back_inserter(record));
  std::ranges::copy(std::vector<std::string>{"--", "sleep", "4"}, std::back_inserter(record));
  ToldTimes told{python_};
  const auto recorded = run(record);
  const auto shares = told.shares();
  ASSERT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  python_.pause();
  const auto report = run({tool(), "report", "--json", data});
  ASSERT_EQ(report.status, ExitStatus{}) << report.err;
  const auto table = json::parse(report.out).at("tables").at(0);
  const auto all = table.at("all").get<double>();
  Shares found;
  for (const auto& row : table.at("rows")) {
    const auto name = row.at("name").get<std::string>();
    const auto part = [&](const char* column) { return row.at(column).get<double>() / all; };
    if (name == "[gc]") {
      EXPECT_FALSE(row.contains("file"));
      found["gc"] += part("self");
    } else if (name == "do_import") {
      found["import"] += part("total");
    } else if (name.starts_with("do_")) {
      found["python"] += part("python");
      found["c"] += part("native");
      found["kernel"] += part("kernel");
    }
  }
  expect_near(found, shares, all, told.switching());
  const auto pprof = (directory.path() / "uses.pb.gz").string();
  const auto exported = run({tool(), "export", "-f", "pprof", "-o", pprof, data});
  ASSERT_EQ(exported.status, ExitStatus{}) << exported.err;
  expect_near(shares_of_labels(run({"gzip", "-dc", pprof}).out), shares, all, told.switching());
  const auto page = (directory.path() / "uses.html").string();
  const auto drawn = run({tool(), "flamegraph", "-o", page, data});
  ASSERT_EQ(drawn.status, ExitStatus{}) << drawn.err;
  expect_near(shares_of_page(page), shares, all, told.switching());
}

}  // namespace
}  // namespace pyinject::test
