// The shells themselves complete, with the files that the build has generated.
#include "cli/completions.hpp"

#include "base/text.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"
#include "mistake.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace pyinject::cli {
namespace {

using testing::Contains;
using testing::Not;
using testing::UnorderedElementsAreArray;

using Words = std::vector<std::string>;

// ANSWERS: the words that are offered for each line, with "." after each line.
std::vector<Words> parse_answers(std::string_view answers) {
  std::vector<Words> result(1);
  for (const auto line : base::split(answers, '\n')) {
    if (line == ".") {
      result.emplace_back();
    } else if (!line.empty()) {
      const auto word = line.substr(0, line.find_first_of("\t "));
      result.back().emplace_back(word);
    }
  }
  result.pop_back();
  return result;
}

class ShellCompletions : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (test::run({"sh", "-c", "command -v " + GetParam()}).status.code != 0) {
      GTEST_SKIP() << "no " << GetParam();
    }
  }

  // What the shell offers at the end of each line.
  [[nodiscard]] std::vector<Words> offers(const Words& lines) const {
    const auto generated = test::build_dir() + "/generated/";
    const auto script = test::source_dir() + "/tests/unit/cli/completions/complete." + GetParam();
    Words command;
    const test::TempDir directory;
    const auto output = directory / "answers";
    if (GetParam() == "bash") {
      command = {"bash", "--norc", script, generated + "bash/perf.bash"};
    } else if (GetParam() == "zsh") {
      command = {"zsh", "-f", script, generated + "zsh", output};
    } else {
      command = {"fish", "--no-config", script, generated + "fish"};
    }
    command.insert(command.end(), lines.begin(), lines.end());
    test::RunOptions options;
    // fish completes only commands that exist; bash looks for perf's own completion; zsh asks perf.
    std::filesystem::create_directory(directory / "bin");
    std::filesystem::create_symlink("/bin/true", directory / "bin/perf-pyinject");
    if (GetParam() == "fish") {
      std::filesystem::create_symlink("/bin/true", directory / "bin/perf");
    }
    const char* const path = std::getenv("PATH");
    options.child.env = {
        {"HOME", directory.path().string()},
        {"TERM", "xterm"},
        {"PATH", fmt::format("{}:{}", directory / "bin", path == nullptr ? "/bin" : path)},
        {"XDG_DATA_DIRS", directory.path().string()}};
    std::filesystem::create_directories(directory / "bash-completion/completions");
    (void)directory.file("bash-completion/completions/perf",
                         "_perf() { COMPREPLY=(report); }\ncomplete -F _perf perf\n");
    options.child.directory = directory.path().string();
    const auto result = test::run(command, options);
    EXPECT_EQ(result.status.code, 0) << result.err;
    const auto answers =
        parse_answers(GetParam() == "zsh" ? test::contents_of(output) : result.out);
    if (answers.size() != lines.size()) {
      throw base::Error{fmt::format("{} answers: {}{}", answers.size(), result.out, result.err)};
    }
    return answers;
  }
};

INSTANTIATE_TEST_SUITE_P(Shells, ShellCompletions, testing::Values("bash", "zsh", "fish"),
                         [](const auto& shell) { return shell.param; });

TEST_P(ShellCompletions, OfferEachVerbAndEachOptionOfIt) {
  Words lines{"perf-pyinject "};
  for (const auto* const verb : verbs()) {
    lines.push_back(fmt::format("perf-pyinject {} -", verb->name));
  }
  const auto offered = offers(lines);
  EXPECT_THAT(offered.front(), UnorderedElementsAreArray(verb_names()));
  for (std::size_t i = 0; i < verbs().size(); ++i) {
    Words options;
    for (const auto& option : completed_options(*verbs()[i])) {
      options.push_back(fmt::format("--{}", option.long_name()));
      if (option.short_name() != 0) {
        options.push_back(fmt::format("-{}", option.short_name()));
      }
    }
    EXPECT_THAT(offered[i + 1], UnorderedElementsAreArray(options)) << verbs()[i]->name;
  }
}

TEST_P(ShellCompletions, OfferTheValuesOfOptions) {
  const auto offered = offers({"perf-pyinject record --engine ", "perf-pyinject export -f sp",
                               "perf-pyinject top --log-format=", "perf-pyinject report --view t"});
  EXPECT_THAT(offered[0], UnorderedElementsAreArray({"trampoline", "bpf", "auto"}));
  EXPECT_THAT(offered[1], UnorderedElementsAreArray({"speedscope"}));
  const std::string prefix = GetParam() == "fish" ? "--log-format=" : "";
  EXPECT_THAT(offered[2], UnorderedElementsAreArray({prefix + "text", prefix + "json"}));
  EXPECT_THAT(offered[3], testing::IsSupersetOf({"tree", "threads", "tasks"}));
}

TEST_P(ShellCompletions, OfferTheSameAfterPerf) {
  const Words lines{"perf-pyinject ",
                    "perf pyinject ",
                    "perf-pyinject dump -",
                    "perf pyinject dump -",
                    "perf-pyinject record --engine ",
                    "perf pyinject record --engine ",
                    "perf-pyinject record -- sle",
                    "perf pyinject record -- sle"};
  const auto offered = offers(lines);
  for (std::size_t i = 0; i < lines.size(); i += 2) {
    EXPECT_FALSE(offered[i].empty()) << lines[i];
    EXPECT_THAT(offered[i + 1], UnorderedElementsAreArray(offered[i])) << lines[i + 1];
  }
}

// Only bash and zsh have completions of perf itself.
TEST_P(ShellCompletions, LeavePerfsOwn) {
  const auto offered = offers(Words{"perf pyin", "perf repo", "perf report pyin"});
  EXPECT_THAT(offered[0], Contains("pyinject"));
  if (GetParam() != "fish") {
    EXPECT_THAT(offered[1], Contains("report"));
  }
  EXPECT_THAT(offered[2], Not(Contains("pyinject")));
}

TEST_P(ShellCompletions, OfferPidsOfPythons) {
  const test::TempDir directory;
  const auto python = directory / "python3.99";
  const auto other = directory / "other";
  std::filesystem::copy("/bin/sleep", python);
  std::filesystem::copy("/bin/sleep", other);
  const test::ChildProcess wanted{{python, "600"}};
  const test::ChildProcess unwanted{{other, "600"}};
  const auto pid = std::to_string(wanted.pid().value());
  const auto offered = offers(Words{"perf-pyinject dump -p ", "perf-pyinject dump -p 1,"});
  EXPECT_THAT(offered[0], Contains(pid));
  EXPECT_THAT(offered[0], Not(Contains(std::to_string(unwanted.pid().value()))));
  EXPECT_THAT(offered[1], Contains(GetParam() == "zsh" ? pid : "1," + pid));
}

TEST_P(ShellCompletions, OfferRecordings) {
  const test::TempDir directory;
  (void)directory.file("web.data", "");
  const auto line = fmt::format("perf-pyinject report {}/w", directory.path().string());
  EXPECT_THAT(offers(Words{line}).front(), Contains(testing::EndsWith("web.data")));
}

TEST(CompletionTable, DescribesEachOptionInALine) {
  for (const auto* const verb : verbs()) {
    for (const auto& option : completed_options(*verb)) {
      const auto brief = brief_of(option);
      EXPECT_FALSE(brief.empty()) << verb->name << " " << option.term << ": its row has no text";
      EXPECT_LE(brief.size(), 60U) << brief;
    }
  }
}

// The message for a wrong value of OPTION.
std::string refusal(const VerbSpec& verb, std::string_view option) {
  std::string message;
  for (const Words& others : {Words{}, Words{"-p", "1"}, Words{"-p", "1", "-f", "folded"}}) {
    Words line{std::string{verb.name}, fmt::format("--{}=no-such-value", option)};
    line.insert(line.end(), others.begin(), others.end());
    message = mistake(line).text;
    if (message.starts_with(fmt::format("--{} no-such-value: expected", option))) {
      break;
    }
  }
  return message;
}

TEST(CompletionTable, HasTheValuesThatTheVerbsAccept) {
  for (const auto* const verb : verbs()) {
    for (const auto& option : completed_options(*verb)) {
      const auto own = options_of(*verb);
      const bool of_perf =
          std::ranges::find(own, option.long_name(), &Option::long_name) == own.end();
      const auto list = value_of(option).words;
      if (list.empty() || of_perf) {
        continue;
      }
      const auto message = refusal(*verb, option.long_name());
      const auto words = base::split(list, ' ');
      for (const auto word : words) {
        EXPECT_THAT(message, testing::ContainsRegex(fmt::format("expected.*{}", word)))
            << verb->name;
      }
      EXPECT_EQ(
          std::ranges::count(message, ',') + (message.find(" or ") == std::string::npos ? 1 : 2),
          std::ssize(words))
          << message;
    }
  }
}

}  // namespace
}  // namespace pyinject::cli
