#include "live/kept_samples.hpp"

#include "bpf/stack_kind.hpp"
#include "report/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace pyinject::live {

namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kMostKept = 65536;  // functions

}  // namespace

void KeptSamples::name(const sample::Code& code) {
  if (functions_.size() < kMostKept) {
    functions_.insert_or_assign(
        code.number,
        report::Function{.kind = report::Kind::kPython, .name = code.qualname, .file = code.file});
  }
}

bool KeptSamples::has_room() {
  const bool room = kept_ < kMost;
  kept_ += room ? 1 : 0;
  refused_ += room ? 0 : 1;
  return room;
}

std::uint32_t KeptSamples::mark(std::uint32_t caller, const std::string& text) {
  return profile_.call(caller, {.kind = report::Kind::kMark, .name = text});
}

std::uint32_t KeptSamples::call(std::uint32_t caller, const sample::Frame& frame) {
  if (frame.code == sample::kGreenlet) {
    return mark(caller, sample::kGreenletName);
  }
  const auto known = functions_.find(frame.code);
  return known == functions_.end()
             ? profile_.call(caller, {.kind = report::Kind::kPython, .name = "[unknown]"})
             : profile_.call(caller, known->second, frame.line);
}

std::uint32_t KeptSamples::stack_of(const sample::Stack& stack, bool in_greenlet) {
  std::uint32_t node = 0;
  node = stack.gil == sample::Gil::kHeld        ? mark(node, "[GIL held]")
         : stack.gil == sample::Gil::kWaitedFor ? mark(node, "[waiting for the GIL]")
                                                : node;
  node = stack.task.empty() ? node : mark(node, fmt::format("[task {}]", stack.task));
  if (in_greenlet) {
    for (auto i = stack.parents.size(); i-- > 0;) {
      node = call(node, stack.parents[i]);
    }
    node = stack.parents.empty() ? mark(node, sample::kGreenletName) : node;
  }
  const auto kind = bpf::stack_kind(stack);
  node = kind == perfdata::StackKind::kCut ||
                 (kind == perfdata::StackKind::kUnread && (stack.truncated || stack.unreadable))
             ? mark(node, "[truncated: python stack]")
             : node;
  for (auto i = stack.frames.size(); i-- > 0;) {
    node = call(node, stack.frames[i]);
  }
  return node;
}

std::uint32_t KeptSamples::thread_of(const sample::Stack& stack) {
  const auto [known, fresh] = threads_.try_emplace({stack.pid, stack.tid}, 0);
  if (fresh) {
    known->second = profile_.thread({.pid = stack.pid, .tid = stack.tid});
  }
  return known->second;
}

void KeptSamples::add(const sample::Stack& stack, std::uint64_t count, sample::Use use,
                      bool in_greenlet, std::uint64_t now) {
  if (!has_room()) {
    return;
  }
  auto node = stack_of(stack, in_greenlet);
  auto does = sample::Does::kByteCode;
  if (use == sample::Use::kKernel) {
    node = profile_.call(node, {.kind = report::Kind::kKernel,
                                .name = "[kernel]",
                                .object = profile_.object("[kernel.kallsyms]")});
  } else if (use == sample::Use::kC) {
    does = sample::Does::kCall;
    node = profile_.call(
        node,
        {.kind = report::Kind::kNative, .name = "[C function]", .object = profile_.object({})});
  } else if (use == sample::Use::kUnknown) {
    does = sample::Does::kUnknown;
  }
  profile_.add({.time = now,
                .period = static_cast<std::uint64_t>(period_.count()) * count,
                .stack = node,
                .thread = thread_of(stack),
                .event = samples_,
                .does = does});
}

void KeptSamples::add_wait(const sample::Stack& stack, nanoseconds length, std::uint64_t now) {
  if (has_room()) {
    profile_.add({.time = now - std::min(now, static_cast<std::uint64_t>(length.count())),
                  .period = static_cast<std::uint64_t>(length.count()),
                  .stack = stack_of(stack, false),
                  .thread = thread_of(stack),
                  .event = waits_});
  }
}

report::Profile KeptSamples::finish(
    const std::function<Names(std::uint32_t pid, std::uint32_t tid)>& names_of,
    std::uint64_t lost) && {
  auto profile = std::move(profile_).finish();
  for (auto& thread : profile.threads) {
    std::tie(thread.name, thread.process) = names_of(thread.pid, thread.tid);
  }
  profile.lost = lost + refused_;
  profile.clock = report::monotonic_clock();
  return profile;
}

}  // namespace pyinject::live
