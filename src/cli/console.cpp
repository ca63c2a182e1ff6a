#include "cli/console.hpp"

#include "base/format.hpp"
#include "base/text.hpp"
#include "cli/summary_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace pyinject::cli {

namespace {

using std::chrono::duration_cast;

constexpr std::size_t kMostShown = 100;  // targets, one per line

}  // namespace

std::string name_of_perf(const perf::PerfSearch& search) {
  if (search.option) {
    return *search.option;
  }
  return search.environment.value_or("").empty() ? "perf" : *search.environment;
}

std::string format_elapsed(std::chrono::nanoseconds elapsed) {
  const auto seconds = duration_cast<std::chrono::seconds>(elapsed).count();
  if (seconds < 60) {
    return fmt::format("{} s", seconds);
  }
  if (seconds < 3600) {
    return fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
  }
  return fmt::format("{} h {:02} min", seconds / 3600, seconds / 60 % 60);
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=,:@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) {
    return text;
  }
  std::string quoted = "'";
  for (const char letter : text) {
    quoted += letter == '\'' ? std::string{"'\\''"} : std::string{letter};
  }
  return quoted + "'";
}

void Console::activated(const targets::ActiveTarget& target) {
  list_target(activation_line(target));
  const auto& activation = target.activation;
  if (activation.mechanism != python::Mechanism::kNone) {
    logger_.debug("pid {}: trampoline on by {}, active after {}", target.target.id.pid.value(),
                  python::name(activation.mechanism), format_short(activation.until_active));
  }
}

void Console::observed(const targets::ActiveTarget& target) {
  list_target(observation_line(target.target));
}

void Console::list_target(const std::string& line) {
  const std::scoped_lock lock{mutex_};
  erase();
  const bool shown = ++activations_ <= kMostShown;
  logger_.log(shown ? base::LogLevel::kInfo : base::LogLevel::kDebug, line);
  if (activations_ == kMostShown) {
    logger_.info("further targets are listed with -v only");
  }
}

void Console::progress(std::chrono::nanoseconds elapsed, std::optional<std::uint64_t> bytes) {
  if (!live_) {
    return;
  }
  draw("recording " + format_elapsed(elapsed) + (bytes ? ", " + base::bytes_text(*bytes) : ""));
}

void Console::post_processing(double done, std::uint64_t samples) {
  if (!live_) {
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!drawn_) {
    weaving_since_ = now;
  }
  const double seconds = std::chrono::duration<double>(now - weaving_since_).count();
  std::string line = fmt::format("unwinding stacks {:.0f} %", done * 100);
  if (samples > 0 && seconds > 0) {
    line += fmt::format(", {:.0f} samples/s", static_cast<double>(samples) / seconds);
  }
  draw(line + ", Ctrl-C leaves the file as perf wrote it");
}

void Console::draw(const std::string& line) {
  const std::scoped_lock lock{mutex_};
  (void)std::fputs(("\r\x1b[K" + line).c_str(), stderr);
  (void)std::fflush(stderr);
  drawn_ = true;
}

void Console::stopped() {
  const std::scoped_lock lock{mutex_};
  erase();
}

void Console::erase() {
  if (drawn_) {
    (void)std::fputs("\r\x1b[K", stderr);
    (void)std::fflush(stderr);
    drawn_ = false;
  }
}

void Console::finished(const record::RecordSummary& summary) {
  {
    const std::scoped_lock lock{mutex_};
    activations_ = 0;  // those of this recording
  }
  if (reporter_ != nullptr) {
    reporter_->count_unknown_threads(summary.unknown_threads);
    reporter_->add(stack_counts(summary));
    if (summary.sampler) {
      reporter_->add(*summary.sampler);
    }
  }
  for (const auto& line : summary_lines(summary, perf_)) {
    logger_.info("{}", line);
  }
  if (summary.sampler) {
    logger_.debug("thread states: {} at hand, {} searched for; {} matched by the nearest time",
                  summary.sampler->state_found, summary.sampler->state_searched,
                  base::counted(summary.sampler->by_clock, "sample"));
  }
  for (const auto& map : summary.maps) {
    logger_.debug("map {}: {}", map.path,
                  map.copied
                      ? fmt::format("{} copied, {} dropped", base::counted(map.names, "name"),
                                    base::counted(map.dropped, "line"))
                      : "the target's own file");
  }
}

void Console::on_event(const targets::Event& event) {
  if (reporter_ != nullptr) {
    reporter_->note(event);
  }
}

void Console::counted(const targets::Stats& stats) {
  if (reporter_ != nullptr) {
    reporter_->add(stats);
  }
}

}  // namespace pyinject::cli
