#include "live/profile.hpp"

#include "bpf/stack_kind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

namespace pyinject::live {

namespace {

using std::chrono::nanoseconds;

// A program that changes its functions all the time fills no more memory than this.
constexpr std::size_t kMostEntries = 65536;  // of a view
constexpr std::size_t kMostFresh = 1024;     // lines of a stack of more than 512 functions
constexpr std::size_t kMostStacks = 8192;
constexpr unsigned kHalf = 32;

std::uint64_t thread_id(std::uint32_t pid, std::uint32_t tid) {
  return std::uint64_t{pid} << kHalf | tid;
}

std::uint64_t line_id(const sample::Frame& frame) { return frame.code << kHalf | frame.line; }

std::uint64_t upper(std::uint64_t id) { return id >> kHalf; }
std::uint32_t lower(std::uint64_t id) { return static_cast<std::uint32_t>(id); }

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio
  hash = (hash ^ word) * kOdd;
  return hash ^ hash >> 29U;
}

double value_of(const Row& row, Order order) {
  switch (order) {
    case Order::kSelf:
      return row.self;
    case Order::kTotal:
      return row.total;
    case Order::kSelfTime:
      return static_cast<double>(row.self_time.count());
    case Order::kTotalTime:
      return static_cast<double>(row.total_time.count());
    case Order::kGil:
      return row.gil;
    case Order::kWait:
      return row.wait;
  }
  return 0;
}

}  // namespace

void Profile::name(sample::Code code) {
  if (codes_.size() >= kMostNames && !codes_.contains(code.number)) {
    forget_names();
  }
  const auto [known, fresh] =
      numbers_.try_emplace({code.file, code.first_line, code.qualname}, code.number);
  if (!fresh && known->second != code.number) {
    same_[code.number] = known->second;
  }
  auto& known_code = codes_[code.number];
  known_code.code = std::move(code);
}

void Profile::count_name(std::uint64_t code, std::uint32_t samples) {
  if (const auto known = codes_.find(code); known != codes_.end()) {
    known->second.samples += samples;
  }
}

// Whether to look for names of threads or processes that can be forgotten: not each time.
bool Profile::makes_room() {
  constexpr std::uint64_t kBetween = 1024;
  return refused_++ % kBetween == 0;
}

void Profile::forget_names() {
  std::vector<std::uint32_t> samples;
  samples.reserve(codes_.size());
  for (const auto& [number, known] : codes_) {
    samples.push_back(known.samples);
  }
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::ranges::nth_element(samples, middle);
  std::erase_if(codes_,
                [median = *middle](const auto& each) { return each.second.samples <= median; });
  for (auto& [number, known] : codes_) {
    known.samples /= 2;
  }
  std::erase_if(numbers_, [this](const auto& each) { return !codes_.contains(each.second); });
  std::erase_if(same_, [this](const auto& each) { return !codes_.contains(each.second); });
}

sample::Frame Profile::known_as(sample::Frame frame) const {
  const auto found = same_.find(frame.code);
  frame.code = found == same_.end() ? frame.code : found->second;
  return frame;
}

void Profile::name_thread(std::uint32_t pid, std::uint32_t tid, std::string name) {
  if (threads_.size() >= kMostNames && makes_room()) {
    std::erase_if(threads_, [this](const auto& each) {
      return !entries_[View::kThreads].contains(thread_id(each.first.first, each.first.second));
    });
  }
  if (threads_.size() < kMostNames) {
    threads_[{pid, tid}] = std::move(name);
  }
}

void Profile::name_process(std::uint32_t pid, std::string name) {
  if (processes_.size() >= kMostNames && makes_room()) {
    std::erase_if(processes_, [this](const auto& each) {
      return !entries_[View::kProcesses].contains(each.first);
    });
  }
  if (processes_.size() < kMostNames) {
    processes_[pid] = std::move(name);
  }
}

std::string Profile::thread_name(std::uint32_t pid, std::uint32_t tid) const {
  const auto known = threads_.find({pid, tid});
  return known == threads_.end() ? std::string{} : known->second;
}

std::string Profile::process_name(std::uint32_t pid) const {
  const auto known = processes_.find(pid);
  return known == processes_.end() ? std::string{} : known->second;
}

void Profile::add(const sample::Stack& stack, std::uint64_t count_of_it, Use use,
                  bool in_greenlet) {
  samples_ += count_of_it;
  kinds_.counts.at(static_cast<std::size_t>(bpf::stack_kind(stack))) += count_of_it;
  ++added_;
  const Weight all{.count = static_cast<std::uint32_t>(count_of_it),
                   .gil = stack.gil == sample::Gil::kHeld,
                   .use = use};
  uses_.at(current_).at(static_cast<std::size_t>(use)) += all.count;
  uses_since_start_.at(static_cast<std::size_t>(use)) += all.count;
  const auto task = task_of(stack, in_greenlet);
  if (task != 0) {
    count(View::kTasks, task, all);
  }
  count(View::kThreads, thread_id(stack.pid, stack.tid), all);
  count(View::kProcesses, stack.pid, all);
  std::set<std::uint64_t> functions;
  std::set<std::uint64_t> lines;
  auto with_parents = stack.frames;
  if (in_greenlet) {
    with_parents.insert(with_parents.end(), stack.parents.begin(), stack.parents.end());
  }
  for (const auto& each : with_parents) {
    auto weight = all;
    weight.self = &each == &with_parents.front();
    const auto frame = known_as(each);
    if (frame.code == 0 || frame.code == sample::kGreenlet) {
      continue;
    }
    count_name(frame.code, all.count);
    if (each.code != frame.code) {
      count_name(each.code, all.count);
    }
    if (functions.insert(frame.code).second) {
      count(View::kFunctions, frame.code, weight);
    }
    if (lines.insert(line_id(frame)).second) {
      count(View::kLines, line_id(frame), weight);
    }
  }
  if (stack.frames.empty()) {  // the C code of a thread that runs no Python
    count(View::kFunctions, 0, all);
    count(View::kLines, 0, all);
  }
  remember(stack, with_parents, task, count_of_it);
}

void Profile::add_wait(const sample::Stack& stack, nanoseconds length) {
  ++added_;
  const Weight weight{.count = 0, .self = false, .waited = length};
  count(View::kThreads, thread_id(stack.pid, stack.tid), weight);
  count(View::kProcesses, stack.pid, weight);
  const auto innermost = stack.frames.empty() ? sample::Frame{} : known_as(stack.frames.front());
  if (stack.frames.empty() || innermost.code != 0) {
    count(View::kFunctions, innermost.code, weight);
    count(View::kLines, line_id(innermost), weight);
  }
  remember(stack, stack.frames, 0,
           static_cast<std::uint64_t>(std::max<std::int64_t>(length / period_, 1)));
}

void Profile::count(View view, std::uint64_t id, const Weight& weight) {
  auto& entries = entries_[view];
  if (entries.size() >= kMostEntries && !entries.contains(id)) {
    // At least half of them, since each sample refreshes few: rarely, and never all the time.
    const auto old = added_ - std::min<std::uint64_t>(added_, kMostEntries / kMostFresh);
    std::erase_if(entries, [old](const auto& entry) { return entry.second.latest < old; });
    if (entries.size() >= kMostEntries) {
      entries.clear();
    }
  }
  auto& entry = entries[id];
  auto& now = entry.intervals.at(current_);
  now.total += weight.count;
  entry.total += weight.count;
  entry.latest = added_;
  if (weight.self) {
    now.self += weight.count;
    entry.self += weight.count;
    now.gil += weight.gil ? weight.count : 0;
    entry.gil += weight.gil ? weight.count : 0;
    entry.uses.at(static_cast<std::size_t>(weight.use)) += weight.count;
  }
  now.waited += std::chrono::duration<float>{weight.waited}.count();
  entry.waited += weight.waited;
}

void Profile::remember(const sample::Stack& stack, const std::vector<sample::Frame>& frames,
                       std::uint64_t task, std::uint64_t count) {
  std::uint64_t hash = mix(mix(stack.pid, stack.tid), task);
  for (const auto& frame : frames) {
    hash = mix(hash, line_id(known_as(frame)));
  }
  if (stacks_.size() >= kMostStacks && !stacks_.contains(hash)) {
    std::erase_if(stacks_, [](const auto& known) { return known.second.count <= 1; });
    if (stacks_.size() >= kMostStacks) {
      stacks_.clear();
    }
  }
  auto& known = stacks_[hash];
  if (known.count == 0) {
    known.frames = frames;
    std::ranges::transform(known.frames, known.frames.begin(),
                           [this](const sample::Frame& frame) { return known_as(frame); });
    known.pid = stack.pid;
    known.tid = stack.tid;
    known.task = task;
  }
  known.count += count;
}

void Profile::end_interval(nanoseconds length) {
  lengths_.at(current_) = length;
  length_ += length;
  ended_ = std::min(ended_ + 1, kHistory - 1);
  current_ = (current_ + 1) % kHistory;
  lengths_.at(current_) = {};
  uses_.at(current_) = {};
  for (auto& [view, entries] : entries_) {
    for (auto& [id, entry] : entries) {
      entry.intervals.at(current_) = {};
    }
  }
}

void Profile::reset() {
  entries_.clear();
  stacks_.clear();
  lengths_ = {};
  uses_ = {};
  uses_since_start_ = {};
  ended_ = 0;
  samples_ = 0;
  kinds_ = {};
  length_ = {};
}

nanoseconds Profile::time_of_shares() const {
  return since_start_ ? length_ : std::accumulate(lengths_.begin(), lengths_.end(), nanoseconds{});
}

Profile::Sum Profile::sum_of(const Entry& entry) const {
  if (since_start_) {
    return {.self = entry.self,
            .total = entry.total,
            .gil = entry.gil,
            .waited = std::chrono::duration<double>{entry.waited}.count()};
  }
  Sum latest;
  for (std::size_t age = ended_; age > 0; --age) {
    const auto& interval = entry.intervals.at((current_ + kHistory - age) % kHistory);
    latest.self += interval.self;
    latest.total += interval.total;
    latest.gil += interval.gil;
    latest.waited += static_cast<double>(interval.waited);
  }
  return latest;
}

double Profile::share_of(std::uint64_t count, nanoseconds time) const {
  return time.count() == 0 ? 0
                           : static_cast<double>(count) * static_cast<double>(period_.count()) /
                                 static_cast<double>(time.count());
}

Row Profile::row_of(std::uint64_t id, const Entry& entry) const {
  Row row;
  row.id = id;
  const auto sum = sum_of(entry);
  const auto time = time_of_shares();
  row.self = share_of(sum.self, time);
  row.total = share_of(sum.total, time);
  row.gil = share_of(sum.gil, time);
  const auto seconds = std::chrono::duration<double>{time}.count();
  row.wait = seconds > 0 ? sum.waited / seconds : 0;
  row.wait_time = entry.waited;
  row.self_time = period_ * static_cast<std::int64_t>(entry.self);
  row.total_time = period_ * static_cast<std::int64_t>(entry.total);
  for (std::size_t use = 0; use < sample::kCpuUses; ++use) {
    row.uses.at(use) = share_of(entry.uses.at(use), length_);
  }
  return row;
}

void Profile::describe(View view, Row& row) const {
  const auto id = row.id;
  switch (view) {
    case View::kFunctions:
    case View::kLines: {
      const auto code = view == View::kLines ? upper(id) : id;
      const auto known = codes_.find(code);
      if (known != codes_.end()) {
        row.name = known->second.code.qualname;
        row.place = known->second.code.file;
      } else {
        row.name = code == 0 ? "[no Python function]" : "[unknown]";
      }
      row.line = view == View::kLines    ? lower(id)
                 : known == codes_.end() ? 0
                                         : known->second.code.first_line;
      break;
    }
    case View::kThreads: {
      const auto pid = static_cast<std::uint32_t>(upper(id));
      row.name = fmt::format("{} {}", lower(id), thread_name(pid, lower(id)));
      break;
    }
    case View::kTasks:
      row.name = tasks_.at(id - 1).name;
      row.place = fmt::format("pid {}", tasks_.at(id - 1).pid);
      row.greenlet = tasks_.at(id - 1).kind == TaskKind::kGreenlet;
      break;
    case View::kProcesses:
      row.name = fmt::format("{} {}", id, process_name(static_cast<std::uint32_t>(id)));
      break;
  }
}

Table Profile::table(const TableOptions& options) const {
  Table table;
  const auto found = entries_.find(options.view);
  if (found == entries_.end()) {
    return table;
  }
  const bool filtered = !options.filter.empty();
  for (const auto& [id, entry] : found->second) {
    auto row = row_of(id, entry);
    if (filtered) {
      describe(options.view, row);
    }
    if (!filtered || row.name.find(options.filter) != std::string::npos ||
        row.place.find(options.filter) != std::string::npos) {
      table.rows.push_back(std::move(row));
    }
  }
  if (table.rows.size() > options.most) {
    table.left_out = table.rows.size() - options.most;
  }
  const auto end = table.rows.end() - static_cast<std::ptrdiff_t>(table.left_out);
  // Rows with equal values keep their places from one table to the next.
  std::partial_sort(
      table.rows.begin(), end, table.rows.end(), [&options](const Row& one, const Row& other) {
        const auto first = value_of(one, options.order);
        const auto second = value_of(other, options.order);
        return first != second                      ? first > second
               : one.total_time != other.total_time ? one.total_time > other.total_time
                                                    : one.id < other.id;
      });
  table.rows.erase(end, table.rows.end());
  for (auto& row : table.rows) {
    if (!filtered) {
      describe(options.view, row);
    }
    row.history = history_of(found->second.at(row.id));
  }
  return table;
}

std::vector<double> Profile::history_of(const Entry& entry) const {
  std::vector<double> history;
  for (std::size_t age = ended_; age > 0; --age) {
    const auto index = (current_ + kHistory - age) % kHistory;
    history.push_back(share_of(entry.intervals.at(index).self, lengths_.at(index)));
  }
  return history;
}

bool Profile::has(const KnownStack& stack, View view, std::uint64_t id) {
  switch (view) {
    case View::kFunctions:
      return id == 0 ? stack.frames.empty()
                     : std::ranges::any_of(stack.frames,
                                           [id](const auto& frame) { return frame.code == id; });
    case View::kLines:
      return id == 0 ? stack.frames.empty()
                     : std::ranges::any_of(
                           stack.frames, [id](const auto& frame) { return line_id(frame) == id; });
    case View::kThreads:
      return thread_id(stack.pid, stack.tid) == id;
    case View::kTasks:
      return stack.task == id;
    case View::kProcesses:
      return stack.pid == id;
  }
  return false;
}

std::vector<Place> Profile::stack_of(View view, std::uint64_t id) const {
  const KnownStack* best = nullptr;
  for (const auto& [hash, stack] : stacks_) {
    if (has(stack, view, id) && (best == nullptr || stack.count > best->count)) {
      best = &stack;
    }
  }
  std::vector<Place> places;
  if (best != nullptr) {
    for (const auto& frame : best->frames) {
      const auto known = codes_.find(frame.code);
      places.push_back(known == codes_.end() ? Place{.name = "[unknown]", .file = {}}
                                             : Place{.name = known->second.code.qualname,
                                                     .file = known->second.code.file,
                                                     .line = frame.line});
    }
  }
  return places;
}

double Profile::share() const {
  double share = 0;
  const auto found = entries_.find(View::kProcesses);
  if (found != entries_.end()) {
    for (const auto& [id, entry] : found->second) {
      share += row_of(id, entry).self;
    }
  }
  return share;
}

Uses Profile::uses() const {
  Uses uses{};
  const auto time = time_of_shares();
  for (std::size_t use = 0; use < sample::kCpuUses; ++use) {
    std::uint64_t count = since_start_ ? uses_since_start_.at(use) : 0;
    for (std::size_t age = since_start_ ? 0 : ended_; age > 0; --age) {
      count += uses_.at((current_ + kHistory - age) % kHistory).at(use);
    }
    uses.at(use) = share_of(count, time);
  }
  return uses;
}

double Profile::gil_share() const {
  double share = 0;
  const auto found = entries_.find(View::kProcesses);
  if (found != entries_.end()) {
    for (const auto& [id, entry] : found->second) {
      share += row_of(id, entry).gil;
    }
  }
  return share;
}

}  // namespace pyinject::live
