// Output of a recording for people: lines through the logger, and a progress line on terminals.
#pragma once

#include "cli/reporter.hpp"
#include "cli/terminal.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/perf/perf_locator.hpp"
#include "pyinject/record/record_observer.hpp"

#include <mutex>
#include <string>

namespace pyinject::cli {

// The perf command with which the user should read the recording: other versions may be unable to.
[[nodiscard]] std::string name_of_perf(const perf::PerfSearch& search);

// "12 s", "3 min 05 s", "2 h 03 min".
[[nodiscard]] std::string format_elapsed(std::chrono::nanoseconds elapsed);
// Quoted as one word of a shell command line.
[[nodiscard]] std::string shell_word(const std::string& text);
class Console : public record::RecordObserver {
 public:
  // LIVE: draw the progress line. REPORTER: gets the output for programs; nullptr: none.
  Console(base::Logger& logger, bool live, std::string perf, Reporter* reporter = nullptr)
      : logger_{logger}, live_{live}, perf_{std::move(perf)}, reporter_{reporter} {}

  void activated(const targets::ActiveTarget& target) override;
  void observed(const targets::ActiveTarget& target) override;
  void progress(std::chrono::nanoseconds elapsed, std::optional<std::uint64_t> bytes) override;
  void post_processing(double done, std::uint64_t samples) override;
  void stopped() override;
  void finished(const record::RecordSummary& summary) override;
  void on_event(const targets::Event& event) override;
  void counted(const targets::Stats& stats) override;

 private:
  void list_target(const std::string& line);
  void draw(const std::string& line);
  void erase();  // with the mutex held

  base::Logger& logger_;
  bool live_;
  std::mutex mutex_;  // other threads activate late targets
  bool drawn_ = false;
  std::size_t activations_ = 0;
  std::chrono::steady_clock::time_point weaving_since_;
  std::string perf_;
  Reporter* reporter_;
};

}  // namespace pyinject::cli
