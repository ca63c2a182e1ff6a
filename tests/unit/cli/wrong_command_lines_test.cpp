// What hands type: each wrong command line is answered by one line that leads on.
#include "base/text.hpp"
#include "unit/cli/mistake.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pyinject::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Wrong {
  std::string_view typed;
  std::string_view answer;  // part of it
};

constexpr auto kWrong = std::to_array<Wrong>({
    // verbs
    {"recrd -p 1", "did you mean record?"},
    {"flame 4711", "did you mean flamegraph?"},
    {"attach 4711", "did you mean record?"},
    {"profile 4711", "did you mean record?"},
    {"stack 4711", "did you mean dump?"},
    {"bt 4711", "did you mean dump?"},
    {"ps", "did you mean status?"},
    {"live shop", "did you mean top?"},
    {"run -- python3 x.py", "did you mean why?"},
    {"pprof web.data", "did you mean export?"},
    {"4711", "did you mean why 4711?"},
    {"annotate", "run perf annotate itself"},
    {"perf-pyinject why 4711", "leave it out: it is the name of this program"},
    {"help whyy", "did you mean why?"},
    {"--verson", "did you mean --version?"},
    {"-p 4711", "the verb comes first, as in: perf-pyinject why -p 4711"},
    {"--json why", "the verb comes first, as in: perf-pyinject why --json why"},
    // options
    {"top --onces", "did you mean --once?"},
    {"status --jsn", "did you mean --json?"},
    {"why --pid", "option --pid needs a value"},
    {"why -p shop", "perf-pyinject status lists the pids"},
    {"dump --tid main", "invalid thread 'main'"},
    {"why -d ten", "-d ten: expected 1 to 600"},
    {"why -d 0", "-d 0: expected 1 to 600"},
    {"why -F 99999", "expected 1 to 5000"},
    {"dump -a --watch 5", "expected a time such as 1s or 500ms"},
    {"record --engine bfp -p 1", "expected trampoline, bpf or auto"},
    {"report --view function", "did you mean functions?"},
    {"report --sort totl", "did you mean total?"},
    {"report --time 5", "expected a range such as 2-5"},
    {"report --percent 5", "--percent is for --view tree"},
    {"export -f perfeto", "did you mean perfetto?"},
    {"export web.data", "export needs a format: -f folded"},
    {"why 4711 -o why.svg", "expected a name that ends with one of: .html"},
    {"top --json", "need --once"},
    {"why --json --markdown", "exclude each other"},
    {"why --children", "--children is for -p"},
    // targets and commands
    {"dump", "dump needs a target: a PID, a NAME, or -a"},
    {"record -d 5", "no target: use -p PID"},
    {"record -p 1 -d 3 -- sleep 3", "give either -d or a COMMAND"},
    {"record -d 3 -- python3 x.py", "a launched command is recorded whole"},
    {"why 4711 -- sleep 10", "give either a process or -- COMMAND; did you mean -d 10?"},
    {"top 4711 -- sleep 10", "did you mean -d 10?"},
    {"why -d 5 -- python3 x.py", "a launched command is recorded whole"},
    {"why --", "no command after '--'"},
    {"flamegraph -- python3 x.py", "perf-pyinject why -o page.html -- COMMAND"},
    {"flamegraph -d 5 -- python3 x.py", "perf-pyinject why -o page.html -- COMMAND"},
    {"flamegraph a.data b.data", "give one FILE"},
    {"why 4711 -u root", "a PID cannot be combined"},
    {"join", "perf-pyinject join PERF_PID"},
    {"dump --core core.1 4711", "--core cannot be combined"},
});

TEST(WrongCommandLines, AreAnsweredByALineThatLeadsOn) {
  for (const auto& wrong : kWrong) {
    std::vector<std::string> words;
    for (const auto word : base::split(wrong.typed, ' ')) {
      words.emplace_back(word);
    }
    const auto answer = mistake(words);
    EXPECT_EQ(answer.status, 129) << wrong.typed;
    EXPECT_THAT(answer.text, HasSubstr(std::string{wrong.answer})) << wrong.typed;
    EXPECT_THAT(answer.text, Not(HasSubstr("\n"))) << wrong.typed;
  }
}

}  // namespace
}  // namespace pyinject::cli
