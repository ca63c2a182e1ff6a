#include "weave/sampled_stacks.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace pyinject::weave {

namespace {

// Maximum distance between a run of the BPF program and the timestamp that the kernel gives the
// sample.
constexpr std::uint64_t kNearBefore = 2'000'000;
constexpr std::uint64_t kNearAfter = 25'000;

// The same for a hit of a tracepoint or probe, at which the kernel runs the program first: measured
// are 0.5 us (median) to 90 us, and now and then the milliseconds for which a hypervisor takes the
// processor away. The second limit is for recordings that lost records.
constexpr std::uint64_t kBefore = 100'000'000;
constexpr std::uint64_t kBeforeIfSomeAreLost = 1'000'000;

std::uint64_t distance(std::uint64_t a, std::uint64_t b) { return a < b ? b - a : a - b; }

unwind::EndOfStack end_of_stack(sample::NativeEnd end) {
  using sample::NativeEnd;
  switch (end) {
    case NativeEnd::kNotRead:
    case NativeEnd::kRoot:
      return unwind::EndOfStack::kWhole;
    case NativeEnd::kLimit:
      return unwind::EndOfStack::kLimit;
    case NativeEnd::kUnmapped:
    case NativeEnd::kNoRule:
      return unwind::EndOfStack::kNoInformation;
    case NativeEnd::kUnreadable:
    case NativeEnd::kBroken:
      return unwind::EndOfStack::kBroken;
  }
  return unwind::EndOfStack::kBroken;
}

}  // namespace

std::size_t SampledStacks::NodeHash::operator()(const Node& node) const {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio
  std::uint64_t hash = node.code;
  for (const std::uint64_t part : {std::uint64_t{node.caller}, std::uint64_t{node.line},
                                   std::uint64_t{node.outermost ? 1U : 0U}}) {
    hash = (hash ^ (hash >> 32U)) * kOdd + part;
  }
  return hash ^ (hash >> 29U);
}

bool SampledStacks::keep_frames(const sample::Stack& stack, Entry& entry) {
  constexpr std::size_t kOfNode = 2 * sizeof(Node) + 4 * sizeof(void*);
  const auto own = stack.frames.size();
  for (auto i = own + stack.parents.size(); i-- > 0;) {
    const auto& frame = i < own ? stack.frames[i] : stack.parents[i - own];
    const Node node{.code = frame.code,
                    .caller = entry.innermost,
                    .line = frame.line,
                    .outermost = frame.outermost};
    const auto known = nodes_.find(node);
    if (!known) {
      if (!budget_->bytes.take(stack.pid, kOfNode)) {
        return false;
      }
      auto& last = codes_[node.code].last_line;
      last = std::max(last, node.line);
    }
    entry.innermost = known ? *known : nodes_.number(node);
  }
  return true;
}

std::size_t SampledStacks::NativeNodeHash::operator()(const NativeNode& node) const {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio
  const auto hash = (node.address ^ (node.address >> 32U)) * kOdd + node.caller;
  return (hash ^ (hash >> 29U)) * kOdd;
}

bool SampledStacks::keep_native(const sample::Stack& stack, Entry& entry) {
  constexpr std::size_t kOfNode = 2 * sizeof(NativeNode) + 4 * sizeof(void*);
  for (std::size_t i = stack.native.size(); i-- > 0;) {
    const NativeNode node{.address = stack.native[i], .caller = entry.native};
    const auto known = native_nodes_.find(node);
    if (!known && !budget_->bytes.take(stack.pid, kOfNode)) {
      return false;
    }
    entry.native = known ? *known : native_nodes_.number(node);
  }
  entry.native_end = stack.native_end;
  return true;
}

void SampledStacks::add(const sample::Stack& stack) {
  Entry entry{.time = stack.time,
              .pid = stack.pid,
              .gil = stack.gil,
              .does = stack.does(),
              .truncated = stack.truncated || stack.unreadable,
              .ungrouped = stack.ungrouped,
              .used = false,
              .observed = stack.added,
              .python_thread = stack.python_thread,
              .idle = stack.python_thread && stack.frames.empty() && !stack.unreadable,
              .traced = stack.traced};
  if (!keep_frames(stack, entry)) {
    entry.innermost = kRoot;
    entry.truncated = true;
    ++emptied_[{stack.pid, Limit::kPythonStacks}];
  } else if (!keep_native(stack, entry)) {
    entry.native = kRoot;
    ++emptied_[{stack.pid, Limit::kNativeStacks}];
  }
  entry.task = tasks_.number(stack.task);
  auto& entries = threads_[stack.tid];
  // Records come in order of time, with rare exceptions.
  auto at = entries.end();
  while (at != entries.begin() && std::prev(at)->time > stack.time) {
    --at;
  }
  entries.insert(at, entry);
  ++records_;
  first_ = std::min(first_, stack.time);
  last_ = std::max(last_, stack.time);
}

void SampledStacks::name(sample::Code code) {
  auto& known = codes_[code.number].known;
  known = std::move(code);
}

SampledStacks::Entry* SampledStacks::find(const StackQuery& query) {
  const auto thread = threads_.find(query.tid);
  if (thread == threads_.end()) {
    return nullptr;
  }
  auto& entries = thread->second;
  if (query.traced) {
    return find_before(entries, query);
  }
  const bool near = matching_ == Matching::kNearest;
  const auto earliest = query.time - std::min(query.time, near ? kNearBefore : 0);
  Entry* best = nullptr;
  for (auto at = std::ranges::lower_bound(entries, earliest, {}, &Entry::time); at != entries.end();
       ++at) {
    if (at->time > query.time + (near ? kNearAfter : 0)) {
      break;
    }
    const auto away = distance(at->time, query.time);
    const bool free = at->pid == query.pid && !at->traced && !(near && at->used);
    if (free && (best == nullptr || away < distance(best->time, query.time))) {
      best = &*at;
    }
  }
  return best;
}

// The thread's last hit: all events of the same tracepoint share its record.
SampledStacks::Entry* SampledStacks::find_before(std::vector<Entry>& entries,
                                                 const StackQuery& query) const {
  const auto limit = some_lost_ ? kBeforeIfSomeAreLost : kBefore;
  auto at = std::ranges::upper_bound(entries, query.time, {}, &Entry::time);
  while (at != entries.begin() && query.time - std::prev(at)->time <= limit &&
         query.program_since <= std::prev(at)->time) {
    --at;
    if (at->pid == query.pid && at->traced) {
      return &*at;
    }
  }
  return nullptr;
}

sample::Stack SampledStacks::at(const StackQuery& query) {
  auto* const entry = find(query);
  if (entry == nullptr) {
    return {};
  }
  if (entry->observed) {
    ++matches_.all;
    matches_.no_state += entry->python_thread ? 0U : 1U;
    matches_.no_frames += entry->idle ? 1U : 0U;
  }
  matches_.with_frames += entry->innermost == kRoot ? 0U : 1U;
  entry->used = true;
  sample::Stack stack{.whole = true,
                      .truncated = entry->truncated,
                      .ungrouped = entry->ungrouped,
                      .gil = entry->gil,
                      .task = tasks_.at(entry->task)};
  auto* into = &stack.frames;
  for (auto number = entry->innermost; number != kRoot; number = nodes_.at(number).caller) {
    const auto& node = nodes_.at(number);
    into = node.code == sample::kGreenlet ? &stack.parents : into;
    into->push_back({.code = node.code, .line = node.line, .outermost = node.outermost});
  }
  if (!stack.frames.empty()) {
    stack.frames.front().does = entry->does;
  }
  return stack;
}

NativeStack SampledStacks::native_at(const StackQuery& query) {
  const auto* const entry = find(query);
  if (entry == nullptr) {
    return {};
  }
  NativeStack stack{.chain = {}, .end = end_of_stack(entry->native_end)};
  for (auto number = entry->native; number != kRoot; number = native_nodes_.at(number).caller) {
    stack.chain.push_back(native_nodes_.at(number).address);
  }
  return stack;
}

const sample::Code* SampledStacks::name(std::uint32_t /*pid*/, std::uint64_t code) const {
  const auto found = codes_.find(code);
  return found == codes_.end() || !found->second.known ? nullptr : &*found->second.known;
}

void SampledStacks::each_name(
    const std::function<void(const sample::Code& name, std::uint32_t last_line)>& call) const {
  for (const auto& [number, code] : codes_) {
    if (code.known) {
      call(*code.known, code.last_line);
    }
  }
}

std::vector<Dropped> SampledStacks::dropped() const {
  std::vector<Dropped> result;
  for (const auto& [of, count] : emptied_) {
    result.push_back({.pid = of.first, .command = {}, .limit = of.second, .count = count});
  }
  return result;
}

std::size_t SampledStacks::bytes() const {
  constexpr std::size_t kOfHashing = 5 * sizeof(void*);  // approximate overhead per node
  std::size_t entries = 0;
  for (const auto& [tid, thread] : threads_) {
    entries += thread.capacity();
  }
  return entries * sizeof(Entry) + nodes_.size() * (sizeof(Node) + kOfHashing) +
         native_nodes_.size() * (sizeof(NativeNode) + kOfHashing);
}

}  // namespace pyinject::weave
