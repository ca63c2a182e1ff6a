// Python frames in the callchain of one sample.
#include "pyinject/base/text.hpp"
#include "weave/weaver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace pyinject::weave {

namespace {

constexpr int kMostAncestors = 64;

}  // namespace

const std::vector<AddressRange>* Weaver::evaluator_of(std::uint32_t pid) const {
  for (int depth = 0; depth < kMostAncestors; ++depth) {
    if (const auto found = knowledge_.evaluators.find(pid); found != knowledge_.evaluators.end()) {
      return &found->second;
    }
    const auto origin = spaces_.origin(pid);
    if (!origin) {
      return nullptr;
    }
    pid = origin->parent;
  }
  return nullptr;
}

AddressKind Weaver::kind_of(std::uint64_t address) const {
  const auto* const evaluator = evaluator_of(sample_.pid);
  if (evaluator != nullptr && std::ranges::any_of(*evaluator, [address](const auto& range) {
        return range.begin <= address && address < range.end;
      })) {
    return AddressKind::kEvaluator;
  }
  if (maps_.find(sample_.pid, address)) {
    return AddressKind::kTrampoline;
  }
  // A map that cannot be read does not make a trampoline something else.
  const auto* const file = spaces_.find(sample_.pid, sample_.time, address);
  return file != nullptr && file->executable && file->path.starts_with("//anon")
             ? AddressKind::kTrampoline
             : AddressKind::kOther;
}

// An activation of the evaluator has an entry frame on its C stack, which begins with a code object
// and the address of the Python frame that called it. Else the evaluator itself has its frame's in
// a register.
std::vector<std::uint64_t> Weaver::frames_of(const std::vector<EvaluatorFrame>& evaluators,
                                             std::size_t number) const {
  // _PyInterpreterFrame.previous and .owner (70: 3.12 and 3.13, 74: 3.14 and 3.15), and what owner
  // is of an entry frame.
  constexpr std::uint64_t kPrevious = 8;
  constexpr std::array<std::uint64_t, 2> kOwner{70, 74};
  constexpr std::uint64_t kOfTheStack = 3;
  std::vector<std::uint64_t> words;
  const auto index = [&](std::size_t which) { return evaluators[which].behind - 1; };
  if (number + 1 < evaluators.size() && evaluators[number + 1].behind == 0) {
    return words;  // the innermost function is a trampoline, which has not called the evaluator yet
  }
  if (number + 1 < evaluators.size() && index(number + 1) + 1 < registers_.size()) {
    const auto inner = index(number + 1);
    const auto end = std::min(registers_[inner + 1].sp(), stack_.begin + stack_.bytes.size());
    for (auto at = std::max(registers_[inner].sp(), stack_.begin); at < end; at += sizeof at) {
      const auto is_entry = std::ranges::any_of(kOwner, [&](std::uint64_t owner) {
        return (stack_.word_at(at - kPrevious + owner).value_or(0) & 0xffU) == kOfTheStack;
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

// A forked child goes on with the stack of the thread that forked it.
std::vector<PythonFrame> Weaver::python_of(StackQuery query) const {
  for (int depth = 0; depth < kMostAncestors; ++depth) {
    if (auto frames = knowledge_.stacks->at(query); !frames.empty()) {
      return frames;
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

void Weaver::add_python(std::span<const std::uint64_t> chain, bool by_frame_pointer) {
  if (knowledge_.stacks == nullptr || chain.empty() || evaluator_of(sample_.pid) == nullptr) {
    result_.insert(result_.end(), chain.begin(), chain.end());
    return;
  }
  kinds_.clear();
  std::ranges::transform(chain, std::back_inserter(kinds_),
                         [this](std::uint64_t address) { return kind_of(address); });
  const auto evaluators = evaluators_of(kinds_);
  const auto plain = plain_ones(evaluators);
  const bool hidden =
      by_frame_pointer && plain == evaluators.size() && kinds_.front() == AddressKind::kOther;
  const StackQuery query{.pid = sample_.pid,
                         .tid = sample_.tid,
                         .time = sample_.time,
                         .evaluators = evaluators.size(),
                         .plain = plain,
                         .one_may_be_hidden = hidden,
                         .frames_of = [&](std::size_t n) { return frames_of(evaluators, n); }};
  const auto added = merge(
      chain, evaluators, python_of(query), hidden,
      [&](const PythonFrame& frame) { return address_of(frame, query); }, result_);
  summary_.extended += added > 0 ? 1 : 0;
}

// That of its trampoline, if it has got one since: then perf counts both as one function.
std::uint64_t Weaver::address_of(const PythonFrame& frame, const StackQuery& query) {
  const CodeName* name = nullptr;
  auto pid = query.pid;
  for (int depth = 0; name == nullptr && depth < kMostAncestors; ++depth) {
    name = knowledge_.stacks->name(pid, frame.code);
    if (const auto forked = forked_.find(pid); forked != forked_.end()) {
      pid = forked->second.pid;
    }
  }
  if (name == nullptr) {
    return synthetic_->address("py::[unknown]");
  }
  auto text =
      fmt::format("py::{}:{}", base::printable(name->qualname), base::printable(name->file));
  if (options_.lines && frame.line != 0) {
    return synthetic_->address(fmt::format("{}:{}", text, frame.line));
  }
  if (const auto* const trampoline = maps_.trampoline(query.pid, text)) {
    return trampoline->start + 1;
  }
  return synthetic_->address(text);
}

}  // namespace pyinject::weave
