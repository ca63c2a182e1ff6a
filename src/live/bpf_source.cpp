#include "events/attributes.hpp"
#include "events/processor_events.hpp"
#include "live/greenlet_stacks.hpp"
#include "live/stack_source.hpp"
#include "python/layout/frame_layout.hpp"

#include <optional>
#include <utility>

#include <unistd.h>

namespace pyinject::live {

namespace {

class BpfSource : public StackSource {
 public:
  explicit BpfSource(StackReceiver receiver) : receiver_{std::move(receiver)} {}

  // A string says why it cannot sample.
  [[nodiscard]] std::optional<std::string> open(const SourceOptions& options);

  std::optional<std::string> add(const python::Target& target) override;
  void remove(base::Pid pid) override {
    sampler_->remove(pid);
    greenlets_->remove(pid);
  }
  std::optional<std::string> begin() override;
  void look_for_modules() override {
    sampler_->look_for_modules();
    greenlets_->look();
  }
  [[nodiscard]] int fd() const override { return sampler_->fd(); }
  void collect() override {
    while (sampler_->consume()) {
    }
  }
  [[nodiscard]] std::uint64_t lost() const override { return sampler_->counters().lost; }

 private:
  void on_stack(const sample::Stack& stack) {
    if (stack.added) {
      receiver_.stack(stack, 1, greenlets_->has(stack));
    }
  }

  StackReceiver receiver_;
  std::unique_ptr<bpf::Sampler> sampler_;
  std::optional<GreenletStacks> greenlets_;
  std::optional<events::ProcessorEvents> events_;  // only the BPF program takes their samples
};

std::optional<std::string> BpfSource::open(const SourceOptions& options) {
  auto opened = bpf::Sampler::open(
      {.gil = options.gil, .tasks = options.tasks, .native = true},
      {.code = receiver_.code, .stack = [this](const sample::Stack& stack) { on_stack(stack); }});
  if (const auto* const why = std::get_if<bpf::Unavailable>(&opened)) {
    return phrase(*why);
  }
  sampler_ = std::get<std::unique_ptr<bpf::Sampler>>(std::move(opened));
  greenlets_.emplace(*sampler_->native_tables());
  auto events = events::ProcessorEvents::open(events::processor_clock(options.period), {});
  if (auto* const why = std::get_if<std::string>(&events)) {
    return std::move(*why);
  }
  events_ = std::get<events::ProcessorEvents>(std::move(events));
  return std::nullopt;
}

std::optional<std::string> BpfSource::add(const python::Target& target) {
  const auto layout = python::frame_layout(target);
  if (const auto* const why = std::get_if<std::string>(&layout)) {
    return *why;
  }
  if (sampler_->add(target.id.pid, std::get<python::FrameLayout>(layout)) !=
      bpf::Sampler::Added::kYes) {
    return "too many processes, or its frames are too large";
  }
  greenlets_->add(target.id.pid);
  return std::nullopt;
}

std::optional<std::string> BpfSource::begin() {
  const auto attached = sampler_->attach(base::Pid{::getpid()}, {});
  if (attached.events == 0) {
    return "the BPF program cannot be attached: " + attached.why;
  }
  events_->enable();
  return std::nullopt;
}

}  // namespace

std::variant<std::unique_ptr<StackSource>, std::string> make_bpf_source(
    const SourceOptions& options, StackReceiver receiver) {
  auto source = std::make_unique<BpfSource>(std::move(receiver));
  if (auto why = source->open(options)) {
    return std::move(*why);
  }
  return source;
}

}  // namespace pyinject::live
