#include "weave/weaver.hpp"

#include "weave/rewriter.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>

namespace pyinject::weave {

namespace {

constexpr std::chrono::milliseconds kBetweenReports{100};
// Most of a file is samples, which the first pass skips quickly.
constexpr double kToLearn = 0.2;

}  // namespace

Weaver::Weaver(const WeaveOptions& options, const RecordingContext& context,
               unwind::FileFinder& files, perfdata::Input& input)
    : options_{options},
      context_{context},
      input_{input},
      files_{files},
      processes_{context, input, budget_},
      periods_{options, context, input, tally_} {
  tally_.summary.bytes_before = input_.size();
  if (context_.comms != nullptr) {
    context_.comms->forget_starts();  // of another file
  }
}

bool Weaver::go_on(double part) {
  const auto now = std::chrono::steady_clock::now();
  if (!options_.progress || now < last_progress_ + kBetweenReports) {
    return true;
  }
  last_progress_ = now;
  return options_.progress(part, tally_.summary.samples);
}

bool Weaver::learn() {
  while (const auto record = input_.next_head()) {
    periods_.learn(*record);
    if (record->type == PERF_RECORD_LOST || record->type == PERF_RECORD_LOST_SAMPLES) {
      losses_.learn(input_, *record);
    } else {
      processes_.learn(*record);
    }
    if (!go_on(kToLearn * static_cast<double>(input_.position()) /
               static_cast<double>(std::max<std::uint64_t>(input_.size(), 1)))) {
      return false;
    }
  }
  losses_.summarize(input_, tally_.summary);
  processes_.complete();
  periods_.complete(input_);
  return true;
}

bool Weaver::rewrite(int fd) {
  unwind::Objects objects{files_, budget_};
  unwind::Unwinder unwinder{processes_.spaces(), objects, processes_.maps(), budget_};
  Rewriter rewriter{{.options = options_,
                     .context = context_,
                     .input = input_,
                     .files = files_,
                     .budget = budget_,
                     .processes = processes_,
                     .periods = periods_,
                     .unwinder = unwinder,
                     .tally = tally_},
                    fd};
  if (!rewriter.rewrite([this](double part) { return go_on(kToLearn + (1 - kToLearn) * part); })) {
    return false;
  }
  replaced_ = rewriter.take_replaced();
  summarize_dropped();
  return true;
}

void Weaver::summarize_dropped() {
  for (const auto& [family, count] : processes_.spaces().emptied()) {
    tally_.drop(family, Limit::kForkedMappings, count);
  }
  for (const auto& [pid, count] : processes_.maps().cut()) {
    tally_.drop(pid, Limit::kPerfMap, count);
  }
  for (const auto& each : context_.dropped) {
    tally_.drop(each.pid, each.limit, each.count);
  }
  auto& dropped = tally_.summary.dropped;
  for (const auto& [which, count] : tally_.dropped) {
    dropped.push_back({.pid = which.first,
                       .command = processes_.command(which.first),
                       .limit = which.second,
                       .count = count});
  }
  std::ranges::stable_sort(dropped, std::ranges::greater{}, &Dropped::count);
}

}  // namespace pyinject::weave
