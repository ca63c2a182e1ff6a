#include "recorder/options.hpp"

#include "base/text.hpp"
#include "perf/record_options.hpp"
#include "perf/tracefs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <utility>

#include <unistd.h>

namespace pyinject::recorder {

namespace {

constexpr std::string_view kNeedsPerf =
    " needs perf: apt install linux-perf (Debian), or dnf install perf";

// Those that change nothing here: this recorder keeps no cache of files and starts no thread for
// BPF programs, and its samples always have these parts.
constexpr auto kWithoutEffect =
    std::to_array<std::string_view>({"no-buildid-cache", "no-bpf-event", "quiet", "verbose",
                                     "timestamp", "sample-cpu", "sample-identifier"});

// Those of whose values this recorder takes all that perf takes.
constexpr auto kNumeric = std::to_array<std::string_view>(
    {"freq", "count", "pid", "cpu", "clockid", "compression-level"});

std::optional<clockid_t> clock_of(std::string_view name) {
  static constexpr auto kClocks =
      std::to_array<std::pair<std::string_view, clockid_t>>({{"mono", CLOCK_MONOTONIC},
                                                             {"monotonic", CLOCK_MONOTONIC},
                                                             {"raw", CLOCK_MONOTONIC_RAW},
                                                             {"monotonic_raw", CLOCK_MONOTONIC_RAW},
                                                             {"real", CLOCK_REALTIME},
                                                             {"realtime", CLOCK_REALTIME},
                                                             {"boot", CLOCK_BOOTTIME},
                                                             {"boottime", CLOCK_BOOTTIME},
                                                             {"tai", CLOCK_TAI}});
  if (const auto number = base::parse_number<clockid_t>(name)) {
    return number;
  }
  std::string lower;
  for (const char letter : name) {
    lower += static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter);
  }
  std::string_view text{lower};
  if (text.starts_with("clock_")) {
    text.remove_prefix(6);
  }
  const auto* const found =
      std::ranges::find_if(kClocks, [text](const auto& each) { return each.first == text; });
  return found == kClocks.end() ? std::nullopt : std::optional{found->second};
}

// "128": pages; "512K": bytes. 0: not a size.
std::size_t ring_size(std::string_view text) {
  static constexpr std::string_view kUnits = "BKMG";
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  const auto number = base::parse_number<std::uint32_t>(
      unit == std::string_view::npos ? text : text.substr(0, text.size() - 1));
  if (!number || *number == 0) {
    return 0;
  }
  const auto bytes =
      unit == std::string_view::npos ? *number * page : std::uint64_t{*number} << (10U * unit);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30U;
  std::uint64_t rounded = page;
  while (rounded < std::min(bytes, kMost)) {
    rounded *= 2;
  }
  return rounded;
}

class Parser {
 public:
  explicit Parser(const TracepointId& tracepoint) : tracepoint_{tracepoint} {}

  // Why not; empty: taken.
  [[nodiscard]] std::string take(const perf::ScannedOption& one) {
    if (one.option == nullptr) {
      return fmt::format("unknown option {}", one.words.front());
    }
    const auto name = one.option->long_name;
    const bool on = !one.negated;
    if (std::ranges::find(kWithoutEffect, name) != kWithoutEffect.end()) {
      return {};
    }
    if (one.option->argument != perf::OptionArgument::kNone) {
      const bool told = on && !one.value.empty();
      if (name == "compression-level" && on && one.value.empty()) {
        options_.compression = 1;
        return {};
      }
      if (name == "call-graph" && !on) {
        options_.chains = Options::Chains::kNone;
        return {};
      }
      if (told && take_value(name, one.value)) {
        return {};
      }
      const bool numeric = std::ranges::find(kNumeric, name) != kNumeric.end();
      return numeric && told ? fmt::format("{}: its value is wrong", written(one)) : why_not(one);
    }
    if (name.empty()) {  // -g
      options_.chains = on ? Options::Chains::kFramePointers : Options::Chains::kNone;
    } else if (name == "all-cpus") {
      all_ = on;
    } else if (name == "no-inherit") {
      options_.inherit = !on;
    } else if (name == "no-buildid") {
      options_.build_ids = !on;
    } else if (name == "period") {
      options_.sampled_periods = on;
    } else if (name == "switch-events") {
      options_.switches = on;
    } else if (name == "kernel-callchains") {
      options_.kernel_chains_only = on;
    } else if (name == "user-callchains") {
      options_.user_chains_only = on;
    } else if (on) {
      return why_not(one);
    }
    return {};
  }

  // As in perf, processes take precedence over -a.
  [[nodiscard]] Options done() { return std::move(options_); }
  [[nodiscard]] bool has_targets() const { return all_ || !options_.pids.empty() || options_.cpus; }

 private:
  [[nodiscard]] std::string why_not(const perf::ScannedOption& one) const {
    return reason_.empty() ? written(one) + std::string{kNeedsPerf} : reason_;
  }
  [[nodiscard]] static std::string written(const perf::ScannedOption& one) {
    return base::printable(fmt::format("{}", fmt::join(one.words, " ")));
  }

  bool take_value(std::string_view name, const std::string& value) {
    const auto number = base::parse_number<std::uint64_t>(value);
    if (name == "event") {
      return take_events(value);
    }
    if (name == "freq") {
      options_.most_frequent = value == "max";
      options_.frequency = number;
      return options_.most_frequent || (number && *number > 0);
    }
    if (name == "count") {
      options_.period = number;
      return number && *number > 0;
    }
    if (name == "call-graph") {
      return take_call_graph(value);
    }
    if (name == "output") {
      options_.output = value;
      return value != "-";
    }
    if (name == "pid") {
      const auto pids = base::split(value, ',');
      std::ranges::transform(pids, std::back_inserter(options_.pids), [](std::string_view pid) {
        return base::parse_number<pid_t>(pid).value_or(0);
      });
      return std::ranges::find(options_.pids, 0) == options_.pids.end();
    }
    if (name == "cpu") {
      options_.cpus = value;
      return !parse_processors(value).empty();
    }
    if (name == "cgroup") {
      options_.cgroup = value;
      return value.find(',') == std::string::npos;
    }
    if (name == "clockid") {
      options_.clock = clock_of(value);
      return options_.clock.has_value();
    }
    if (name == "mmap-pages") {
      options_.ring_bytes = ring_size(value.substr(0, value.find(',')));
      options_.ring_is_chosen = true;
      return options_.ring_bytes != 0 && value.find(',') == std::string::npos;
    }
    if (name == "compression-level") {
      constexpr int kMostLevel = 22;  // of zstd; perf, too, takes that for more
      const auto level =
          number ? static_cast<int>(std::min<std::uint64_t>(*number, kMostLevel)) : 0;
      options_.compression = level;
      return number.has_value();
    }
    if (name == "delay") {
      options_.begins_disabled = value == "-1";
      return options_.begins_disabled;
    }
    return name == "control" && take_control(value);
  }

  bool take_events(const std::string& list) {
    auto parsed = parse_events(list, tracepoint_);
    if (auto* const why = std::get_if<std::string>(&parsed)) {
      reason_ = *why;
      return false;
    }
    auto& events = std::get<std::vector<NamedEvent>>(parsed);
    std::ranges::move(events, std::back_inserter(options_.events));
    return true;
  }

  bool take_call_graph(std::string_view value) {
    const auto comma = std::min(value.find(','), value.size());
    const auto kind = value.substr(0, comma);
    if (kind == "fp" && comma == value.size()) {
      options_.chains = Options::Chains::kFramePointers;
      return true;
    }
    if (kind != "dwarf") {
      return false;
    }
    options_.chains = Options::Chains::kCopiedStacks;
    if (comma < value.size()) {
      constexpr std::uint32_t kMost = 65528;
      const auto bytes = base::parse_number<std::uint32_t>(value.substr(comma + 1));
      if (!bytes || *bytes == 0) {
        return false;
      }
      options_.stack_bytes = std::min((*bytes + 7) / 8 * 8, kMost);
    }
    return true;
  }

  // "fd:COMMANDS,ANSWERS".
  bool take_control(std::string_view value) {
    if (!value.starts_with("fd:")) {
      return false;
    }
    const auto numbers = base::split(value.substr(3), ',');
    const auto commands = base::parse_number<int>(numbers[0]);
    const auto answers =
        numbers.size() == 2 ? base::parse_number<int>(numbers[1]) : std::optional{-1};
    options_.commands = commands.value_or(-1);
    options_.answers = answers.value_or(-1);
    return commands && answers;
  }

  const TracepointId& tracepoint_;
  Options options_;
  std::string reason_;
  bool all_ = false;
};

// LENIENT: without targets.
std::variant<Options, std::string> parse(std::span<const std::string> words,
                                         const TracepointId& tracepoint, bool lenient) {
  const std::array tables{perf::record_options()};
  const auto scanned = perf::scan_words(words, tables);
  if (!scanned.problems.empty()) {
    return scanned.problems.front();
  }
  if (!scanned.command.empty()) {
    return fmt::format("{}: a command{}", base::printable(scanned.command.front()), kNeedsPerf);
  }
  Parser parser{tracepoint};
  for (const auto& group : scanned.groups) {
    for (const auto& one : group) {
      if (auto why = parser.take(one); !why.empty()) {
        return why;
      }
    }
  }
  if (!lenient && !parser.has_targets()) {
    return fmt::format("a recording without -p and -a{}", kNeedsPerf);
  }
  return parser.done();
}

}  // namespace

std::variant<Options, std::string> parse_options(std::span<const std::string> words,
                                                 const TracepointId& tracepoint) {
  return parse(words, tracepoint, false);
}

std::optional<std::string> refusal(std::span<const std::string> words) {
  const auto tracefs = perf::find_tracefs();
  auto parsed = parse(
      words,
      [&tracefs](std::string_view name) {
        return tracefs ? perf::tracepoint_id(*tracefs, name) : std::nullopt;
      },
      true);
  auto* const why = std::get_if<std::string>(&parsed);
  return why == nullptr ? std::nullopt : std::optional{std::move(*why)};
}

std::vector<int> parse_processors(std::string_view list) {
  constexpr int kMost = 8192;
  std::set<int> all;
  for (const auto part : base::split(base::trim(list), ',')) {
    const auto dash = std::min(part.find('-'), part.size());
    const auto first = base::parse_number<int>(part.substr(0, dash));
    const auto last = dash == part.size() ? first : base::parse_number<int>(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= kMost) {
      return {};
    }
    for (int cpu = *first; cpu <= *last; ++cpu) {
      all.insert(cpu);
    }
  }
  return {all.begin(), all.end()};
}

}  // namespace pyinject::recorder
