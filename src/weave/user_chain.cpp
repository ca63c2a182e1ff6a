#include "weave/user_chain.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace pyinject::weave {

namespace {

constexpr std::uint64_t kUserMark = PERF_CONTEXT_USER;

}  // namespace

UserChain::UserChain(const RecordingContext& context, const RecordedProcesses& processes,
                     FunctionNames& names, unwind::Unwinder& unwinder, const perfdata::Input& input,
                     Tally& tally)
    : context_{context},
      processes_{processes},
      names_{names},
      unwinder_{unwinder},
      tally_{tally},
      summary_{tally.summary} {
  if (std::ranges::any_of(input.events(), &perfdata::Event::defers_user_chains)) {
    deferred_.emplace(input.another());
  }
}

void UserChain::pass(const perfdata::Record& record) {
  if (deferred_) {
    deferred_->pass(record);
  }
}

UserChain::Read UserChain::read(SampleWork& work) {
  const auto& sample = work.sample;
  work.clear_stack();
  insert_deferred(work);
  const auto user =
      std::find(sample.chain.rbegin(), sample.chain.rend(), kUserMark).base();  // one past the mark
  const bool has_user = user != sample.chain.begin();
  work.result.assign(sample.chain.begin(), has_user ? user : sample.chain.end());
  const auto begin = has_user ? work.result.size() : 0;
  const bool copied = sample.event->has_user_stacks();
  work.chain.assign(has_user ? user : sample.chain.end(), sample.chain.end());
  if (copied && sample.register_abi != PERF_SAMPLE_REGS_ABI_NONE) {
    work.chain.clear();
    unwind_copied(work);
    if (!has_user) {
      work.result.push_back(kUserMark);
    }
  }
  const bool native = !copied && take_native(work);
  if (native && !has_user) {
    work.result.push_back(kUserMark);
  }
  if (!copied && !native) {
    drop_unmapped(work);
  }
  if (work.lacks_user_part && work.chain.empty()) {
    mark_incomplete(work, summary_.no_user_part, "[no deferred callchain]");
  }
  return {.begin = begin, .by_frame_pointer = !copied && !native};
}

// Takes the C functions that were unwound when the sample was taken. Without them, and without a
// user part by the kernel, at least the innermost function is known.
bool UserChain::take_native(SampleWork& work) {
  const auto& event = *work.sample.event;
  if (!event.samples(PERF_SAMPLE_CALLCHAIN)) {
    return false;
  }
  auto native = context_.native == nullptr
                    ? NativeStack{}
                    : context_.native->native_at(query_of(processes_.spaces(), work));
  if (!native.chain.empty()) {
    work.chain = std::move(native.chain);
    const auto* const last =
        processes_.spaces().find(work.sample.pid, work.sample.time, work.chain.back());
    mark_end(work, {.end = native.end, .file = last});
    return true;
  }
  if (event.attr.exclude_callchain_user != 0 && work.chain.empty() &&
      (work.sample.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER) {
    work.chain.push_back(work.sample.ip);
    return true;
  }
  return false;
}

// Drops the values that the kernel takes for callers beyond the end of a frame-pointer chain. Keeps
// addresses added by an earlier weave of the file, which are mapped in none of its processes.
void UserChain::drop_unmapped(SampleWork& work) const {
  const auto& sample = work.sample;
  auto& chain = work.chain;
  while (chain.size() > 1 && processes_.spaces().settled_since(sample.pid) &&
         !processes_.was_named(chain.back()) &&
         processes_.spaces().find(sample.pid, sample.time, chain.back()) == nullptr) {
    chain.pop_back();
  }
}

// Replaces the placeholder of a deferred user part, which ends the callchain, by that part.
void UserChain::insert_deferred(SampleWork& work) {
  auto& chain = work.sample.chain;
  const auto placeholder = std::ranges::find(chain, perfdata::kContextUserDeferred);
  if (placeholder == chain.end()) {
    return;
  }
  work.deferred = true;
  const auto* const addresses =
      deferred_ && chain.end() - placeholder > 1
          ? deferred_->find({.tid = work.sample.tid, .cookie = placeholder[1]})
          : nullptr;
  chain.erase(placeholder, chain.end());
  chain.push_back(kUserMark);
  if (addresses != nullptr) {
    chain.insert(chain.end(), addresses->begin(), addresses->end());
  } else if (deferred_ && deferred_->full()) {
    tally_.drop(work.sample.pid, Limit::kDeferredChains);
  }
  work.lacks_user_part = chain.back() == kUserMark;
}

void UserChain::unwind_copied(SampleWork& work) {
  const auto& sample = work.sample;
  ++summary_.unwound;
  summary_.largest_copy = std::max(summary_.largest_copy, sample.stack_asked);
  const auto registers = unwind::from_perf(sample.registers, sample.register_mask);
  if (sample.register_abi != PERF_SAMPLE_REGS_ABI_64 || !registers) {
    if (registers) {
      work.chain.push_back(registers->pc());
    }
    mark_end(work, {.end = unwind::EndOfStack::kNoInformation});
    return;
  }
  work.stack = {.begin = registers->sp(),
                .bytes = sample.stack,
                .cut = sample.stack.size() >= sample.stack_asked};
  mark_end(work, unwinder_.unwind(sample.pid, sample.time, *registers, work.stack, work.chain,
                                  &work.registers));
}

// Marks a stack that lacks its outer end, at its root.
void UserChain::mark_end(SampleWork& work, const unwind::Unwound& unwound) {
  if (unwound.too_slow) {
    tally_.drop(work.sample.pid, Limit::kUnwindSteps);
  } else if (unwound.too_large) {
    tally_.drop(work.sample.pid, Limit::kUnwindTables);
  }
  summary_.by_frame_pointer += unwound.by_frame_pointer > 0 ? 1 : 0;
  const auto file = [&unwound] {
    return unwound.file == nullptr ? "unknown memory" : base::printable(unwound.file->path);
  };
  switch (unwound.end) {
    case unwind::EndOfStack::kWhole:
      return;
    case unwind::EndOfStack::kCut:
      mark_incomplete(work, summary_.cut, "[truncated: stack dump]");
      return;
    case unwind::EndOfStack::kLimit:
      mark_incomplete(work, summary_.limited,
                      fmt::format("[truncated: {} frames]", work.chain.size()));
      return;
    case unwind::EndOfStack::kNoInformation:
      mark_incomplete(work, summary_.no_information, fmt::format("[no unwind info: {}]", file()));
      return;
    case unwind::EndOfStack::kBroken:
      mark_incomplete(work, summary_.broken, fmt::format("[broken stack: {}]", file()));
      return;
  }
}

void UserChain::mark_incomplete(SampleWork& work, std::uint64_t& counter, const std::string& name) {
  ++counter;
  work.incomplete_counter = &counter;
  if (processes_.spaces().settled_since(
          work.sample.pid)) {  // otherwise perf finds no names in that process
    work.chain.push_back(names_.address_of_mark(name));
  }
}

// Only two registers are known. If a function keeps its frame in %rbp, tries stack slots that could
// be such a frame, and takes the one that leads to the thread's first function.
void UserChain::unwind_wait(SampleWork& work, const WaitingThread& thread) {
  constexpr std::size_t kMostTries = 32;
  work.stack = {.begin = thread.stack_pointer, .bytes = thread.stack, .cut = thread.stack_cut};
  unwind::Registers registers;
  registers.set(elf::kStackPointer, thread.stack_pointer);
  registers.set(elf::kReturnAddress, thread.program_counter);
  const auto unwind = [&] {
    work.chain.clear();
    work.registers.clear();
    return unwinder_.unwind(thread.pid, work.sample.time, registers, work.stack, work.chain,
                            &work.registers);
  };
  auto unwound = unwind();
  const auto end = work.stack.begin + work.stack.bytes.size();
  const bool by_registers = unwound.end == unwind::EndOfStack::kBroken ||
                            unwound.end == unwind::EndOfStack::kNoInformation;
  std::size_t tries = 0;
  for (auto at = work.stack.begin; by_registers && at < end && tries < kMostTries;
       at += sizeof at) {
    const auto saved = work.stack.word_at(at).value_or(0);
    const auto caller = work.stack.word_at(at + sizeof at).value_or(0);
    const auto* const file =
        saved > at && saved < end
            ? processes_.spaces().find(thread.pid, work.sample.time, caller - 1)
            : nullptr;
    if (file == nullptr || !file->executable) {
      continue;
    }
    ++tries;
    registers.set(elf::kFramePointer, at);
    const auto another = unwind();
    if (another.end == unwind::EndOfStack::kWhole) {
      return;
    }
  }
  if (tries > 0) {
    registers.forget(elf::kFramePointer);
    unwound = unwind();
  }
  if (by_registers) {
    work.incomplete_counter = &summary_.broken;
    if (processes_.spaces().settled_since(thread.pid)) {
      work.chain.push_back(names_.address_of_mark("[truncated: registers]"));
    }
    return;
  }
  mark_end(work, unwound);
}

bool UserChain::writes_map(const SampleWork& work) {
  if (!is_map_write(work)) {
    return false;
  }
  ++summary_.map_writes;
  --summary_.samples;
  summary_.unwound -= work.registers.empty() ? 0 : 1;
  if (work.incomplete_counter != nullptr) {
    --*work.incomplete_counter;
  }
  return true;
}

// Whether one of the functions that write the map is in the callchain, called by the interpreter
// itself: extension modules may write names of their own. Only events that the write causes: the
// processor time that it takes is the process's.
bool UserChain::is_map_write(const SampleWork& work) {
  const auto& sample = work.sample;
  const auto* const writer = context_.map_writers.empty() || !sample.event->is_caused_by_code()
                                 ? nullptr
                                 : processes_.map_writer(sample.pid, sample.time);
  if (writer == nullptr) {
    return false;
  }
  const auto in = [](std::uint64_t address) {
    return [address](const AddressRange& range) {
      return range.begin <= address && address < range.end;
    };
  };
  for (std::size_t i = 0; i + 1 < work.chain.size(); ++i) {
    const auto address = work.chain[i] - (i == 0 ? 0 : 1);  // for callers a return address
    if (!std::ranges::any_of(writer->functions, in(address)) ||
        !in(work.chain[i + 1] - 1)(writer->text)) {
      continue;
    }
    // The process may have exec'ed another program.
    const auto* const file = processes_.spaces().find(sample.pid, sample.time, address);
    if (file != nullptr &&
        base::printable(file->path.substr(file->path.rfind('/') + 1)) == writer->file) {
      return true;
    }
  }
  summary_.map_writes_hidden = summary_.map_writes_hidden ||
                               (!sample.event->has_user_stacks() && context_.native == nullptr);
  return false;
}

}  // namespace pyinject::weave
