// The output of --log-format and --stats: messages and events on stderr, and statistics in a file.
#pragma once

#include "cli/command_line.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/record/stats_report.hpp"
#include "pyinject/targets/manager.hpp"

#include <atomic>
#include <string>
#include <string_view>

namespace pyinject::cli {

// One JSON object per line: time, level, message; docs/log-json.md.
class JsonLogger : public base::Logger {
 public:
  // Levels above MOST are dropped.
  explicit JsonLogger(base::LogLevel most) : most_{most} {}
  void log(base::LogLevel level, std::string_view message) override;
  // The message says the same in words.
  void log(const targets::Event& event);

 private:
  base::LogLevel most_;
};

// Passes messages on, and notes whether a warning or an error is about rights that root has.
class RootWatch : public base::Logger {
 public:
  explicit RootWatch(base::Logger& next) : next_{next} {}
  void log(base::LogLevel level, std::string_view message) override;
  [[nodiscard]] bool names_root() const { return names_root_; }

 private:
  base::Logger& next_;
  std::atomic<bool> names_root_ = false;
};

// One run of the tool.
class Reporter {
 public:
  Reporter(std::string verb, ReportOptions options, base::LogLevel most, bool color);

  [[nodiscard]] base::Logger& logger() { return watched_; }
  // Whether a message said what root might do.
  [[nodiscard]] bool names_root() const { return watched_.names_root(); }
  // Several threads may call it, but not concurrently.
  void note(const targets::Event& event);
  // Adds counters of the run; may be called for several parts of it.
  void add(const targets::Stats& stats) { report_.add(stats); }
  void add(const record::SamplerStats& stats) { report_.add(stats); }
  void add(const perfdata::StackCounts& stacks) { report_.stacks.add(stacks); }
  void add(const record::ProfileCounts& counts) { report_.profile = counts; }
  // Replaces earlier ones.
  void add(const record::PushStats& stats) { report_.push = stats; }
  void count_unknown_threads(std::size_t count) { report_.unknown_threads += count; }
  // Call it at the end of the run, or of a part of it. Writes the statistics file if requested,
  // replacing an existing one. Returns STATUS, or a failure if that was 0 and the file cannot be
  // written.
  [[nodiscard]] int finish(int status);

 private:
  ReportOptions options_;
  base::StderrLogger text_;
  JsonLogger json_;
  RootWatch watched_;
  record::StatsReport report_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace pyinject::cli
