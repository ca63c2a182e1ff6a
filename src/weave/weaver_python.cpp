// Python frames in the callchain of one sample.
#include "weave/weaver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace pyinject::weave {

namespace {

// Whether samples of EVENT can have a Python stack of their own: tracepoints take no program, and
// without a callchain there is no place for it.
bool has_place(const perfdata::Event& event) {
  return event.samples(PERF_SAMPLE_CALLCHAIN) && event.attr.type != PERF_TYPE_TRACEPOINT;
}

}  // namespace

// That of PID at TIME, or of the nearest process that it came from by forks.
const Interpreter* Weaver::interpreter_of(std::uint32_t pid, std::uint64_t time) const {
  for (int depth = 0; depth < kMostAncestors; ++depth) {
    if (const auto found = knowledge_.interpreters.find(pid);
        found != knowledge_.interpreters.end()) {
      const auto ran = std::ranges::find_if(found->second, [&](const Interpreter& one) {
        return !one.seen || spaces_.began(pid, *one.seen) == spaces_.began(pid, time);
      });
      if (ran != found->second.end()) {
        return &*ran;
      }
    }
    const auto origin = spaces_.origin(pid, time);
    if (!origin) {
      return nullptr;
    }
    pid = origin->parent;
    time = origin->time;
  }
  return nullptr;
}

AddressKind Weaver::kind_of(std::uint64_t address) const {
  if (interpreter_ != nullptr &&
      std::ranges::any_of(interpreter_->evaluator, [address](const auto& range) {
        return range.begin <= address && address < range.end;
      })) {
    return AddressKind::kEvaluator;
  }
  if (maps_.find(sample_.pid, address)) {
    return AddressKind::kTrampoline;
  }
  if (knowledge_.stacks != nullptr && knowledge_.stacks->has_every_sample()) {
    return AddressKind::kOther;  // of CPython's JIT, or of another one
  }
  // A map that cannot be read does not make a trampoline something else.
  return lies_in_anonymous_code(sample_.pid, sample_.time, address) ? AddressKind::kTrampoline
                                                                    : AddressKind::kOther;
}

// An activation of the evaluator has an entry frame on its C stack, which begins with a code object
// and the address of the Python frame that called it. Else the evaluator itself has its frame's in
// a register.
std::vector<std::uint64_t> Weaver::frames_of(const std::vector<EvaluatorFrame>& evaluators,
                                             std::size_t number) const {
  std::vector<std::uint64_t> words;
  const auto index = [&](std::size_t which) { return evaluators[which].behind - 1; };
  if (number + 1 < evaluators.size() && evaluators[number + 1].behind == 0) {
    return words;  // the innermost function is a trampoline, which has not called the evaluator yet
  }
  if (number + 1 < evaluators.size() && index(number + 1) + 1 < registers_.size()) {
    const auto inner = index(number + 1);
    const auto end = std::min(registers_[inner + 1].sp(), stack_.begin + stack_.bytes.size());
    for (auto at = std::max(registers_[inner].sp(), stack_.begin); at < end; at += sizeof at) {
      const auto is_entry = std::ranges::any_of(knowledge_.entry_frames, [&](const auto& frame) {
        const auto owner = stack_.word_at(at - frame.previous + frame.owner).value_or(0) & 0xffU;
        return owner == frame.owner_value;
      });
      if (is_entry) {
        words.push_back(stack_.word_at(at).value_or(0));
      }
    }
  } else if (number + 1 == evaluators.size() && index(number) < registers_.size()) {
    for (std::size_t i = 0; i < unwind::kRegisters; ++i) {
      if (const auto value = registers_[index(number)].get(i)) {
        words.push_back(*value);
      }
    }
  }
  return words;
}

std::string Weaver::trampoline_of(std::span<const std::uint64_t> chain,
                                  const EvaluatorFrame& evaluator) const {
  const auto* const symbol =
      evaluator.trampoline ? maps_.symbol(sample_.pid, chain[evaluator.behind]) : nullptr;
  return symbol != nullptr ? std::string{symbol->name} : std::string{};
}

// A forked child goes on with the stack of the thread that forked it. Where each sample has its own
// that is no longer so.
PythonStack Weaver::python_of(StackQuery query) const {
  for (int depth = 0; depth < kMostAncestors; ++depth) {
    if (auto stack = knowledge_.stacks->at(query);
        !stack.frames.empty() || knowledge_.stacks->has_every_sample()) {
      return stack;
    }
    const auto forked = forked_.find(query.pid);
    if (query.tid != query.pid || forked == forked_.end()) {
      return {};
    }
    query.pid = forked->second.pid;
    query.tid = forked->second.tid;
    query.time = std::min(query.time, forked->second.time);
  }
  return {};
}

// Whether outer functions may be missing, since the kernel stores no more.
bool Weaver::is_cut() const {
  const auto entries = std::ranges::count_if(
      sample_.chain, [](std::uint64_t address) { return address < PERF_CONTEXT_MAX; });
  const std::size_t own = sample_.event->attr.sample_max_stack;
  return static_cast<std::size_t>(entries) >= (own != 0 ? own : options_.most_entries);
}

void Weaver::add_python(std::span<const std::uint64_t> chain, bool by_frame_pointer) {
  interpreter_ = interpreter_of(sample_.pid, sample_.time);
  const bool every = knowledge_.stacks != nullptr && knowledge_.stacks->has_every_sample();
  const bool no_place = every && !has_place(*sample_.event);
  if (no_place || knowledge_.stacks == nullptr || chain.empty() ||
      !(interpreter_ != nullptr || every)) {
    if (no_place && interpreter_ != nullptr) {
      count_without_record();
    }
    result_.insert(result_.end(), chain.begin(), chain.end());
    return;
  }
  kinds_.clear();
  std::ranges::transform(chain, std::back_inserter(kinds_),
                         [this](std::uint64_t address) { return kind_of(address); });
  const auto evaluators = evaluators_of(kinds_);
  if (by_frame_pointer) {
    learn_callers(chain);
  }
  const bool hidden = by_frame_pointer && !is_cut() &&
                      count_untrampolined(evaluators) == evaluators.size() && hides_one(chain, 0);
  const StackQuery query{
      .pid = sample_.pid,
      .tid = sample_.tid,
      .time = sample_.time,
      .evaluators = evaluators.size(),
      .plain = count_untrampolined(evaluators),
      .one_may_be_hidden = hidden,
      .outer_missing = has_hole(),
      .frames_of = [&](std::size_t n) { return frames_of(evaluators, n); },
      .trampoline_of = [&](std::size_t n) { return trampoline_of(chain, evaluators[n]); }};
  const auto stack = python_of(query);
  if (stack.whole) {
    add_whole(chain, evaluators, stack, by_frame_pointer);
    return;
  }
  if (query.outer_missing && !stack.frames.empty()) {
    add_around_hole(chain, evaluators, stack);
    return;
  }
  const auto added = merge(
      chain, hidden ? insert_sorted(evaluators, {.behind = 1}) : evaluators, stack.frames,
      [&](const PythonFrame& frame) { return address_of(frame, query.pid); }, result_);
  summary_.extended += added > 0 ? 1 : 0;
  if (interpreter_ != nullptr && every) {
    count_without_record();
  }
}

// CHAIN ends with the mark that says why: Python frames whose activations are missing are outside
// of it, since what called what is not known there.
void Weaver::add_around_hole(std::span<const std::uint64_t> chain,
                             const std::vector<EvaluatorFrame>& evaluators,
                             const PythonStack& stack) {
  const auto outside =
      groups_outside(evaluators, stack.frames,
                     evaluators.empty() ? std::vector<std::uint64_t>{} : frames_of(evaluators, 0));
  const auto begin = stack.frames.begin();
  const auto first = static_cast<std::ptrdiff_t>(
      outside == 0 ? stack.frames.size() : first_frame_of(stack.frames, outside - 1));
  const auto address = [this](const PythonFrame& frame) { return address_of(frame, sample_.pid); };
  merge(chain, evaluators, {begin, begin + first}, address, result_);
  std::transform(begin + first, stack.frames.end(), std::back_inserter(result_), address);
  ++summary_.extended;
}

void Weaver::count_without_record() {
  ++summary_.without_record;
  const bool then = knowledge_.from <= sample_.time && sample_.time <= knowledge_.until;
  summary_.of_another_time += then ? 0 : 1;
}

bool Weaver::lies_in_anonymous_code(std::uint32_t pid, std::uint64_t time,
                                    std::uint64_t address) const {
  const auto* const file = spaces_.find(pid, time, address);
  return file != nullptr && file->executable && file->path.starts_with("//anon");
}

const CodeName* Weaver::name_of(std::uint32_t pid, std::uint64_t code) const {
  if ((code & Waits::kCode) != 0) {
    return knowledge_.waits->stacks.name(pid, code);
  }
  const CodeName* name = nullptr;
  for (int depth = 0; name == nullptr && depth < kMostAncestors; ++depth) {
    name = knowledge_.stacks->name(pid, code);
    if (const auto forked = forked_.find(pid); forked != forked_.end()) {
      pid = forked->second.pid;
    }
  }
  return name;
}

// That of its trampoline, if it has got one since: then perf counts both as one function. Where
// each sample has its stack it has a line, for which a trampoline has no room. A map can be that of
// an earlier process with this number.
SyntheticNames::Place Weaver::place_of(const PythonFrame& frame, std::uint32_t pid) {
  const auto* const name = name_of(pid, frame.code);
  if (name == nullptr) {
    return synthetic_->place({.name = "py::[unknown]"});
  }
  auto code = named_code(*name);
  constexpr std::size_t kBesideText = 256;
  if (!budget_->bytes.take(spaces_.family(pid), 3 * code.name.size() + kBesideText)) {
    drop(pid, Limit::kNames);
    return synthetic_->place({.name = "py::[unknown]"});
  }
  if (options_.flags.lines && frame.line != 0) {
    code.name += fmt::format(":{}", frame.line);
    code.first_line = frame.line;
    return synthetic_->place(code);
  }
  const bool every = knowledge_.stacks != nullptr && knowledge_.stacks->has_every_sample();
  const auto* const trampoline = every ? nullptr : maps_.trampoline(pid, code.name);
  return trampoline != nullptr && lies_in_anonymous_code(pid, ~std::uint64_t{0}, trampoline->start)
             ? SyntheticNames::Place::at(trampoline->start + 1)
             : synthetic_->place(code, pid);
}

std::uint64_t Weaver::address_of(const PythonFrame& frame, std::uint32_t pid) {
  const std::tuple key{pid, frame.code, options_.flags.lines ? frame.line : 0};
  auto place = places_.find(key);
  if (place == places_.end()) {
    place = places_.emplace(key, place_of(frame, pid)).first;
  }
  return place->second.address(frame.line);
}

}  // namespace pyinject::weave
