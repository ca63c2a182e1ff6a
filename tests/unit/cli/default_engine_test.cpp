#include "cli/default_engine.hpp"

#include "cli/command_line.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <sys/stat.h>

namespace pyinject::cli {
namespace {

using record::EngineChoice;
using testing::ElementsAre;
using testing::HasSubstr;

// The message of the error that SEARCH throws, which must have status 125; empty: none.
template <typename Search>
std::string error_of(const Search& search) {
  try {
    (void)search();
  } catch (const CommandLineError& error) {
    EXPECT_EQ(error.status(), record::kFailure);
    return error.what();
  }
  return "";
}

std::string config_error(std::string_view text) {
  return error_of([text] { return parse_config(text, "/f"); });
}

std::string file_error(const std::string& path) {
  return error_of([&path] { return find_default_engine({.files = {path}}); });
}

DefaultEngineSearch always(EngineChoice choice) {
  return [choice] {
    for (const auto& engine : record::engine_names()) {
      if (engine.choice == choice) {
        return std::optional{DefaultEngine{.engine = engine, .setting = "the setting"}};
      }
    }
    return std::optional<DefaultEngine>{};
  };
}

record::RecordPlan record_with_default(std::vector<std::string> words, EngineChoice choice) {
  words.insert(words.begin(), {"record", "-p", "1"});
  return std::get<RecordCommand>(parse_command_line(words, {}, always(choice)).options).record;
}

TEST(DefaultEngine, IsSetByAFile) {
  const auto found =
      parse_config("# of the machine\n\n  engine=bpf\t# no process changes\r\n", "/f");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->engine.choice, EngineChoice::kBpf);
  EXPECT_EQ(found->setting, "engine = bpf (/f:3)");
  EXPECT_FALSE(parse_config("", "/f"));
  EXPECT_FALSE(parse_config("\n# engine = bpf\n", "/f"));
  EXPECT_EQ(parse_config("engine = bpf\nengine = auto", "/f")->engine.choice, EngineChoice::kAuto);
}

TEST(DefaultEngine, ReportsTheFileAndLineOfAWrongSetting) {
  EXPECT_EQ(config_error("\nengine = BPF\n"),
            "/f:2: engine = BPF: expected trampoline, bpf or auto");
  EXPECT_EQ(config_error("engine ="), "/f:1: engine = : expected trampoline, bpf or auto");
  EXPECT_EQ(config_error("engine = bpf\nengin\x1b = bpf\n"),
            "/f:2: unknown key 'engin\\x1b': the only key is engine");
  EXPECT_EQ(config_error("[record]"), "/f:1: expected KEY = VALUE, as in engine = auto");
}

TEST(DefaultEngine, TheFirstSourceThatSetsOneDecides) {
  const test::TempDir directory;
  const auto own = directory.file("own", "engine = auto\n");
  const auto machine = directory.file("machine", "engine = bpf\n");
  const auto wrong = directory.file("wrong", "nonsense\n");
  const auto empty = directory.file("empty", "# engine = auto\n");
  EXPECT_EQ(find_default_engine({.variable = "trampoline", .files = {wrong}})->engine.choice,
            EngineChoice::kTrampoline);
  EXPECT_EQ(find_default_engine({.files = {own, wrong}})->engine.choice, EngineChoice::kAuto);
  EXPECT_EQ(find_default_engine({.files = {directory / "none", empty, machine}})->engine.choice,
            EngineChoice::kBpf);
  EXPECT_FALSE(find_default_engine({.files = {directory / "none"}}));
  EXPECT_EQ(error_of([] { return find_default_engine({.variable = "no"}); }),
            "PYINJECT_ENGINE=no: expected trampoline, bpf or auto");
}

TEST(DefaultEngine, ReadsOnlySmallRegularFiles) {
  const test::TempDir directory;
  EXPECT_EQ(file_error(directory / ""), directory / ": not a regular file");
  EXPECT_EQ(file_error("/dev/zero"), "/dev/zero: not a regular file");
  const auto fifo = directory / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), S_IRUSR), 0);
  EXPECT_EQ(file_error(fifo), fifo + ": not a regular file");
  constexpr std::size_t kMost = 65536;
  EXPECT_EQ(file_error(directory.file("most", std::string(kMost, '\n'))), "");
  EXPECT_THAT(file_error(directory.file("more", std::string(kMost + 1, '\n'))),
              HasSubstr("more: larger than 64 KiB"));
}

TEST(DefaultEngine, TheUsersFileFollowsTheXdgVariables) {
  const auto files_with = [](const char* config_home, const char* home) {
    const auto change = [](const char* name, const char* value) {
      return value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
    };
    const auto saved = [](const char* name) {
      const char* const value = std::getenv(name);
      return value == nullptr ? std::nullopt : std::optional<std::string>{value};
    };
    const auto old_config_home = saved("XDG_CONFIG_HOME");
    const auto old_home = saved("HOME");
    change("XDG_CONFIG_HOME", config_home);
    change("HOME", home);
    auto files = default_engine_sources().files;
    change("XDG_CONFIG_HOME", old_config_home ? old_config_home->c_str() : nullptr);
    change("HOME", old_home ? old_home->c_str() : nullptr);
    return files;
  };
  EXPECT_THAT(files_with("/c", "/h"), ElementsAre("/c/perf-pyinject/config", kMachineConfig));
  EXPECT_THAT(files_with("relative", "/h"),
              ElementsAre("/h/.config/perf-pyinject/config", kMachineConfig));
  EXPECT_THAT(files_with(nullptr, nullptr), ElementsAre(kMachineConfig));
}

TEST(DefaultEngine, AppliesWithoutTheOption) {
  const auto by_default = record_with_default({}, EngineChoice::kBpf);
  EXPECT_EQ(by_default.engine, EngineChoice::kBpf);
  EXPECT_EQ(by_default.engine_setting, "the setting");
  EXPECT_FALSE(by_default.engine_is_open);
  const auto chosen = record_with_default({"--engine", "trampoline"}, EngineChoice::kBpf);
  EXPECT_EQ(chosen.engine, EngineChoice::kTrampoline);
  EXPECT_EQ(chosen.engine_setting, "");
  EXPECT_FALSE(chosen.engine_is_open);
  const auto neither =
      std::get<RecordCommand>(parse_command_line({"record", "-p", "1"}, {}).options).record;
  EXPECT_EQ(neither.engine, EngineChoice::kTrampoline);
  EXPECT_TRUE(neither.engine_is_open);
}

TEST(DefaultEngine, GivesWayToAnOptionThatNeedsBpf) {
  for (const auto* const option : {"--gil", "--tasks", "--what=io"}) {
    for (const auto choice : {EngineChoice::kTrampoline, EngineChoice::kAuto}) {
      const auto record = record_with_default({option}, choice);
      EXPECT_EQ(record.engine, EngineChoice::kBpf) << option;
      EXPECT_EQ(record.engine_setting, "") << option;
    }
  }
}

TEST(DefaultEngine, AppliesToFlameGraphsAndExports) {
  const auto engine_of = [](const ProfileSource& source) { return source.record->engine; };
  const auto bpf = always(EngineChoice::kBpf);
  EXPECT_EQ(engine_of(std::get<FlamegraphCommand>(
                          parse_command_line({"flamegraph", "-p", "1"}, {}, bpf).options)
                          .source),
            EngineChoice::kBpf);
  EXPECT_EQ(engine_of(std::get<FlamegraphCommand>(
                          parse_command_line({"flamegraph", "-p", "1"}, {}).options)
                          .source),
            EngineChoice::kAuto);
  EXPECT_EQ(engine_of(std::get<ExportCommand>(
                          parse_command_line({"export", "-f", "pprof", "-p", "1"}, {}, bpf).options)
                          .source),
            EngineChoice::kBpf);
}

// A wrong file must not keep a verb that records nothing from running.
TEST(DefaultEngine, IsLookedForOnlyIfNeeded) {
  const DefaultEngineSearch wrong = [] { return parse_config("wrong", "/f"); };
  using Line = std::vector<std::string>;
  for (const auto& words : {Line{"status"},
                            {"deactivate", "-p", "1"},
                            {"record", "--help"},
                            {"flamegraph", "perf.data"},
                            {"record", "-p", "1", "--engine", "bpf"},
                            {"record", "-p", "1", "--functions"}}) {
    EXPECT_EQ(error_of([&] { return parse_command_line(words, {}, wrong); }), "") << words.front();
  }
  for (const auto& words : {Line{"record", "-p", "1"}, {"flamegraph", "-p", "1"}, {"serve"}}) {
    EXPECT_THAT(error_of([&] { return parse_command_line(words, {}, wrong); }), HasSubstr("/f:1: "))
        << words.front();
  }
}

}  // namespace
}  // namespace pyinject::cli
