#include "live/own_events.hpp"
#include "live/stack_source.hpp"
#include "python/layout/frame_layout.hpp"

#include <fmt/format.h>

#include <utility>

#include <unistd.h>

namespace pyinject::live {

namespace {

class BpfSource : public StackSource {
 public:
  BpfSource(std::unique_ptr<bpf::Sampler> sampler, OwnEvents events)
      : sampler_{std::move(sampler)}, events_{std::move(events)} {}

  std::optional<std::string> add(const python::Target& target) override;
  void remove(base::Pid pid) override { sampler_->remove(pid); }
  std::optional<std::string> begin() override;
  void look_for_tasks() override { sampler_->look_for_tasks(); }
  [[nodiscard]] int fd() const override { return sampler_->fd(); }
  void take() override {
    while (sampler_->consume()) {
    }
  }
  [[nodiscard]] std::uint64_t lost() const override { return sampler_->counters().lost; }

 private:
  std::unique_ptr<bpf::Sampler> sampler_;
  OwnEvents events_;
};

std::optional<std::string> BpfSource::add(const python::Target& target) {
  const auto layout = python::frame_layout(target);
  if (const auto* const why = std::get_if<std::string>(&layout)) {
    return *why;
  }
  if (sampler_->add(target.id.pid, std::get<python::FrameLayout>(layout)) !=
      bpf::Sampler::Added::kYes) {
    return "too many processes, or its frames are too large";
  }
  return std::nullopt;
}

std::optional<std::string> BpfSource::begin() {
  const auto attached = sampler_->attach(base::Pid{::getpid()}, {});
  if (attached.events == 0) {
    return "the BPF program cannot be attached: " + attached.why;
  }
  events_.enable();
  return std::nullopt;
}

}  // namespace

std::variant<std::unique_ptr<StackSource>, std::string> make_bpf_source(
    const SourceOptions& options, StackReceiver receiver) {
  auto opened = bpf::Sampler::open(
      {.gil = options.gil, .tasks = options.tasks},
      {.code = std::move(receiver.code),
       .stack = [take = std::move(receiver.stack)](const bpf::Stack& stack) { take(stack, 1); }});
  if (const auto* const why = std::get_if<bpf::Unavailable>(&opened)) {
    return fmt::format("{} ({}){}{}", why->found, why->name, why->remedy.empty() ? "" : ": ",
                       why->remedy);
  }
  auto events = OwnEvents::open(options.period);
  if (auto* const why = std::get_if<std::string>(&events)) {
    return std::move(*why);
  }
  return std::make_unique<BpfSource>(std::get<std::unique_ptr<bpf::Sampler>>(std::move(opened)),
                                     std::get<OwnEvents>(std::move(events)));
}

}  // namespace pyinject::live
