#include "cli/repeat_option.hpp"

#include "base/text.hpp"
#include "cli/command_line.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

namespace pyinject::cli {

namespace {

using Seconds = std::chrono::duration<double>;
using record::kUsage;

double parse_max_cpu(const std::string& text, const record::RecordPlan& record) {
  const auto refuse = [&](std::string_view why) -> CommandLineError {
    return {fmt::format("--max-cpu {}: {}", base::printable(text), why), kUsage};
  };
  const auto share = parse_cpu_share(text);
  if (!share) {
    throw refuse("expected a share of one CPU greater than 0, as in 1% or 0.5%");
  }
  const auto& rate = *record.perf_options;
  if (!rate.frequency || *rate.frequency == 0 || rate.period) {
    throw refuse("it lowers the frequency: give the highest one as a number, as in -F 99");
  }
  return *share;
}

}  // namespace

std::optional<double> parse_cpu_share(std::string_view text) {
  constexpr double kPercent = 100;
  constexpr double kMost = 100;
  if (text.ends_with('%')) {
    text.remove_suffix(1);
  }
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  const double share = number / kPercent;
  const bool valid = error == std::errc{} && rest == end && share > 0 && share <= kMost;
  return valid ? std::optional{share} : std::nullopt;
}

std::optional<std::chrono::nanoseconds> parse_span(std::string_view text) {
  static constexpr auto kUnits = std::to_array<std::pair<std::string_view, double>>(
      {{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}});
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc{}) {
    return std::nullopt;
  }
  const std::string_view unit{rest, static_cast<std::size_t>(end - rest)};
  for (const auto& [name, seconds] : kUnits) {
    const Seconds span{number * seconds};
    if (name == unit && span >= std::chrono::milliseconds{1} &&
        span <= std::chrono::hours{24 * 365}) {
      return std::chrono::duration_cast<std::chrono::nanoseconds>(span);
    }
  }
  return std::nullopt;
}

record::RepeatOptions parse_repeat(const std::string& repeat,
                                   const std::optional<std::string>& keep,
                                   const std::optional<std::string>& max_cpu,
                                   const record::RecordPlan& record) {
  const auto refuse = [&](std::string_view why) -> CommandLineError {
    return {fmt::format("--repeat {}: {}", base::printable(repeat), why), kUsage};
  };
  record::RepeatOptions result;
  const auto pieces = base::split(repeat, '/');
  const auto duration = parse_span(pieces.front());
  const auto period = pieces.size() == 2 ? parse_span(pieces.back()) : std::nullopt;
  if (!duration || !period || *period < *duration) {
    throw refuse("expected TIME/PERIOD, TIME at most PERIOD, as in 30s/5m (ms, s, m, h)");
  }
  result.duration = *duration;
  result.period = *period;
  if (keep) {
    const auto count = base::parse_number<std::size_t>(*keep);
    if (!count || *count == 0) {
      throw CommandLineError{
          fmt::format("--keep {}: expected a number of files, 1 or more", base::printable(*keep)),
          kUsage};
    }
    result.keep = *count;
  }
  if (max_cpu) {
    result.max_cpu = parse_max_cpu(*max_cpu, record);
  }
  if (!record.command.empty()) {
    throw refuse("the clock ends each recording: not with a COMMAND");
  }
  if (record.duration) {
    throw refuse("TIME is the duration: not with -d");
  }
  const auto& options = *record.perf_options;
  if (options.output.pipe) {
    throw refuse("each recording is a file: not with -o -");
  }
  if (options.output.several || options.threads || options.kcore) {
    throw refuse(
        "each recording is one file: not with --switch-output, --timestamp-filename, --threads or "
        "--kcore");
  }
  return result;
}

}  // namespace pyinject::cli
