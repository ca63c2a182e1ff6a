#include "cli/command_line.hpp"
#include "cli/console.hpp"
#include "cli/reporter.hpp"
#include "cli/verbs.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/record/options.hpp"
#include "pyinject/record/wrapped_perf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace pyinject::cli {

namespace {

using session::kUsage;

// For completions and manual pages; Scanner reads them.
constexpr auto kWrappedOptions = std::to_array<perf::RecordOption>({
    {"help", 'h', kFlag},
    {"pid", 'p', kValue},
    {"perf", 0, kValue},
    {"strict", 0, kFlag},
    {"lenient", 0, kFlag},
});

constexpr std::string_view kWrappedHelp =
    R"(usage: perf-pyinject trace -p PID[,PID...] [OPTION...]
       perf-pyinject sched|kmem record -p PID[,PID...] [OPTION...] [-- CMD...]

Switches the targets' perf trampoline on, runs perf's verb in the foreground,
and switches the trampoline off when perf ends. Options that are not listed here
go to perf. `trace` has complete stacks only with --call-graph fp and an
interpreter with frame pointers (perf-pyinject status, column FP); otherwise
it shows only the innermost function. Recorded stacks (-g, --call-graph dwarf)
are unwound as with record.

  -p, --pid LIST   the targets
      --perf PATH  the perf to run (else $PERF, else the one on PATH)
      --strict     fail if one target cannot be activated (default)
      --lenient    skip targets that cannot be activated

exit status: perf's; 125 refused or failed; 128 + N after signal N; 129 usage

examples:
  perf-pyinject trace --call-graph fp -e 'write*' -p 4711
  perf-pyinject sched record -g -p 4711 -- sleep 5 && perf sched timehist
)";

struct WrappedVerb {
  bool help = false;
  session::WrapOptions options;
};

// "12,34": no other short option of perf has such a value after it in one cluster with -p.
bool is_pid_list(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789,") == std::string_view::npos;
}

bool is_cluster_with_pid(std::string_view word) {
  return word.size() > 2 && word[0] == '-' && word[1] != '-' && word.back() == 'p';
}

class Scanner {
 public:
  explicit Scanner(std::span<const std::string> words) : words_{words} {}

  WrappedVerb scan() {
    auto& options = result_.options;
    options.verb = {words_.front()};
    // "kmem --page record": words before "record" belong to the verb itself.
    const auto record = find_record();
    if (record != words_.end()) {
      options.verb.assign(words_.begin(), record + 1);
    }
    next_ = options.verb.size();
    const bool writes = words_.front() == "sched" || words_.front() == "kmem";
    while (next_ < words_.size() && words_[next_] != "--") {
      take(words_[next_++]);
    }
    const auto rest = words_.subspan(next_);
    options.arguments.insert(options.arguments.end(), rest.begin(), rest.end());
    if (result_.help) {
      return std::move(result_);
    }
    if (writes && !options.records()) {
      throw CommandLineError{
          fmt::format(
              "{0}: only '{0} record' profiles running processes; for the rest run perf {0} itself",
              words_.front()),
          kUsage};
    }
    if (options.pids.empty()) {
      throw CommandLineError{fmt::format("{} needs a target: -p PID", words_.front()), kUsage};
    }
    if (strict_ && lenient_) {
      throw CommandLineError{"give either --strict or --lenient", kUsage};
    }
    options.strict = !lenient_;
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::span<const std::string>::iterator find_record() const {
    const auto first = std::find_if(words_.begin() + 1, words_.end(), [](const auto& word) {
      return word.empty() || word.front() != '-';
    });
    return first != words_.end() && *first == "record" ? first : words_.end();
  }

  void take(const std::string& word) {
    if (word == "-h" || word == "--help") {
      result_.help = true;
    } else if (word == "--strict") {
      strict_ = true;
    } else if (word == "--lenient") {
      lenient_ = true;
    } else if (const auto perf = value_of("--perf", word)) {
      result_.options.perf.option = *perf;
    } else {
      result_.options.arguments.push_back(word);
      take_pids(word);
    }
  }

  void take_pids(const std::string& word) {
    std::string list;
    if (word == "-p" || word == "--pid" ||
        (is_cluster_with_pid(word) && next_ < words_.size() && is_pid_list(words_[next_]))) {
      list = next_word(word);
      result_.options.arguments.push_back(list);
    } else if (word.starts_with("--pid=")) {
      list = word.substr(word.find('=') + 1);
    } else if (word.starts_with("-p") && is_pid_list(std::string_view{word}.substr(2))) {
      list = word.substr(2);
    } else {
      return;
    }
    const auto pids = parse_pids(list);
    result_.options.pids.insert(result_.options.pids.end(), pids.begin(), pids.end());
  }

  std::string next_word(std::string_view option) {
    if (next_ == words_.size()) {
      throw CommandLineError{fmt::format("option {} needs a value", option), kUsage};
    }
    return words_[next_++];
  }

  // "NAME VALUE" or "NAME=VALUE".
  std::optional<std::string> value_of(std::string_view name, const std::string& word) {
    if (word == name) {
      return next_word(name);
    }
    if (word.starts_with(name) && word.size() > name.size() && word[name.size()] == '=') {
      return word.substr(name.size() + 1);
    }
    return std::nullopt;
  }

  std::span<const std::string> words_;
  std::size_t next_ = 0;
  bool strict_ = false;
  bool lenient_ = false;
  WrappedVerb result_;
};

// Own options are --perf, --strict and --lenient; -p is read and also passed to perf; all others
// belong to perf, whose own parser knows them.
void parse_wrapped(const VerbArguments& arguments, CommandLine& line) {
  auto wrapped = Scanner{arguments.words}.scan();
  line.help = wrapped.help;
  wrapped.options.perf.environment = arguments.perf;
  line.options = std::move(wrapped.options);
}

int run_wrapped(const CommandLine& line, Reporter& reporter, const Terminal& /*terminal*/) {
  const auto& options = std::get<session::WrapOptions>(line.options);
  const auto detector = python::make_detector();
  const auto injector = python::make_injector();
  Console console{reporter.logger(), false, name_of_perf(options.perf)};
  return session::wrap_perf(options, *detector, *injector, reporter.logger(), console);
}

constexpr VerbSpec wrapped_verb(std::string_view name) {
  return {.name = name,
          .summary = "run perf's own verb while the targets' trampoline is on",
          .options = kWrappedOptions,
          .parse = parse_wrapped,
          .run = run_wrapped,
          .help = kWrappedHelp};
}

}  // namespace

const VerbSpec trace_verb = wrapped_verb("trace");
const VerbSpec sched_verb = wrapped_verb("sched");
const VerbSpec kmem_verb = wrapped_verb("kmem");

}  // namespace pyinject::cli
