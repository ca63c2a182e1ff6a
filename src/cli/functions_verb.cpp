#include "cli/command_line.hpp"
#include "cli/function_calls.hpp"
#include "cli/profile_source.hpp"
#include "cli/reporter.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace pyinject::cli {

namespace {

constexpr auto kFunctionsOptions = std::to_array<Option>({
    rows::kInput.with("the same as FILE, the recording (default: perf.data)"),
    {"--timeline", "print every call and return in order instead"},
    {"--json", "for programs: docs/functions.md describes the fields"},
});

constexpr std::string_view kFunctionsHelp =
    R"(usage: perf-pyinject functions [OPTION...] [FILE]

Shows the calls that perf-pyinject record --functions has recorded: for each
function the calls, the returns, the inclusive time and the own time (without
callees), sorted by own time. The times include the cost of recording, 1 to 3 us
for each call and each return; calls are 20 to 60 times slower. A generator or
coroutine is entered when it is created and each time it is resumed; each yield
is a return.

{options}

examples:
  perf-pyinject record --functions -p 4711 -- sleep 1
  perf-pyinject functions
  perf-pyinject functions --timeline calls.data | head -50
)";

void parse_functions(const VerbArguments& arguments, CommandLine& line) {
  const auto parsed = parse_words(functions_verb, arguments, Operands::kOne, line);
  line.options = FunctionsCommand{.input = parse_file(functions_verb, parsed),
                                  .timeline = parsed.has("timeline"),
                                  .json = parsed.has("json")};
}

int run_functions(const CommandLine& line, Reporter& reporter, const Terminal& /*terminal*/) {
  return print_functions(std::get<FunctionsCommand>(line.options), reporter.logger());
}

}  // namespace

const VerbSpec functions_verb{.name = "functions",
                              .summary = "show the calls that record --functions has recorded",
                              .options = kFunctionsOptions,
                              .parse = parse_functions,
                              .run = run_functions,
                              .help = kFunctionsHelp,
                              .reads_proc = false};

}  // namespace pyinject::cli
