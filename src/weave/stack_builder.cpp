#include "weave/stack_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace pyinject::weave {

namespace {

// An activation of the evaluator has an entry frame on its C stack, which starts with a code object
// and the address of the calling Python frame. Otherwise the evaluator has the address of its frame
// in a register.
std::vector<std::uint64_t> frames_of(const SampleWork& work,
                                     const std::vector<EntryFrame>& entry_frames,
                                     const std::vector<EvaluatorFrame>& evaluators,
                                     std::size_t number) {
  std::vector<std::uint64_t> words;
  const auto index = [&](std::size_t which) { return evaluators[which].behind - 1; };
  if (number + 1 < evaluators.size() && evaluators[number + 1].behind == 0) {
    return words;  // the innermost function is a trampoline that has not called the evaluator yet
  }
  if (number + 1 < evaluators.size() && index(number + 1) + 1 < work.registers.size()) {
    const auto inner = index(number + 1);
    const auto end =
        std::min(work.registers[inner + 1].sp(), work.stack.begin + work.stack.bytes.size());
    for (auto at = std::max(work.registers[inner].sp(), work.stack.begin); at < end;
         at += sizeof at) {
      const auto is_entry = std::ranges::any_of(entry_frames, [&](const auto& frame) {
        const auto owner =
            work.stack.word_at(at - frame.previous + frame.owner).value_or(0) & 0xffU;
        return owner == frame.owner_value;
      });
      if (is_entry) {
        words.push_back(work.stack.word_at(at).value_or(0));
      }
    }
  } else if (number + 1 == evaluators.size() && index(number) < work.registers.size()) {
    for (std::size_t i = 0; i < unwind::kRegisters; ++i) {
      if (const auto value = work.registers[index(number)].get(i)) {
        words.push_back(*value);
      }
    }
  }
  return words;
}

}  // namespace

StackBuilder::StackBuilder(const WeaveOptions& options, const RecordingContext& context,
                           const RecordedProcesses& processes, FunctionNames& names,
                           unwind::FileFinder& files, unwind::Unwinder& unwinder, Tally& tally)
    : options_{options},
      context_{context},
      processes_{processes},
      names_{names},
      summary_{tally.summary},
      greenlets_{processes, files},
      hidden_{processes.spaces(), unwinder} {}

AddressKind StackBuilder::kind_of(const SampleWork& work, std::uint64_t address) const {
  if (work.interpreter != nullptr &&
      std::ranges::any_of(work.interpreter->evaluator, [address](const auto& range) {
        return range.begin <= address && address < range.end;
      })) {
    return AddressKind::kEvaluator;
  }
  if (processes_.maps().find(work.sample.pid, address)) {
    return AddressKind::kTrampoline;
  }
  if (has_every_sample()) {
    return AddressKind::kOther;  // from a JIT, CPython's or another
  }
  // An unreadable map does not rule out a trampoline.
  return processes_.lies_in_anonymous_code(work.sample.pid, work.sample.time, address)
             ? AddressKind::kUnnamedTrampoline
             : AddressKind::kOther;
}

void StackBuilder::learn_kinds(SampleWork& work) const {
  work.kinds.clear();
  std::ranges::transform(work.chain, std::back_inserter(work.kinds),
                         [&](std::uint64_t address) { return kind_of(work, address); });
}

std::string StackBuilder::trampoline_of(const SampleWork& work,
                                        const EvaluatorFrame& evaluator) const {
  const auto* const symbol =
      evaluator.trampoline ? processes_.maps().symbol(work.sample.pid, work.chain[evaluator.behind])
                           : nullptr;
  return symbol != nullptr ? std::string{symbol->name} : std::string{};
}

// A forked child continues on the stack of the thread that forked it. If each sample has a stack of
// its own, this is not needed.
sample::Stack StackBuilder::python_of(StackQuery query) const {
  for (int depth = 0; depth < kMostAncestors; ++depth) {
    if (context_.stacks == nullptr) {
      return {};
    }
    if (auto stack = context_.stacks->at(query); !stack.frames.empty() || has_every_sample()) {
      return stack;
    }
    const auto* const forked = processes_.forked_by(query.pid);
    // In a directory (--threads), the records of its exec may precede that of its fork.
    if (query.tid != query.pid || forked == nullptr || forked->time < query.program_since) {
      return {};
    }
    query.pid = forked->pid;
    query.tid = forked->tid;
    query.time = std::min(query.time, forked->time);
    query.program_since = processes_.spaces().began(query.pid, query.time);
  }
  return {};
}

// Whether outer functions may be missing because the kernel stores no more entries.
bool StackBuilder::is_cut(const SampleWork& work) const {
  constexpr std::size_t kMostDeferred = 510;  // UNWIND_MAX_ENTRIES, linux 6.19
  if (work.in_greenlet) {
    return false;
  }
  if (work.deferred) {
    return work.lacks_user_part || work.chain.size() >= kMostDeferred;
  }
  const auto entries = std::ranges::count_if(
      work.sample.chain, [](std::uint64_t address) { return address < PERF_CONTEXT_MAX; });
  const std::size_t own = work.sample.event->attr.sample_max_stack;
  return static_cast<std::size_t>(entries) >= (own != 0 ? own : options_.most_entries);
}

void StackBuilder::add_python(SampleWork& work, bool by_frame_pointer) {
  work.interpreter = processes_.interpreter(work.sample.pid, work.sample.time);
  const bool every = has_every_sample();
  const bool no_place = !work.sample.event->samples(PERF_SAMPLE_CALLCHAIN);
  if (!no_place) {
    work.kind = kind_without_python(work, by_frame_pointer);
  }
  // The record of a sample in the middle of an exec has nothing of the program before it.
  const bool later = work.kind == StackKind::kLaterProgram;
  if (no_place || work.chain.empty() || later || !(work.interpreter != nullptr || every)) {
    if (every && no_place && work.interpreter != nullptr) {
      count_without_record(work);
    }
    summary_.exiting += every && work.interpreter != nullptr && !is_thread(work.sample.tid) ? 1 : 0;
    work.result.insert(work.result.end(), work.chain.begin(), work.chain.end());
    return;
  }
  learn_kinds(work);
  greenlets_.end_chain(work, by_frame_pointer);
  if (work.greenlet_copied && !every) {
    add_copied(work);
    return;
  }
  const auto evaluators = evaluators_of(work.kinds);
  if (by_frame_pointer) {
    hidden_.learn_callers(work);
  }
  const bool hidden = by_frame_pointer && !is_cut(work) &&
                      count_untrampolined(evaluators) == evaluators.size() &&
                      hidden_.hides_one(work, 0);
  auto query = query_of(processes_.spaces(), work);
  query.evaluators = evaluators.size();
  query.plain = count_untrampolined(evaluators);
  query.one_may_be_hidden = hidden;
  query.outer_missing = has_hole(work);
  query.greenlets = greenlets_.may_be_in(work.sample.pid);
  query.in_greenlet = work.in_greenlet;
  query.frames_of = [&](std::size_t n) {
    return frames_of(work, context_.entry_frames, evaluators, n);
  };
  query.trampoline_of = [&](std::size_t n) { return trampoline_of(work, evaluators[n]); };
  const auto stack = python_of(query);
  if (stack.whole) {
    add_whole(work, evaluators, stack, by_frame_pointer);
    return;
  }
  if (query.outer_missing && !stack.frames.empty()) {
    add_around_hole(work, evaluators, stack);
    return;
  }
  const auto all = hidden ? insert_sorted(evaluators, {.behind = 1}) : evaluators;
  const auto added = merge(
      work.chain, all, stack.frames,
      [&](const sample::Frame& frame) { return names_.address_of(frame, query.pid, query.time); },
      work.result);
  summary_.extended += added > 0 ? 1 : 0;
  if (work.interpreter != nullptr && every) {
    count_without_record(work);
  } else if (!every) {
    judge_trampolines(work, has_unnamed(all, count_groups(stack.frames)), by_frame_pointer);
    mark_greenlet(work);
  }
}

// Its trampolines may be those of several greenlets: keeps the two innermost functions, which copy
// the stack.
void StackBuilder::add_copied(SampleWork& work) {
  work.result.insert(work.result.end(), work.chain.begin(), work.chain.begin() + 2);
  work.kind = work.kind ? std::optional{StackKind::kCut} : std::nullopt;
  mark_greenlet(work);
}

// CHAIN ends with the mark of its missing outer end: Python frames with missing activations go
// outside of the mark, because their C callers are unknown there.
void StackBuilder::add_around_hole(SampleWork& work, const std::vector<EvaluatorFrame>& evaluators,
                                   const sample::Stack& stack) {
  const auto outside =
      groups_outside(evaluators, stack.frames,
                     evaluators.empty() ? std::vector<std::uint64_t>{}
                                        : frames_of(work, context_.entry_frames, evaluators, 0));
  const auto begin = stack.frames.begin();
  const auto first = static_cast<std::ptrdiff_t>(
      outside == 0 ? stack.frames.size() : first_frame_of(stack.frames, outside - 1));
  const auto address = [&](const sample::Frame& frame) {
    return names_.address_of(frame, work.sample.pid, work.sample.time);
  };
  work.kind = StackKind::kCut;
  merge(work.chain, evaluators, {begin, begin + first}, address, work.result);
  std::transform(begin + first, stack.frames.end(), std::back_inserter(work.result), address);
  ++summary_.extended;
}

void StackBuilder::count_without_record(SampleWork& work) {
  ++summary_.without_record;
  const bool then = context_.from <= work.sample.time && work.sample.time <= context_.until;
  summary_.of_another_time += then ? 0 : 1;
  if (work.kind) {
    const auto since = work.interpreter->seen.value_or(0);
    work.kind = then && since <= work.sample.time ? StackKind::kUnread : StackKind::kBeforeAttach;
  }
}

// The kind of a stack in which no Python functions are looked for: of another program, in a thread
// that has no user part (any more), or of a Python that was too short-lived to be examined, whose
// trampolines are on by themselves.
std::optional<perfdata::StackKind> StackBuilder::kind_without_python(const SampleWork& work,
                                                                     bool by_frame_pointer) const {
  const auto pid = work.sample.pid;
  const bool cut = work.incomplete_counter != nullptr || (by_frame_pointer && is_cut(work));
  if (context_.scope == RecordingContext::Scope::kUnknown) {
    return std::nullopt;
  }
  if (work.interpreter != nullptr) {
    // The kernel was not to record the user part, and the program's was not found. A thread that
    // exits has none any more, and no tid.
    const bool lost = work.chain.empty() && is_thread(work.sample.tid) &&
                      work.sample.event->attr.exclude_callchain_user != 0;
    return cut ? StackKind::kCut : lost ? StackKind::kUnread : StackKind::kNoPython;
  }
  // A child that has executed another program has never been the recorded Python.
  const auto own = context_.interpreters.find(pid);
  if (own != context_.interpreters.end() &&
      std::ranges::any_of(own->second, [&](const Interpreter& one) {
        const auto seen = one.seen.value_or(0);
        return seen <= work.sample.time && !processes_.spaces().origin(pid, seen);
      })) {
    return StackKind::kLaterProgram;
  }
  if (!has_every_sample()) {
    if (std::ranges::any_of(work.chain, [&](std::uint64_t address) {
          return processes_.maps().find(pid, address).has_value();
        })) {
      return cut ? StackKind::kCut : StackKind::kComplete;
    }
    if (!processes_.maps().of(pid).empty()) {
      return cut ? StackKind::kCut : StackKind::kNoPython;
    }
  }
  return context_.scope == RecordingContext::Scope::kPythons
             ? std::nullopt
             : std::optional{StackKind::kOtherProgram};
}

// Marks what the callchain shows no name for. Without the evaluator's place, or without frame
// pointers, nothing tells whether a function is missing.
void StackBuilder::judge_trampolines(SampleWork& work, bool unnamed, bool by_frame_pointer) {
  const bool cut = by_frame_pointer && is_cut(work);
  if (cut || work.incomplete_counter != nullptr) {
    work.kind = StackKind::kCut;
    if (work.incomplete_counter == nullptr) {
      mark(work, std::string{kCutCallchain});
    }
  } else if (work.interpreter->evaluator.empty() ||
             (by_frame_pointer && !work.interpreter->frame_pointers)) {
    work.kind = StackKind::kUnread;
  } else if (unnamed) {
    const bool before = work.sample.time < work.interpreter->seen.value_or(0);
    work.kind = before ? StackKind::kBeforeAttach : StackKind::kUnnamed;
    mark(work, before ? "[before the attach]" : "[unnamed Python functions]");
  } else {
    work.kind = std::ranges::count(work.kinds, AddressKind::kOther) ==
                        static_cast<std::ptrdiff_t>(work.kinds.size())
                    ? StackKind::kNoPython
                    : StackKind::kComplete;
  }
}

void StackBuilder::add_python_of(SampleWork& work, const WaitingThread& thread) {
  work.interpreter = processes_.interpreter(thread.pid, work.sample.time);
  const auto stack =
      context_.waits->stacks.at({.pid = thread.pid, .tid = thread.tid, .time = thread.seen});
  work.kind = kind_without_python(work, false);
  if (work.interpreter != nullptr && work.kind) {
    work.kind = stack.whole ? kind_of_whole(work, stack) : StackKind::kUnread;
  }
  if (work.chain.empty()) {
    std::ranges::transform(stack.frames, std::back_inserter(work.result),
                           [&](const sample::Frame& frame) {
                             return names_.address_of(frame, thread.pid, thread.seen);
                           });
    mark_root(work, stack);
    return;
  }
  learn_kinds(work);
  greenlets_.end_chain(work, false);
  add_whole(work, evaluators_of(work.kinds), stack, false);
}

}  // namespace pyinject::weave
