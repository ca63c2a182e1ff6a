// A hostile process must neither keep the tool from ending nor cost an innocent process its stacks.
#include "e2e/isolated_machine.hpp"
#include "support/bpf_engine.hpp"
#include "support/interpreters.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

namespace pyinject::test {
namespace {

// A program of tests/targets/hostile.
struct Hostile {
  const char* name;
  const char* program;
};
constexpr Hostile kAll[] = {
    {"SymbolsWithoutEnds", "symbols"},
    {"SectionsWithoutEnds", "sections"},
    {"InterpretersInACircle", "circle"},
    {"ManyThreadStates", "threads"},
    {"ThreadStatesThatChange", "changing"},
    {"ManyMappedFiles", "files"},
    {"HoldersOfTheGil", "gil"},
    {"StormOfProcesses", "storm"},
    {"SlowExpressions", "expressions"},
    {"SparseTables", "tables"},
    {"LargePerfMap", "perf_map"},
    {"ChangingNames", "names"},
    {"ForksWithMappings", "forks"},
    {"MillionsOfLines", "lines"},
    {"ThousandsOfThreads", "tasks"},
    {"MangledNames", "mangled"},
    {"ServicesWithoutEnd", "labels"},
};

// PYINJECT_HOSTILE=full: recordings of three seconds, as many files as a process can map, and
// limits on elapsed time, which take a machine without other work.
bool full() {
  const char* const value = std::getenv("PYINJECT_HOSTILE");
  return value != nullptr && std::string{value} == "full";
}
double recorded_seconds() { return full() ? 3 : 1; }
// PYINJECT_HOSTILE_INTERRUPTIONS: the number of interruptions of each kind in each mode.
int interruptions() {
  const char* const value = std::getenv("PYINJECT_HOSTILE_INTERRUPTIONS");
  return value == nullptr ? 1 : std::atoi(value);
}

// The promised limits: seconds in addition to a run without the hostile process, and MiB. Seconds
// are CPU time, on which other work on this machine has little influence.
constexpr double kMostDelay = 7;
constexpr double kMostMemory = 600;
constexpr double kMostToEnd = 1;
// Of a reader of the recording.
constexpr double kMostToRead = 1;
constexpr double kMostMemoryToRead = 512;
constexpr int kMostProfiles = 64;   // of a recording
constexpr double kFrequency = 499;  // samples per second of CPU time in scene.py

class HostileTest : public testing::TestWithParam<Hostile> {
 protected:
  void SetUp() override {
    const auto found = find_interpreter({.minor = 13, .root = false, .whole_matrix = true});
    if (::geteuid() != 0 || !found) {
      GTEST_SKIP() << "a pid namespace of its own takes root; or there is no 3.13";
    }
    python_ = fmt::format("{}", fmt::join(found->command, " "));
  }

  // "beside" and "interrupted" the hostile program; "alone" and "interrupted_alone" without it.
  [[nodiscard]] nlohmann::json scene(const std::string& mode) const {
    static std::map<std::string, nlohmann::json> without;
    if (!without.contains(mode)) {
      without[mode] = measured("none", mode, {});
    }
    const auto& alone = without[mode];
    auto result = measured(GetParam().program, mode, {alone["run"]["seconds"].dump()});
    result["beside"] = result["run"];
    result["alone"] = alone["run"];
    result["interrupted_alone"] = alone["interrupted"];
    report(mode, result);
    return result;
  }

  // A scene of scene.py, with its further ARGUMENTS.
  [[nodiscard]] nlohmann::json measured(const char* hostile, const std::string& mode,
                                        const std::vector<std::string>& arguments) const {
    const TempDir directory;
    if (full()) {
      ::setenv("PYINJECT_HOSTILE_FILES", "60000", 0);
    }
    std::vector<std::string> all{
        hostile, python_, mode, std::to_string(recorded_seconds()),
        std::to_string(mode == "live" || mode == "readers" ? 0 : interruptions())};
    all.insert(all.end(), arguments.begin(), arguments.end());
    auto told = run_apart(directory, "hostile/scene.py", all);
    if (!told.contains("run")) {
      throw std::runtime_error{"scene.py measured nothing"};  // fails this row, not the program
    }
    return told;
  }

  // For the figures of docs/testing.md and docs/safety.md.
  static void report(const std::string& mode, const nlohmann::json& told) {
    for (const auto* which : {"alone", "beside"}) {
      if (const auto one = told.find(which); one != told.end()) {
        RecordProperty(fmt::format("{}_{}_seconds", mode, which), one->at("seconds").dump());
        RecordProperty(fmt::format("{}_{}_processor_seconds", mode, which),
                       one->at("processor_seconds").dump());
        RecordProperty(fmt::format("{}_{}_mebibytes", mode, which), one->at("mebibytes").dump());
      }
    }
    for (const auto* which : {"seconds", "processor_seconds"}) {
      RecordProperty(fmt::format("{}_longest_end_{}", mode, which),
                     fmt::format("{:.2f}", longest(told["interrupted"], which)));
    }
  }

  static double longest(const nlohmann::json& runs, const char* which) {
    double result = 0;
    for (const auto& one : runs) {
      result = std::max(result, one[which].get<double>());
    }
    return result;
  }

  // COMMANDS run side by side.
  static void expect_in_time(const nlohmann::json& told, int commands = 1) {
    const auto& alone = told["alone"];
    EXPECT_EQ(alone["status"], 0) << alone.dump();
    const auto& beside = told["beside"];
    const auto messages = beside.value("err", "");
    EXPECT_TRUE(beside["ended"].get<bool>()) << "it hangs: " << messages;
    EXPECT_EQ(beside["status"], 0) << messages;
    EXPECT_LT(beside["processor_seconds"],
              alone["processor_seconds"].get<double>() + commands * kMostDelay)
        << messages;
    if (full()) {
      EXPECT_LT(beside["seconds"], alone["seconds"].get<double>() + commands * kMostDelay)
          << messages;
    }
    EXPECT_LT(beside["mebibytes"], kMostMemory) << messages;
    EXPECT_TRUE(told["enemy_lives"].get<bool>());
    EXPECT_EQ(told["state"], "off");
    const auto& ordinary = told["interrupted_alone"];
    for (const auto& one : told["interrupted"]) {
      EXPECT_TRUE(one["ended"].get<bool>()) << "it hangs: " << one.dump();
      EXPECT_LT(one["processor_seconds"], 2 * longest(ordinary, "processor_seconds") + kMostToEnd)
          << one.dump();
      if (full()) {
        // perf itself reads the hostile process's records before it completes its file.
        const auto by_perf = std::max(2 * longest(ordinary, "seconds"),
                                      longest(told["interrupted_stock"], "seconds"));
        EXPECT_LT(one["seconds"], by_perf + kMostToEnd) << one.dump();
      }
    }
  }

  static void expect_whole_stacks(const nlohmann::json& told) {
    const auto samples = told["beside"].value("samples", 0.0);
    const auto expected = kFrequency * told["beside"].value("innocent_seconds", 0.0);
    EXPECT_GT(expected, 0);
    EXPECT_GT(samples, 0.5 * expected) << told["beside"].value("err", "");
    EXPECT_GE(told["beside"].value("whole", 0.0), 0.95 * samples)
        << told["beside"].value("err", "");
  }

  // Views and exports of the recording take about as long and as much memory as of an innocent one.
  static void expect_readers_in_time(const nlohmann::json& told) {
    const auto& beside = told["beside"];
    EXPECT_GE(beside["shown_whole"], 0.95 * beside["shown"].get<double>());
    for (std::size_t i = 0; i < beside["readers"].size(); ++i) {
      const auto& one = beside["readers"][i];
      const auto& alone = told["alone"]["readers"][i];
      EXPECT_EQ(alone["status"], 0) << alone.dump();
      EXPECT_EQ(one["status"], alone["status"]) << one.dump();
      EXPECT_LT(one["processor_seconds"],
                2 * alone["processor_seconds"].get<double>() + kMostToRead)
          << one.dump();
      EXPECT_LT(one["mebibytes"], kMostMemoryToRead) << one.dump();
    }
  }

  // What pushes and serves profiles: READER of the scene, which also used RECORDING seconds of CPU
  // time more for the recording itself.
  static void expect_profiles_in_time(const nlohmann::json& told, const char* reader,
                                      double recording) {
    const auto& alone = told["alone"][reader];
    const auto& beside = told["beside"][reader];
    for (const auto* one : {&alone, &beside}) {
      EXPECT_TRUE((*one)["ended"].get<bool>()) << one->dump();
      EXPECT_GT((*one)["samples"], 0) << one->dump();
      EXPECT_GE((*one)["whole"], 0.95 * (*one)["samples"].get<double>()) << one->dump();
    }
    EXPECT_EQ(beside["status"], alone["status"]) << beside.dump();
    EXPECT_LT(beside["processor_seconds"],
              2 * alone["processor_seconds"].get<double>() + kMostToRead + recording)
        << beside.dump();
    EXPECT_LT(beside["mebibytes"], kMostMemoryToRead) << beside.dump();
    for (const auto* which : {"alone", "beside"}) {
      const auto& one = told[which][reader];
      RecordProperty(fmt::format("{}_{}_processor_seconds", reader, which),
                     one["processor_seconds"].dump());
      RecordProperty(fmt::format("{}_{}_mebibytes", reader, which), one["mebibytes"].dump());
    }
  }

 private:
  std::string python_;
};

TEST_P(HostileTest, DoesNotHoldUpARecording) {
  const auto told = scene("trampoline");
  expect_in_time(told);
  expect_whole_stacks(told);
  expect_readers_in_time(told);
  EXPECT_EQ(told["beside"]["shown"], told["beside"]["samples"])
      << "perf script and report count the same";
}

TEST_P(HostileTest, DoesNotHoldUpARecordingByBpf) {
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  const auto told = scene("bpf");
  expect_in_time(told);
  expect_whole_stacks(told);
}

TEST_P(HostileTest, DoesNotHoldUpReaders) {
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  const auto told = scene("readers");
  expect_in_time(told);
  expect_readers_in_time(told);
  expect_profiles_in_time(told, "pushed", 0);
  EXPECT_LE(told["beside"]["pushed"]["profiles"], kMostProfiles) << told["beside"]["pushed"].dump();
  expect_profiles_in_time(told, "served", kMostDelay);
}

TEST_P(HostileTest, DoesNotHoldUpStatus) {
  const auto told = scene("status");
  expect_in_time(told);
}

TEST_P(HostileTest, DoesNotHoldUpADump) {
  const auto told = scene("dump");
  expect_in_time(told);
}

TEST_P(HostileTest, DoesNotHoldUpLiveViews) {
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  const auto told = scene("live");
  constexpr int kCommands = 4;
  expect_in_time(told, kCommands);
  for (const auto* const view : {"top", "reading", "why"}) {
    EXPECT_TRUE(told["beside"].value(view, false))
        << view << ": " << told["beside"].value("err", "");
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, HostileTest, testing::ValuesIn(kAll),
                         [](const auto& row) { return std::string{row.param.name}; });

}  // namespace
}  // namespace pyinject::test
