#include "pyinject/record/repeated_recording.hpp"

#include "base/format.hpp"
#include "bpf/program_time.hpp"
#include "procfs/stat.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "record/verbs/cpu_budget.hpp"
#include "record/verbs/rotated_files.hpp"
#include "targets/target_watch.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>

#include <poll.h>

namespace pyinject::record {

namespace {

using base::Deadline;

class Repetition {
 public:
  Repetition(const RecordPlan& plan, const RepeatOptions& repeat, python::Detector& detector,
             python::Injector& injector, base::Logger& logger, RecordObserver& observer,
             targets::StopRequests& stop)
      : plan_{plan},
        repeat_{repeat},
        detector_{detector},
        injector_{injector},
        logger_{logger},
        observer_{observer},
        stop_{stop},
        files_{plan.perf_options->output.path, repeat.keep} {
    plan_.duration = repeat.duration;
    plan_.names_beside = true;  // they are removed with the file
    const auto frequency = plan.perf_options->frequency;
    if (repeat.max_cpu && frequency) {
      budget_.emplace(*repeat.max_cpu, *frequency);
      program_times_.emplace();
    }
    for (const auto pid : plan.pids()) {
      if (const auto id = procfs::read_process_id(pid)) {
        targets_.add(*id);
      }
    }
  }

  int run() {
    while (true) {
      const auto next = Deadline::after(repeat_.period);
      adapt();
      const auto one = record_one();
      if (repeat_.complete && one.file) {
        repeat_.complete(*one.file);
      }
      if (repeat_.done) {
        repeat_.done(one.status);
      }
      if (one.signal != 0 && one.signal != SIGHUP) {
        return one.status == 0 ? 128 + one.signal : one.status;
      }
      const bool failed = one.status != 0 && one.signal == 0;
      if (failed && succeeded_ == 0) {
        return one.status;
      }
      succeeded_ += failed ? 0 : 1;
      if (failed) {
        logger_.warning("this recording failed (status {}): the next one follows as scheduled",
                        one.status);
      }
      const auto end = one.signal == SIGHUP ? look() : pause(next);
      if (end) {
        return *end;
      }
    }
  }

 private:
  struct Outcome {
    int status = kFailure;
    int signal = 0;
    std::optional<std::string> file = {};  // complete
  };

  // Keeps within --max-cpu what the time since the latest recording began has cost.
  void adapt() {
    const auto now = cpu_use_until_now();
    const auto message =
        budget_ && before_
            ? budget_->adapt({.cpu = now.cpu - before_->cpu, .wall = now.wall - before_->wall})
            : std::nullopt;
    if (message) {
      logger_.log(budget_->exceeded() ? base::LogLevel::kWarning : base::LogLevel::kInfo, *message);
    }
    before_ = now;
  }

  Outcome record_one() {
    Outcome outcome;
    const auto path = files_.name_at(std::chrono::system_clock::now());
    RecordPlan plan = plan_;
    plan.told_engine = succeeded_ != 0;
    plan.perf_options.add({"-o", path});
    if (budget_) {  // the last -F counts
      plan.perf_options.add({"-F", std::to_string(budget_->frequency())});
    }
    if (succeeded_ != 0) {  // the first one reports missing pids
      plan.replace_pids(targets_.running());
    }
    const auto result = record(plan, detector_, injector_, logger_, observer_, stop_);
    outcome.status = result.status;
    outcome.signal = result.signal;
    try {
      const bool complete = outcome.status == 0 || outcome.signal != 0;
      if (files_.add(path) && complete) {
        outcome.file = path;
      }
    } catch (const base::Error& error) {
      logger_.error("{}", error.what());
    }
    return outcome;
  }

  // Returns a status: end the series with it.
  std::optional<int> look() {
    if (plan_.pids().empty() || !targets_.all_exited_within({})) {
      return std::nullopt;
    }
    logger_.info("all targets have exited");
    return 0;
  }

  std::optional<int> pause(Deadline until) {
    logger_.debug("the next recording begins in {:.1f} s",
                  std::chrono::duration<double>{until.remaining()}.count());
    while (true) {
      if (const auto signal = stop_.next()) {
        return *signal == SIGHUP ? look() : std::optional{128 + *signal};
      }
      const auto end = look();
      if (end || until.expired()) {
        return end;
      }
      auto all = targets_.poll_entries();
      all.push_back({.fd = stop_.fd(), .events = POLLIN, .revents = 0});
      if (::poll(all.data(), all.size(), until.remaining_ms()) < 0 && errno != EINTR) {
        throw base::SystemError{"cannot wait for the next recording", errno};
      }
    }
  }

  RecordPlan plan_;
  const RepeatOptions& repeat_;
  python::Detector& detector_;
  python::Injector& injector_;
  base::Logger& logger_;
  RecordObserver& observer_;
  targets::StopRequests& stop_;
  targets::TargetWatch
      targets_;  // the processes that the user gave, not later ones with the same pids
  RotatedFiles files_;
  std::optional<CpuBudget> budget_;
  std::optional<bpf::ProgramTimes> program_times_;  // with BUDGET_
  std::optional<CpuUse> before_;
  std::uint64_t succeeded_ = 0;
};

}  // namespace

int record_repeatedly(const RecordPlan& plan, const RepeatOptions& repeat,
                      python::Detector& detector, python::Injector& injector, base::Logger& logger,
                      RecordObserver& observer, targets::StopRequests& stop) {
  return Repetition{plan, repeat, detector, injector, logger, observer, stop}.run();
}

}  // namespace pyinject::record
