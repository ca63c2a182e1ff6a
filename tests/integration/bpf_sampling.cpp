#include "integration/bpf_sampling.hpp"

#include "pyinject/base/deadline.hpp"
#include "support/patience.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iterator>
#include <utility>
#include <variant>

#include <linux/perf_event.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pyinject::test {

python::FrameLayout layout_of(base::Pid pid) {
  const auto detection = python::make_detector(python::Purpose::kObserve)->detect(pid);
  if (const auto* const refused = std::get_if<python::Refused>(&detection)) {
    ADD_FAILURE() << python::describe(refused->refusal);
    return {};
  }
  const auto layout = python::frame_layout(std::get<python::Target>(detection));
  if (const auto* const why = std::get_if<std::string>(&layout)) {
    ADD_FAILURE() << *why;
    return {};
  }
  return std::get<python::FrameLayout>(layout);
}

void BpfSampling::open(const bpf::SamplerOptions& options) {
  auto opened = bpf::Sampler::open(
      options, {.code = [this](sample::Code code) { names_[code.number] = code.qualname; },
                .stack = [this](sample::Stack stack) { stacks_.push_back(std::move(stack)); }});
  if (const auto* const why = std::get_if<bpf::Unavailable>(&opened)) {
    FAIL() << why->name << ": " << why->found;
  }
  sampler_ = std::get<std::unique_ptr<bpf::Sampler>>(std::move(opened));
}

void BpfSampling::sample(base::Pid pid, SampledEvent event) {
  layout_ = layout_of(pid);
  ASSERT_EQ(sampler_->add(pid, layout_), bpf::Sampler::Added::kYes);
  const bool clock = event == SampledEvent::kClock;
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = clock ? PERF_COUNT_SW_CPU_CLOCK : PERF_COUNT_SW_CONTEXT_SWITCHES;
  attributes.sample_period = clock ? 1'000'000 : 1;
  attributes.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  attributes.disabled = 1;
  attributes.inherit = 1;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  event_.reset(static_cast<int>(
      ::syscall(SYS_perf_event_open, &attributes, pid.value(), -1, -1, PERF_FLAG_FD_CLOEXEC)));
  ASSERT_TRUE(event_.valid());
  const auto attached = sampler_->attach(base::Pid{::getpid()}, {});
  ASSERT_EQ(attached.events, 1U) << attached.why;
  EXPECT_EQ(attached.refused, 0U);
  ASSERT_EQ(::ioctl(event_.get(), PERF_EVENT_IOC_ENABLE, 0), 0);
}

void BpfSampling::collect(std::size_t wanted,
                          const std::function<bool(const sample::Stack&)>& counts) {
  const auto deadline = base::Deadline::after(kPatience);
  const auto count = [&] {
    return static_cast<std::size_t>(std::ranges::count_if(stacks_, counts));
  };
  while (count() < wanted && !deadline.expired()) {
    pollfd readable{.fd = sampler_->fd(), .events = POLLIN, .revents = 0};
    ::poll(&readable, 1, 20);
    (void)sampler_->consume();
  }
  ASSERT_GE(count(), wanted);
}

void BpfSampling::collect(std::size_t wanted) {
  collect(wanted, [](const auto&) { return true; });
}

void BpfSampling::let_run(std::chrono::milliseconds time) {
  const auto sampled = [&] {
    std::uint64_t nanoseconds = 0;
    EXPECT_EQ(::read(event_.get(), &nanoseconds, sizeof nanoseconds), sizeof nanoseconds);
    return std::chrono::nanoseconds{nanoseconds};
  };
  const auto end = sampled() + time;
  const auto deadline = base::Deadline::after(kPatience);
  while (sampled() < end && !deadline.expired()) {
    ::poll(nullptr, 0, 5);
  }
  ASSERT_GE(sampled(), end);
}

bpf::Counters BpfSampling::final_counters() {
  // While the event is active, the ioctl takes effect on its processor: afterwards no program is
  // running.
  EXPECT_EQ(::ioctl(event_.get(), PERF_EVENT_IOC_DISABLE, 0), 0);
  return sampler_->counters();
}

std::string BpfSampling::text(const sample::Stack& stack) {
  std::string result;
  for (const auto& frame : stack.frames) {
    result += fmt::format("{} {}", names_[frame.code], frame.outermost ? "| " : "");
  }
  return result;
}

std::vector<std::string> BpfSampling::texts() {
  std::vector<std::string> result;
  std::ranges::transform(stacks_, std::back_inserter(result),
                         [this](const auto& stack) { return text(stack); });
  return result;
}

}  // namespace pyinject::test
