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

bool SampledStacks::keep_frames(std::uint32_t pid, const PythonStack& stack, Entry& entry) {
  constexpr std::size_t kOfNode = 2 * sizeof(Node) + 4 * sizeof(void*);
  const auto own = stack.frames.size();
  for (auto i = own + stack.parents.size(); i-- > 0;) {
    const auto& frame = i < own ? stack.frames[i] : stack.parents[i - own];
    const Node node{.code = frame.code,
                    .caller = entry.innermost,
                    .line = frame.line,
                    .outermost = frame.outermost};
    const auto [found, is_new] = known_.emplace(node, static_cast<std::uint32_t>(nodes_.size()));
    if (is_new) {
      if (!budget_->bytes.take(pid, kOfNode)) {
        known_.erase(found);
        return false;
      }
      nodes_.push_back(node);
      auto& last = codes_[node.code].last_line;
      last = std::max(last, node.line);
    }
    entry.innermost = found->second;
  }
  return true;
}

std::size_t SampledStacks::NativeNodeHash::operator()(const NativeNode& node) const {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio
  const auto hash = (node.address ^ (node.address >> 32U)) * kOdd + node.caller;
  return (hash ^ (hash >> 29U)) * kOdd;
}

bool SampledStacks::keep_native(std::uint32_t pid, const NativeStack& native, Entry& entry) {
  constexpr std::size_t kOfNode = 2 * sizeof(NativeNode) + 4 * sizeof(void*);
  for (std::size_t i = native.chain.size(); i-- > 0;) {
    const NativeNode node{.address = native.chain[i], .caller = entry.native};
    const auto [found, is_new] =
        known_native_.emplace(node, static_cast<std::uint32_t>(native_nodes_.size()));
    if (is_new) {
      if (!budget_->bytes.take(pid, kOfNode)) {
        known_native_.erase(found);
        return false;
      }
      native_nodes_.push_back(node);
    }
    entry.native = found->second;
  }
  entry.native_end = native.end;
  return true;
}

void SampledStacks::add(std::uint32_t pid, std::uint32_t tid, std::uint64_t time,
                        const PythonStack& stack, Taken taken, const NativeStack& native) {
  Entry entry{.time = time,
              .pid = pid,
              .gil = stack.gil,
              .does = stack.frames.empty() ? sample::Does::kUnknown : stack.frames.front().does,
              .truncated = stack.truncated,
              .ungrouped = stack.ungrouped,
              .used = false,
              .observed = stack.observed,
              .taken = taken};
  if (!keep_frames(pid, stack, entry)) {
    entry.innermost = kRoot;
    entry.truncated = true;
    ++emptied_[{pid, Limit::kPythonStacks}];
  } else if (!keep_native(pid, native, entry)) {
    entry.native = kRoot;
    ++emptied_[{pid, Limit::kNativeStacks}];
  }
  if (!stack.task.empty()) {
    const auto [found, is_new] =
        known_tasks_.emplace(stack.task, static_cast<std::uint32_t>(tasks_.size()));
    if (is_new) {
      tasks_.push_back(stack.task);
    }
    entry.task = found->second;
  }
  auto& entries = threads_[tid];
  // Records come in order of time, with rare exceptions.
  auto at = entries.end();
  while (at != entries.begin() && std::prev(at)->time > time) {
    --at;
  }
  entries.insert(at, entry);
  ++records_;
  first_ = std::min(first_, time);
  last_ = std::max(last_, time);
}

void SampledStacks::name(std::uint64_t code, CodeName name) {
  auto& known = codes_[code];
  known.name = std::move(name);
  known.named = true;
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
    const bool free = at->pid == query.pid && at->taken == Taken::kAtSample && !(near && at->used);
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
    if (at->pid == query.pid && at->taken == Taken::kBeforeSample) {
      return &*at;
    }
  }
  return nullptr;
}

PythonStack SampledStacks::at(const StackQuery& query) {
  auto* const entry = find(query);
  if (entry == nullptr) {
    return {};
  }
  matched_ += entry->observed ? 1U : 0U;
  with_frames_ += entry->innermost == kRoot ? 0U : 1U;
  entry->used = true;
  PythonStack stack{.whole = true,
                    .truncated = entry->truncated,
                    .ungrouped = entry->ungrouped,
                    .gil = entry->gil,
                    .task = tasks_[entry->task]};
  auto* into = &stack.frames;
  for (auto number = entry->innermost; number != kRoot; number = nodes_[number].caller) {
    const auto& node = nodes_[number];
    into = node.code == kStartOfGreenlet ? &stack.parents : into;
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
  NativeStack stack{.chain = {}, .end = entry->native_end};
  for (auto number = entry->native; number != kRoot; number = native_nodes_[number].caller) {
    stack.chain.push_back(native_nodes_[number].address);
  }
  return stack;
}

const CodeName* SampledStacks::name(std::uint32_t /*pid*/, std::uint64_t code) const {
  const auto found = codes_.find(code);
  return found == codes_.end() || !found->second.named ? nullptr : &found->second.name;
}

void SampledStacks::each_name(
    const std::function<void(const CodeName& name, std::uint32_t last_line)>& call) const {
  for (const auto& [number, code] : codes_) {
    if (code.named) {
      call(code.name, code.last_line);
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
  constexpr std::size_t kOfHashing = 4 * sizeof(void*);  // approximate hash table overhead per node
  std::size_t entries = 0;
  for (const auto& [tid, thread] : threads_) {
    entries += thread.capacity();
  }
  return entries * sizeof(Entry) + nodes_.capacity() * sizeof(Node) +
         nodes_.size() * (sizeof(Node) + kOfHashing) +
         native_nodes_.capacity() * sizeof(NativeNode) +
         native_nodes_.size() * (sizeof(NativeNode) + kOfHashing);
}

}  // namespace pyinject::weave
