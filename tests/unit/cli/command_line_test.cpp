#include "cli/command_line.hpp"

#include "base/text.hpp"
#include "cli/help.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"
#include "perf/record_options.hpp"
#include "unit/cli/mistake.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <regex>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::cli {
namespace {

using base::Pid;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Words = std::vector<std::string>;

CommandLine parse(const Words& words) { return parse_command_line(words, {}); }

record::RecordPlan record_of(const CommandLine& line) {
  return std::get<RecordCommand>(line.options).record;
}

record::RecordPlan parse_record(const Words& words) { return record_of(parse(words)); }

TEST(CommandLine, PassesPerfsOptionsOnUnchangedAndInOrder) {
  const auto line = parse({"record", "-F", "999", "-p", "12,34", "-g", "-o", "my file",
                           "--call-graph=dwarf,8192", "-v", "-e", "cycles:u", "--", "sleep", "-p"});
  EXPECT_THAT(record_of(line).pids(), ElementsAre(Pid{12}, Pid{34}));
  EXPECT_THAT(
      record_of(line).perf_options.words(),
      ElementsAre("-F", "999", "-g", "-o", "my file", "--call-graph=dwarf,8192", "-e", "cycles:u"));
  EXPECT_THAT(record_of(line).command, ElementsAre("sleep", "-p"));
  EXPECT_EQ(line.verbosity, Verbosity::kVerbose);
  EXPECT_TRUE(record_of(line).strict);
}

TEST(CommandLine, FindsTheCommandWithoutASeparator) {
  const auto line = parse({"record", "-p", "1", "-z", "sleep", "5"});
  EXPECT_THAT(record_of(line).perf_options.words(), ElementsAre("-z"));
  EXPECT_THAT(record_of(line).command, ElementsAre("sleep", "5"));
}

TEST(CommandLine, TakesOurOptionsOutOfClusters) {
  const auto line = parse({"record", "-qp12", "true"});
  EXPECT_THAT(record_of(line).perf_options.words(), IsEmpty());
  EXPECT_THAT(record_of(line).pids(), ElementsAre(Pid{12}));
  EXPECT_EQ(line.verbosity, Verbosity::kQuiet);
  EXPECT_THAT(parse_record({"record", "-gvp12"}).perf_options.words(), ElementsAre("-g"));
}

TEST(CommandLine, KeepsPerfsClustersWhole) {
  const auto line = parse({"record", "-gF", "99", "-vRgp", "12", "-iP"});
  EXPECT_THAT(record_of(line).perf_options.words(), ElementsAre("-gF", "99", "-Rg", "-iP"));
  EXPECT_THAT(record_of(line).pids(), ElementsAre(Pid{12}));
}

TEST(CommandLine, WholeSystemIsLenientUnlessToldOtherwise) {
  EXPECT_TRUE(parse_record({"record", "-a"}).whole_system());
  EXPECT_FALSE(parse_record({"record", "-a"}).strict);
  EXPECT_TRUE(parse_record({"record", "-a", "--strict"}).strict);
  EXPECT_FALSE(parse_record({"record", "-p", "1", "--lenient"}).strict);
  EXPECT_EQ(mistake({"record", "-p", "1", "--lenient", "--strict"}).status, 129);
}

TEST(CommandLine, ParsesJoin) {
  const auto line = parse({"join", "4711", "--gil", "--tasks", "--lines", "--keep-raw",
                           "--python-only", "--stats", "f", "--perf", "p", "-v"});
  EXPECT_EQ(line.verb, &join_verb);
  const auto options = std::get<record::JoinOptions>(line.options);
  EXPECT_EQ(options.perf, Pid{4711});
  const auto& flags = options.flags;
  EXPECT_TRUE(flags.gil && flags.tasks && flags.lines && flags.keep_raw && flags.python_only);
  EXPECT_EQ(line.report.stats, "f");
  EXPECT_EQ(options.search.option, "p");
  EXPECT_EQ(line.verbosity, Verbosity::kVerbose);
  EXPECT_EQ(std::get<record::JoinOptions>(parse({"join", "-q", "12"}).options).perf, Pid{12});
  for (const auto* pid : {"", "0", "-1", "x", "1,2"}) {
    EXPECT_EQ(mistake({"join", pid}).status, 129) << pid;
  }
  EXPECT_EQ(mistake({"join"}).status, 129);
  EXPECT_EQ(mistake({"join", "1", "2"}).status, 129);
  EXPECT_EQ(mistake({"join", "-p", "1"}).status, 129);
}

TEST(CommandLine, ParsesOutputForPrograms) {
  const auto line = parse({"record", "-p", "1", "--stats", "a file", "--log-format", "json",
                           "--deactivate-timeout", "0.5"});
  EXPECT_EQ(line.report.stats, "a file");
  EXPECT_TRUE(line.report.json);
  EXPECT_EQ(record_of(line).deactivation_deadline, std::chrono::milliseconds{500});
  EXPECT_THAT(record_of(line).perf_options.words(), IsEmpty());
  const auto plain = parse({"deactivate", "-p", "1", "--log-format=text"});
  EXPECT_FALSE(plain.report.json);
  EXPECT_FALSE(plain.report.stats.has_value());
  EXPECT_EQ(std::get<DeactivateCommand>(plain.options).deactivation_deadline,
            std::chrono::seconds{5});
  EXPECT_TRUE(parse({"status", "--log-format=json"}).report.json);
}

TEST(CommandLine, ChecksOutputForPrograms) {
  EXPECT_EQ(mistake({"record", "-p", "1", "--log-format", "xml"}).status, 129);
  EXPECT_THAT(mistake({"status", "--log-format", "xml"}).text,
              HasSubstr("xml: expected text or json"));
  for (const auto* seconds : {"0", "-1", "5s", "nan", "1e3", "3601", ""}) {
    EXPECT_EQ(mistake({"activate", "-p", "1", "--deactivate-timeout", seconds}).status, 129)
        << seconds;
  }
  EXPECT_EQ(mistake({"weave", "perf.data", "--names", "-o", "x"}).status, 129);
  EXPECT_EQ(mistake({"weave", "perf.data", "--names", "--python-only"}).status, 129);
  EXPECT_EQ(mistake({"weave", "perf.data", "--stats", "x"}).status, 129)
      << "weave has no statistics";
}

TEST(CommandLine, PerfComesFromTheOptionAndTheEnvironment) {
  const auto line = parse_command_line({"record", "-p", "1", "--perf", "/a"}, "/b");
  EXPECT_EQ(record_of(line).perf.option, "/a");
  EXPECT_EQ(record_of(line).perf.environment, "/b");
}

TEST(CommandLine, RefusesWhatIsNoPid) {
  for (const auto& [list, piece] : {std::pair{"abc", "'abc'"},
                                    {"1,,2", "''"},
                                    {"-1", "'-1'"},
                                    {"0", "'0'"},

                                    {"1,2 ", "'2 '"},
                                    {"99999999999", "'99999999999'"}}) {
    const auto found = mistake({"record", "-p", list});
    EXPECT_EQ(found.status, 129) << list;
    EXPECT_THAT(found.text, HasSubstr("invalid pid " + std::string{piece})) << list;
  }
  EXPECT_EQ(mistake({"activate", "--pid=x"}).status, 129);
  EXPECT_EQ(mistake({"record", "-p", ""}).status, 129);
}

TEST(CommandLine, ReportsMistakesWithTheirStatus) {
  EXPECT_EQ(mistake({"--quiet"}).status, 129);
  EXPECT_EQ(mistake({"--bogus"}).status, 129);
  EXPECT_EQ(mistake({"recrod"}).status, 129);
  EXPECT_EQ(mistake({"recrod"}).text, "unknown verb 'recrod': did you mean record?");
  EXPECT_EQ(mistake({"flame"}).text, "unknown verb 'flame': did you mean flamegraph?");
  EXPECT_EQ(mistake({"4711"}).text, "unknown verb '4711': did you mean why 4711?");
  EXPECT_EQ(mistake({"help", "dmup"}).text, "help: unknown verb 'dmup': did you mean dump?");
  EXPECT_EQ(mistake({"record", "-p", "1", "--enigne", "bpf"}).text,
            "unknown option --enigne: did you mean --engine?");
  EXPECT_EQ(mistake({"why", "--duratoin", "3"}).text,
            "unknown option --duratoin: did you mean --duration?");
  EXPECT_EQ(mistake({"status", "--jsno"}).text, "unknown option --jsno: did you mean --json?");
  EXPECT_EQ(mistake({"record"}).status, 129);
  EXPECT_EQ(mistake({"record", "-p"}).status, 129);
  EXPECT_EQ(mistake({"record", "-p", "1", "-a"}).status, 129);
  EXPECT_EQ(mistake({"record", "-p", "1", "--"}).status, 129);
  EXPECT_EQ(mistake({"record", "-p", "1", "--"}).text, "no command after '--'");
  EXPECT_EQ(mistake({"record", "-p", "1", "--no-pid"}).status, 129);
  EXPECT_EQ(mistake({"activate"}).status, 129);
  EXPECT_EQ(mistake({"deactivate", "-p", "1", "x"}).status, 129);
  EXPECT_TRUE(std::get<DeactivateCommand>(parse({"deactivate", "--abandoned"}).options).abandoned);
  EXPECT_EQ(mistake({"deactivate", "--abandoned", "-p", "1"}).status, 129);
  EXPECT_EQ(mistake({"status", "--frequency", "9"}).status, 129);
  EXPECT_EQ(mistake({"record", "-p", "1", "--strict=yes"}).status, 129);
}

TEST(CommandLine, LaunchesTheCommandIfNoTargetIsGiven) {
  for (const auto& words : {Words{"record", "-F", "99", "--", "python3", "-a", "app.py"},
                            Words{"record", "-F", "99", "python3", "-a", "app.py"}}) {
    const auto line = parse(words);
    EXPECT_TRUE(record_of(line).launches());
    EXPECT_FALSE(record_of(line).whole_system());
    EXPECT_THAT(record_of(line).command, ElementsAre("python3", "-a", "app.py"));
    EXPECT_THAT(record_of(line).perf_options.words(), ElementsAre("-F", "99"));
  }
  EXPECT_FALSE(parse_record({"record", "-a", "--", "true"}).launches());
  EXPECT_FALSE(parse_record({"record", "-p", "1", "--", "true"}).launches());
  EXPECT_EQ(mistake({"record", "--"}).status, 129);
}

TEST(CommandLine, TakesPidsAndANameWithoutAnOption) {
  const auto dump = [](const Words& words) {
    return std::get<DumpCommand>(parse_command_line(words, {}).options);
  };
  const auto why = [](const Words& words) {
    return std::get<WhyCommand>(parse_command_line(words, {}).options);
  };
  EXPECT_THAT(dump({"dump", "1,2", "--stop", "3"}).pids, ElementsAre(Pid{1}, Pid{2}, Pid{3}));
  EXPECT_TRUE(dump({"dump", "1,2", "--stop", "3"}).stop);
  EXPECT_EQ(dump({"dump", "shop*", "-u", "0"}).scope.name, "shop*");
  EXPECT_EQ(dump({"dump", "shop*", "-u", "0"}).scope.user, uid_t{0});
  EXPECT_TRUE(why({"why"}).pids.empty());
  EXPECT_THAT(why({"why", "7", "--children"}).pids, ElementsAre(Pid{7}));
  EXPECT_TRUE(why({"why", "7", "--children"}).children);
  EXPECT_EQ(why({"why", "shop", "-d", "3"}).duration, std::chrono::seconds{3});
  EXPECT_EQ(why({"why", "shop", "-d", "3"}).scope.name, "shop");
  EXPECT_THAT(std::get<ActivateCommand>(parse({"activate", "5"}).options).pids,
              ElementsAre(Pid{5}));
  for (const auto& words :
       {Words{"dump", "1", "shop"}, Words{"dump", "shop", "app"}, Words{"dump", "-a", "1"},
        Words{"dump", "0"}, Words{"dump", "1,,2"}, Words{"activate", "shop"},
        Words{"why", "--children"}, Words{"why", "shop", "--children"}, Words{"dump", "--", "1"}}) {
    EXPECT_EQ(mistake(words).status, 129) << testing::PrintToString(words);
  }
  EXPECT_EQ(mistake({"why", "-p", "1", "sleep", "5"}).text,
            "why: unexpected argument 'sleep'; did you mean -d 5?");
}

TEST(CommandLine, RecordsAPidForATime) {
  const auto timed = parse_record({"record", "4711,4712", "-F", "99", "-d", "3"});
  EXPECT_THAT(timed.pids(), ElementsAre(Pid{4711}, Pid{4712}));
  EXPECT_EQ(timed.duration, std::chrono::seconds{3});
  EXPECT_THAT(timed.perf_options.words(), ElementsAre("-F", "99"));
  const auto by_command =
      parse_record({"record", "-F", "99", "4711", "--lines", "--", "sleep", "5"});
  EXPECT_THAT(by_command.pids(), ElementsAre(Pid{4711}));
  EXPECT_THAT(by_command.command, ElementsAre("sleep", "5"));
  EXPECT_TRUE(by_command.flags.lines);
  EXPECT_TRUE(parse_record({"record", "--", "4711"}).launches());
  EXPECT_THAT(parse_record({"record", "-p", "1", "--data"}).perf_options.words(),
              ElementsAre("--data"));
  EXPECT_EQ(mistake({"record", "-p", "1", "-dP"}).text,
            "-d (perf's own is --data) P: expected 1 to 86400");
  for (const auto& words :
       {Words{"record", "1", "-d", "3", "--", "sleep", "5"}, Words{"record", "-d", "3", "true"},
        Words{"record", "1", "-d", "0"}, Words{"record", "1", "-d", "-a"},
        Words{"record", "1", "-d", "3", "--repeat", "1s/2s"}}) {
    EXPECT_EQ(mistake(words).status, 129) << testing::PrintToString(words);
  }
}

TEST(CommandLine, TakesTheOldNameOfTheDuration) {
  EXPECT_EQ(std::get<WhyCommand>(parse({"why", "-p", "1", "--delay", "3"}).options).duration,
            std::chrono::seconds{3});
}

TEST(CommandLine, RefersToPerfForItsOtherVerbs) {
  for (const std::string verb : {"stat", "trace", "sched", "kmem"}) {
    EXPECT_EQ(mistake({verb, "-p", "1"}).status, 129);
    EXPECT_THAT(mistake({verb, "-p", "1"}).text,
                HasSubstr("unknown verb '" + verb + "': run perf " + verb +
                          " itself; the verbs of perf-pyinject are record, top, why, dump, report, "
                          "flamegraph, export, serve, join"));
  }
}

TEST(CommandLine, ParsesTop) {
  const auto top = [](const std::vector<std::string>& words) {
    return std::get<TopCommand>(parse_command_line(words, {}).options);
  };
  EXPECT_EQ(top({"top"}).pids.size(), 0U);
  EXPECT_EQ(top({"top"}).frequency, 199);
  EXPECT_EQ(top({"top", "-F", "99"}).frequency, 99);
  EXPECT_THAT(top({"top", "-p", "1,2", "--children"}).pids, ElementsAre(Pid{1}, Pid{2}));
  EXPECT_TRUE(top({"top", "--once", "--json", "-d", "3"}).json);
  EXPECT_EQ(top({"top", "--once", "-d", "3"}).duration, std::chrono::seconds{3});
  for (const auto& words : {std::vector<std::string>{"top", "-p", "1", "-a"},
                            {"top", "--children"},
                            {"top", "--json"},
                            {"top", "-d", "3"},
                            {"top", "-F", "0"},
                            {"top", "-F", "x"},
                            {"top", "--once", "-d", "0"}}) {
    EXPECT_EQ(mistake(words).status, 129) << words.back();
  }
}

TEST(CommandLine, RefusesTheOptionsThatItNeedsItself) {
  for (const auto& words : {Words{"-D", "100"}, Words{"--delay=1"}, Words{"--control", "fd:3"},
                            Words{"-t", "5"}, Words{"--kernel-callchains"}, Words{"--no-timestamp"},
                            Words{"--synth=no"}, Words{"--synth", "task,cgroup"}}) {
    Words line = {"record", "-p", "1"};
    line.insert(line.end(), words.begin(), words.end());
    EXPECT_EQ(mistake(line).status, 129) << words.front();
    EXPECT_THAT(mistake(line).text, HasSubstr("option -")) << words.front();
  }
}

TEST(CommandLine, PassesOnWhatLeavesPythonInPlace) {
  const Words words{"-T", "--synth=all", "--synth=task,mmap", "--user-callchains", "--per-thread"};
  Words line = {"record", "-p", "1"};
  line.insert(line.end(), words.begin(), words.end());
  EXPECT_EQ(record_of(parse(line)).perf_options.words(), words);
}

TEST(CommandLine, ProcessorsWithoutAProcessAreThoseOfAllProcesses) {
  const auto of = [](const Words& line) { return record_of(parse(line)); };
  EXPECT_TRUE(of({"record", "-C", "0", "--", "sleep", "1"}).whole_system());
  EXPECT_FALSE(of({"record", "-C", "0", "--", "sleep", "1"}).launches());
  EXPECT_FALSE(of({"record", "-C", "0", "-p", "1"}).whole_system());
}

TEST(CommandLine, ChoosesOfAllProcesses) {
  const auto line =
      parse({"record", "-u", "root", "--comm", "gunicorn*", "-G", "/system.slice/web/"});
  EXPECT_TRUE(record_of(line).whole_system());
  EXPECT_FALSE(record_of(line).strict);
  EXPECT_EQ(record_of(line).scope().user, 0U);
  EXPECT_EQ(record_of(line).scope().command, "gunicorn*");
  EXPECT_EQ(record_of(line).scope().cgroup, "system.slice/web");
  EXPECT_THAT(record_of(line).perf_options.words(), IsEmpty());
  EXPECT_EQ(parse_record({"record", "-G", "/"}).scope().cgroup, "");
  EXPECT_TRUE(parse_record({"record", "-p", "1", "--children"}).families());
}

TEST(CommandLine, RefusesChoicesThatExcludeEachOther) {
  for (const auto& words :
       {Words{"-a"}, Words{"-u", "0"}, Words{"--comm", "x"}, Words{"-G", "x"}}) {
    Words line = {"record", "-p", "1"};
    line.insert(line.end(), words.begin(), words.end());
    EXPECT_EQ(mistake(line).status, 129) << words.front();
    EXPECT_THAT(mistake(line).text, HasSubstr("a PID cannot be combined")) << words.front();
  }
  EXPECT_EQ(mistake({"record", "-a", "--children"}).status, 129);
  EXPECT_EQ(mistake({"record", "-u", "no such user"}).status, 129);
  EXPECT_EQ(mistake({"record", "-G", "a,b"}).status, 129);
  EXPECT_EQ(mistake({"record", "--comm="}).status, 129);
}

TEST(CommandLine, TakesTheEngineThatAnOptionNeeds) {
  for (const auto* const option : {"--gil", "--tasks"}) {
    EXPECT_EQ(parse_record({"record", "-p", "1", option}).engine, record::EngineChoice::kBpf);
    EXPECT_EQ(parse_record({"record", "-p", "1", option, "--engine", "auto"}).engine,
              record::EngineChoice::kAuto);
    EXPECT_EQ(mistake({"record", "-p", "1", option, "--engine", "trampoline"}).status, 129);
  }
}

TEST(CommandLine, StatusNeedsNoTarget) {
  EXPECT_THAT(std::get<StatusCommand>(parse({"status"}).options).pids, IsEmpty());
  const auto line = parse({"status", "--json", "-p1", "-p", "2,3"});
  const auto status = std::get<StatusCommand>(line.options);
  EXPECT_TRUE(status.json);
  EXPECT_THAT(status.pids, ElementsAre(Pid{1}, Pid{2}, Pid{3}));
}

TEST(CommandLine, ParsesServe) {
  const auto serve = [](const std::vector<std::string>& words) {
    return std::get<ServeCommand>(parse_command_line(words, {}).options);
  };
  EXPECT_EQ(serve({"serve"}).most_seconds, std::chrono::seconds{300});
  EXPECT_EQ(serve({"serve", "--max-requests", "5"}).most_requests, 5);
  EXPECT_THAT(serve({"serve", "-p", "1,2"}).pids, ElementsAre(Pid{1}, Pid{2}));
  for (const auto& words : {std::vector<std::string>{"serve", "-p", "1", "-a"},
                            {"serve", "--max-seconds", "0"},
                            {"serve", "--max-requests", "x"},
                            {"serve", "--max-rate", "-1"},
                            {"serve", "-F", "0"},
                            {"serve", "perf.data"}}) {
    EXPECT_EQ(mistake(words).status, 129) << words.back();
  }
}

TEST(CommandLine, DumpTakesProcessesOrAScope) {
  const auto line = parse({"dump", "-p", "1,2", "--json", "--watch", "500ms"});
  const auto& named = std::get<DumpCommand>(line.options);
  EXPECT_EQ(named.pids.size(), 2U);
  EXPECT_TRUE(named.json);
  EXPECT_EQ(named.period, std::chrono::milliseconds{500});
  const auto scoped = parse({"dump", "-u", "0", "--comm", "py*"});
  const auto& scope = std::get<DumpCommand>(scoped.options).scope;
  EXPECT_EQ(scope.user, 0U);
  EXPECT_EQ(scope.command, "py*");
}

TEST(CommandLine, DumpStopsOnlyOnRequest) {
  const auto stops = [](std::initializer_list<std::string> words) {
    std::vector<std::string> all{"dump", "-p", "1"};
    all.insert(all.end(), words);
    return std::get<DumpCommand>(parse(all).options).stop;
  };
  EXPECT_FALSE(stops({}));
  EXPECT_TRUE(stops({"--stop"}));
  EXPECT_FALSE(stops({"--native"}));  // only if it must
}

TEST(CommandLine, DumpNeedsOneKindOfTarget) {
  EXPECT_EQ(mistake({"dump"}).status, 129);
  EXPECT_THAT(mistake({"dump"}).text, HasSubstr("perf-pyinject status"));
  EXPECT_THAT(mistake({"dump", "-p", "1", "-a"}).text, HasSubstr("a PID cannot be combined"));
  for (const auto& process : std::vector<std::vector<std::string>>{{"-p", "7"}, {"7"}, {"-a"}}) {
    std::vector<std::string> words{"why"};
    words.insert(words.end(), process.begin(), process.end());
    words.insert(words.end(), {"--", "sleep", "2"});
    EXPECT_THAT(mistake(words).text,
                HasSubstr("give either a process or -- COMMAND; did you mean -d 2?"));
  }
}

TEST(CommandLine, DumpRefusesWatchTimesThatAreNone) {
  for (const auto* const time : {"0s", "1", "soon", "-1s", "1e9h"}) {
    EXPECT_THAT(mistake({"dump", "-a", "--watch", time}).text, HasSubstr("expected a time"))
        << time;
  }
}

TEST(CommandLine, HelpNeedsNothingElse) {
  EXPECT_TRUE(parse({"--help"}).help);
  EXPECT_TRUE(parse({"--version"}).version);
  const auto line = parse({"record", "--help"});
  EXPECT_TRUE(line.help);
  EXPECT_EQ(line.verb, &record_verb);
}

TEST(Verbs, AreFoundByTheirNames) {
  for (const auto* const verb : verbs()) {
    EXPECT_EQ(find_verb(verb->name), verb);
    EXPECT_THAT(general_help(), HasSubstr(std::string{verb->name})) << verb->name;
    EXPECT_TRUE(parse({std::string{verb->name}, "--help"}).help) << verb->name;
  }
  EXPECT_EQ(find_verb("annotate"), nullptr);
}

TEST(Help, ShowsWhatMattersByTask) {
  const auto text = general_help();
  for (const auto* const heading :
       {"\nrecord what", "\nwhich stacks:", "\nwhere the output goes:", "\ndiagnose:"}) {
    EXPECT_THAT(text, HasSubstr(heading));
  }
  std::set<std::string> known{"--version"};
  for (const auto& option : options_of(record_verb)) {
    known.insert(fmt::format("--{}", option.long_name()));
  }
  for (const auto& option : perf::record_options()) {
    known.insert(fmt::format("--{}", option.long_name));
  }
  const std::regex option{"--[a-z][a-z-]*"};
  for (std::sregex_iterator one{text.begin(), text.end(), option}, end; one != end; ++one) {
    EXPECT_THAT(known, Contains(one->str()));
  }
}

TEST(Help, FitsAScreen) {
  std::vector<std::string> texts{general_help()};
  for (const auto* const verb : verbs()) {
    texts.push_back(verb_help(*verb));
  }
  for (const auto& text : texts) {
    const auto lines = base::split(text, '\n');
    EXPECT_LE(lines.size(), 50U) << text;
    for (const auto line : lines) {
      EXPECT_LE(line.size(), 80U) << line;
    }
    EXPECT_THAT(text, HasSubstr("example"));
  }
}

}  // namespace
}  // namespace pyinject::cli
