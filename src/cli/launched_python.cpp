#include "cli/launched_python.hpp"

#include "base/format.hpp"
#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/record/plan.hpp"
#include "pyinject/targets/target_selection.hpp"
#include "targets/examine_all.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <variant>

#include <poll.h>
#include <unistd.h>

namespace pyinject::cli {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{2};
constexpr milliseconds kLongestPause{50};
constexpr std::chrono::seconds kUntilMessage{3};

}  // namespace

LaunchedPython::LaunchedPython(const std::vector<std::string>& command,
                               targets::StopSignals& signals, base::Logger& logger)
    : signals_{signals}, logger_{logger}, workload_{command, logger, STDERR_FILENO} {}

bool LaunchedPython::stopped() {
  if (!signal_) {
    signal_ = signals_.next_with_origin();
  }
  return signal_.has_value();
}

std::optional<python::Target> LaunchedPython::find(python::Detector& detector) const {
  const auto family = targets::TargetSet::of_families({workload_.process()->pid()})
                          .choose(targets::visible_processes());
  for (const auto& examined : targets::examine_all(detector, family, base::Cancellation::never(),
                                                   targets::kPatienceUnnamed)) {
    if (const auto* const target = std::get_if<python::Target>(&examined.detection)) {
      return *target;
    }
  }
  return std::nullopt;
}

std::optional<python::Target> LaunchedPython::start(python::Detector& detector) {
  status_ = workload_.check();
  if (status_ != 0) {
    return std::nullopt;
  }
  workload_.hold(signals_.ignored_before(), {});
  if (!workload_.start()) {
    status_ = workload_.status();
    return std::nullopt;
  }
  if (auto target = next(detector)) {
    return target;
  }
  status_ = record::kFailure;
  finish();
  logger_.error("the command ran no Python that could be recorded");
  return std::nullopt;
}

std::optional<python::Target> LaunchedPython::next(python::Detector& detector) {
  auto pause = kFirstPause;
  const auto message = base::Deadline::after(kUntilMessage);
  bool told = false;
  while (!workload_.process()->try_wait() && !stopped()) {
    if (auto target = find(detector)) {
      return target;
    }
    if (!told && message.expired()) {
      logger_.info("waiting until the command runs a Python that can be recorded");
      told = true;
    }
    pollfd ended{.fd = workload_.process()->pidfd(), .events = POLLIN, .revents = 0};
    ::poll(&ended, 1, static_cast<int>(pause.count()));
    pause = std::min(2 * pause, kLongestPause);
  }
  return std::nullopt;
}

void LaunchedPython::wait() {
  while (!workload_.process()->try_wait() && !stopped()) {
    std::array<pollfd, 2> events{
        pollfd{.fd = workload_.process()->pidfd(), .events = POLLIN, .revents = 0},
        pollfd{.fd = signals_.fd(), .events = POLLIN, .revents = 0}};
    ::poll(events.data(), events.size(), -1);
  }
}

void LaunchedPython::finish() {
  wait();
  if (!workload_.process()->try_wait()) {
    if (!signal_->from_kernel) {
      workload_.terminate();
    }
    workload_.wait_until_ended(signals_.fd(), [this] { return signals_.next().has_value(); });
  }
  const auto status = workload_.process()->try_wait();
  if (status && !status->success()) {
    logger_.info("the command: {}", base::describe(*status));
  }
}

}  // namespace pyinject::cli
