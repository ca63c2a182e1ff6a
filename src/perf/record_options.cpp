#include "perf/record_options.hpp"

#include "base/text.hpp"
#include "pyinject/perf/perf_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace pyinject::perf {

namespace {

constexpr auto kNone = OptionArgument::kNone;
constexpr auto kRequired = OptionArgument::kRequired;
constexpr auto kOptional = OptionArgument::kOptional;

constexpr auto kRecordOptions = std::to_array<RecordOption>({
    {"all-cpus", 'a', kNone},
    {"branch-any", 'b', kNone},
    {"no-buildid", 'B', kNone},
    {"count", 'c', kRequired},
    {"cpu", 'C', kRequired},
    {"data", 'd', kNone},
    {"delay", 'D', kRequired},
    {"event", 'e', kRequired},
    {"freq", 'F', kRequired},
    {"", 'g', kNone},
    {"cgroup", 'G', kRequired},
    {"intr-regs", 'I', kOptional},
    {"no-inherit", 'i', kNone},
    {"branch-filter", 'j', kRequired},
    {"clockid", 'k', kRequired},
    {"mmap-pages", 'm', kRequired},
    {"no-buildid-cache", 'N', kNone},
    {"no-samples", 'n', kNone},
    {"output", 'o', kRequired},
    {"period", 'P', kNone},
    {"pid", 'p', kRequired},
    {"quiet", 'q', kNone},
    {"raw-samples", 'R', kNone},
    {"realtime", 'r', kRequired},
    {"snapshot", 'S', kOptional},
    {"stat", 's', kNone},
    {"tid", 't', kRequired},
    {"timestamp", 'T', kNone},
    {"uid", 'u', kRequired},
    {"verbose", 'v', kNone},
    {"weight", 'W', kNone},
    {"compression-level", 'z', kOptional},
    {"affinity", 0, kRequired},
    {"aio", 0, kOptional},
    {"all-cgroups", 0, kNone},
    {"all-kernel", 0, kNone},
    {"all-user", 0, kNone},
    {"aux-sample", 0, kOptional},
    {"buildid-all", 0, kNone},
    {"buildid-mmap", 0, kNone},
    {"call-graph", 0, kRequired},
    {"clang-opt", 0, kRequired},
    {"clang-path", 0, kRequired},
    {"code-page-size", 0, kNone},
    {"control", 0, kRequired},
    {"data-mmap", 0, kNone},
    {"data-page-size", 0, kNone},
    {"debuginfod", 0, kOptional},
    {"dry-run", 0, kNone},
    {"exclude-perf", 0, kNone},
    {"filter", 0, kRequired},
    {"group", 0, kNone},
    {"kcore", 0, kNone},
    {"kernel-callchains", 0, kNone},
    {"latency", 0, kNone},
    {"max-size", 0, kRequired},
    {"mmap-flush", 0, kRequired},
    {"namespaces", 0, kNone},
    {"no-bpf-event", 0, kNone},
    {"no-buffering", 0, kNone},
    {"num-thread-synthesize", 0, kRequired},
    {"off-cpu", 0, kNone},
    {"off-cpu-thresh", 0, kRequired},
    {"overwrite", 0, kNone},
    {"per-thread", 0, kNone},
    {"phys-data", 0, kNone},
    {"proc-map-timeout", 0, kRequired},
    {"running-time", 0, kNone},
    {"sample-cpu", 0, kNone},
    {"sample-identifier", 0, kNone},
    {"sample-mem-info", 0, kNone},
    {"setup-filter", 0, kRequired},
    {"strict-freq", 0, kNone},
    {"switch-events", 0, kNone},
    {"switch-max-files", 0, kRequired},
    {"switch-output", 0, kOptional},
    {"switch-output-event", 0, kRequired},
    {"synth", 0, kRequired},
    {"tail-synthesize", 0, kNone},
    {"threads", 0, kOptional},
    {"timestamp-boundary", 0, kNone},
    {"timestamp-filename", 0, kNone},
    {"transaction", 0, kNone},
    {"user-callchains", 0, kNone},
    {"user-regs", 0, kOptional},
    {"vmlinux", 0, kRequired},
});

using Tables = std::span<const std::span<const RecordOption>>;

class Scanner {
 public:
  Scanner(std::span<const std::string> words, Tables tables) : words_{words}, tables_{tables} {}

  ScannedWords scan() {
    while (next_ < words_.size()) {
      const std::string& word = words_[next_];
      if (word == "--") {
        result_.separator = true;
        ++next_;
        break;
      }
      if (word.size() < 2 || word.front() != '-') {
        break;
      }
      ++next_;
      if (word.starts_with("--")) {
        result_.groups.push_back({scan_long(word)});
      } else {
        scan_cluster(word);
      }
    }
    const auto rest = words_.subspan(next_);
    result_.command.assign(rest.begin(), rest.end());
    return std::move(result_);
  }

 private:
  [[nodiscard]] const RecordOption* find_short(char letter) const {
    for (const auto& table : tables_) {
      for (const auto& option : table) {
        if (option.short_name == letter) {
          return &option;
        }
      }
    }
    return nullptr;
  }

  // An exact name takes precedence over an abbreviation. nullptr: none, or ambiguous; reported as a
  // problem only if the candidates need different treatment here; otherwise perf may report it.
  const RecordOption* find_long(std::string_view name) {
    std::vector<const RecordOption*> candidates;
    std::vector<std::string> names;
    bool differ = false;
    for (const auto& table : tables_) {
      for (const auto& option : table) {
        if (option.long_name == name) {
          return &option;
        }
        const bool known = std::ranges::any_of(
            candidates, [&](const auto* other) { return other->long_name == option.long_name; });
        if (!name.empty() && option.long_name.starts_with(name) && !known) {
          candidates.push_back(&option);
          names.push_back(fmt::format("--{}", option.long_name));
          differ =
              differ || option.argument != kNone || &table != tables_.data() + tables_.size() - 1;
        }
      }
    }
    if (candidates.size() > 1 && differ) {
      result_.problems.push_back(
          fmt::format("option --{} is ambiguous: {}", name, fmt::join(names, ", ")));
    }
    return candidates.size() == 1 ? candidates.front() : nullptr;
  }

  void take_next_word(ScannedOption& option, std::string_view written) {
    if (next_ == words_.size()) {
      result_.problems.push_back(fmt::format("option {} needs a value", written));
      return;
    }
    option.value = words_[next_];
    option.words.push_back(words_[next_]);
    ++next_;
  }

  ScannedOption scan_long(const std::string& word) {
    const auto equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    ScannedOption result{.option = nullptr, .negated = false, .value = {}, .words = {word}};
    if (name.starts_with("no-")) {
      // Some of perf's options have names that start with "no-"; perf accepts all options with and
      // without it.
      const std::size_t before = result_.problems.size();
      result.option = find_long(name);
      if (result.option == nullptr) {
        result_.problems.resize(before);
        result.option = find_long(std::string_view{name}.substr(3));
        result.negated = result.option != nullptr;
      }
    } else {
      result.option = find_long(name);
    }
    if (equals != std::string::npos) {
      result.value = word.substr(equals + 1);
    } else if (result.option != nullptr && !result.negated &&
               result.option->argument == kRequired) {
      take_next_word(result, "--" + std::string{result.option->long_name});
    }
    return result;
  }

  void scan_cluster(const std::string& word) {
    std::vector<ScannedOption> group;
    for (std::size_t i = 1; i < word.size(); ++i) {
      ScannedOption one{.option = find_short(word[i]),
                        .negated = false,
                        .value = {},
                        .words = {std::string{"-"} + word[i]}};
      const auto argument = one.option == nullptr ? kNone : one.option->argument;
      if (argument != kNone && i + 1 < word.size()) {
        one.value = word.substr(i + 1);
        one.words.front() += one.value;
        i = word.size();
      } else if (argument == kRequired) {
        take_next_word(one, one.words.front());
      }
      group.push_back(std::move(one));
    }
    result_.groups.push_back(std::move(group));
  }

  std::span<const std::string> words_;
  Tables tables_;
  std::size_t next_ = 0;
  ScannedWords result_;
};

ChosenCallGraph call_graph_of(const ScannedOption& one) {
  constexpr std::uint64_t kDefaultDump = 8192;
  using Kind = ChosenCallGraph::Kind;
  const std::string_view value{one.value};
  if (one.negated) {
    return {.kind = Kind::kNone};
  }
  if (value.starts_with("dwarf")) {
    const auto comma = std::min(value.find(','), value.size() - 1);
    const auto size = base::parse_number<std::uint64_t>(value.substr(comma + 1));
    return {.kind = Kind::kDwarf, .dump_bytes = size.value_or(kDefaultDump)};
  }
  return {.kind = value.empty() || value.starts_with("fp") ? Kind::kFramePointers : Kind::kOther};
}

// As in perf, the last option wins.
void take(const ScannedOption& one, ParsedOptions& options) {
  const bool on = !one.negated;
  const auto name = one.option->long_name;
  switch (one.option->short_name) {
    case 'C':
      options.processors = on;
      break;
    case 'c':
      options.period = options.period || on;
      options.rate = options.rate || on;
      break;
    case 'e':
      options.event = options.event || on;
      break;
    case 'F':
      options.rate = options.rate || on;
      options.frequency = base::parse_number<std::uint64_t>(one.value);
      break;
    case 'g':
      options.call_graph = call_graph_of(one);
      break;
    case 'i':
      options.leaves_out_children = on;
      break;
    case 'k':
      options.clock = on ? std::optional{one.value} : std::nullopt;
      break;
    case 'm':
      options.buffers = options.buffers || on;
      break;
    case 'o':
      if (on) {
        options.output.path = one.value;
        options.output.pipe = one.value == "-";
      }
      break;
    default:
      if (name == "call-graph") {
        options.call_graph = call_graph_of(one);
      } else if (name == "overwrite") {
        options.overwrite = options.overwrite || on;
      } else if (name == "per-thread") {
        options.per_thread = on;
      } else if (name == "threads") {
        options.threads = on;
      } else if (name == "kcore") {
        options.kcore = on;
      } else if (name == "switch-output" || name == "timestamp-filename" ||
                 name == "switch-output-event") {
        options.output.several = on;
      }
  }
}

}  // namespace

std::span<const RecordOption> record_options() { return kRecordOptions; }

ScannedWords scan_words(std::span<const std::string> words, Tables tables) {
  return Scanner{words, tables}.scan();
}

ParsedOptions parse_options(const std::vector<std::string>& words, bool stdout_is_pipe) {
  const std::array tables = {record_options()};
  ParsedOptions options;
  options.output.pipe = stdout_is_pipe;
  for (const auto& group : scan_words(words, tables).groups) {
    for (const auto& one : group) {
      if (one.option != nullptr) {
        take(one, options);
      }
    }
  }
  return options;
}

// As perf's target__validate() (tools/perf/util/target.c): the narrowest selection wins.
ChosenTargets chosen_targets(const std::vector<std::string>& words) {
  const std::array tables = {record_options()};
  const ScannedWords scanned = scan_words(words, tables);
  ChosenTargets chosen{.tasks = {}, .launched = !scanned.command.empty()};
  std::string threads;
  for (const auto& group : scanned.groups) {
    for (const auto& one : group) {
      const auto name = one.option == nullptr ? std::string_view{} : one.option->long_name;
      if (name == "pid") {
        chosen.tasks = one.value;
      } else if (name == "tid") {
        threads = one.value;
      } else if (name == "all-cpus" || name == "cpu" || name == "uid") {
        chosen.launched = chosen.launched && one.negated;
      }
    }
  }
  chosen.tasks = chosen.tasks.empty() ? threads : chosen.tasks;
  chosen.launched = chosen.launched && chosen.tasks.empty();
  return chosen;
}

}  // namespace pyinject::perf
