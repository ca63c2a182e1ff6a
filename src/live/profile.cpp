#include "live/profile.hpp"

#include "bpf/stack_kind.hpp"
#include "report/names.hpp"

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

std::uint64_t upper(std::uint64_t id) { return id >> kHalf; }
std::uint32_t lower(std::uint64_t id) { return static_cast<std::uint32_t>(id); }

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

// Of one CPU, of COUNT samples that stand for PERIOD each.
double cpu_share(std::uint64_t count, nanoseconds period, nanoseconds time) {
  return time.count() == 0 ? 0
                           : static_cast<double>(count) * static_cast<double>(period.count()) /
                                 static_cast<double>(time.count());
}

}  // namespace

void Profile::name_thread(std::uint32_t pid, std::uint32_t tid, std::string name) {
  names_.add_thread(pid, tid, std::move(name), [this](std::uint32_t process, std::uint32_t thread) {
    return entries_[View::kThreads].contains(thread_id(process, thread));
  });
}

void Profile::name_process(std::uint32_t pid, std::string name) {
  names_.add_process(pid, std::move(name), [this](std::uint32_t process) {
    return entries_[View::kProcesses].contains(process);
  });
}

void Profile::name_c_function(std::uint64_t number, std::string name) {
  if (c_functions_.size() >= kMostNames) {
    c_functions_.clear();
  }
  c_functions_.insert_or_assign(number, std::move(name));
}

void Profile::add(const sample::Stack& stack, std::uint64_t count_of_it, Use use, bool in_greenlet,
                  std::uint64_t c_function) {
  samples_ += count_of_it;
  kinds_.counts.at(static_cast<std::size_t>(bpf::stack_kind(stack))) += count_of_it;
  ++added_;
  const Weight all{.count = static_cast<std::uint32_t>(count_of_it),
                   .gil = stack.gil == sample::Gil::kHeld,
                   .use = use};
  uses_.at(current_).at(static_cast<std::size_t>(use)) += all.count;
  uses_since_start_.at(static_cast<std::size_t>(use)) += all.count;
  const auto task = names_.task_of(stack, in_greenlet, [this] {
    entries_[View::kTasks].clear();
    stacks_.forget_tasks();
  });
  if (task != 0) {
    count(View::kTasks, task, all);
  }
  count(View::kThreads, thread_id(stack.pid, stack.tid), all);
  count(View::kProcesses, stack.pid, all);
  if (use == Use::kC) {
    count(View::kC, c_function, all);
  }
  std::set<std::uint64_t> functions;
  std::set<std::uint64_t> lines;
  auto with_parents = stack.frames;
  if (in_greenlet) {
    with_parents.insert(with_parents.end(), stack.parents.begin(), stack.parents.end());
  }
  for (auto& frame : with_parents) {
    auto weight = all;
    weight.self = &frame == &with_parents.front();
    const auto code = std::exchange(frame, names_.known_as(frame)).code;
    if (frame.code == 0 || frame.code == sample::kGreenlet) {
      continue;
    }
    names_.count(frame.code, all.count);
    if (code != frame.code) {
      names_.count(code, all.count);
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
  stacks_.add(stack, task, std::move(with_parents), count_of_it, c_function);
}

void Profile::add_wait(const sample::Stack& stack, Use use, nanoseconds length) {
  ++added_;
  const Weight weight{.count = 0, .self = false, .waited = length, .use = use};
  count(View::kThreads, thread_id(stack.pid, stack.tid), weight);
  count(View::kProcesses, stack.pid, weight);
  auto frames = stack.frames;
  std::ranges::transform(frames, frames.begin(),
                         [this](const auto& frame) { return names_.known_as(frame); });
  const auto innermost = frames.empty() ? sample::Frame{} : frames.front();
  if (frames.empty() || innermost.code != 0) {
    count(View::kFunctions, innermost.code, weight);
    count(View::kLines, line_id(innermost), weight);
  }
  stacks_.add(stack, 0, std::move(frames),
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
  const auto waited = std::chrono::duration<float>{weight.waited}.count();
  now.waited += waited;
  entry.waited += weight.waited;
  entry.waits.at(static_cast<std::size_t>(weight.use)) += waited;
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

Row Profile::row_of(std::uint64_t id, const Entry& entry) const {
  Row row;
  row.id = id;
  const auto sum = sum_of(entry);
  const auto time = time_of_shares();
  row.self = cpu_share(sum.self, period_, time);
  row.total = cpu_share(sum.total, period_, time);
  row.gil = cpu_share(sum.gil, period_, time);
  const auto seconds = std::chrono::duration<double>{time}.count();
  row.wait = seconds > 0 ? sum.waited / seconds : 0;
  row.wait_time = entry.waited;
  row.self_time = period_ * static_cast<std::int64_t>(entry.self);
  row.total_time = period_ * static_cast<std::int64_t>(entry.total);
  for (std::size_t use = 0; use < sample::kCpuUses; ++use) {
    row.uses.at(use) = cpu_share(entry.uses.at(use), period_, length_);
  }
  const auto all = std::chrono::duration<double>{length_}.count();
  std::ranges::transform(entry.waits, row.waits.begin(), [all](float waited) {
    return all > 0 ? static_cast<double>(waited) / all : 0;
  });
  return row;
}

void Profile::describe(View view, Row& row) const {
  const auto id = row.id;
  switch (view) {
    case View::kFunctions:
    case View::kLines: {
      const auto code = view == View::kLines ? upper(id) : id;
      const auto* const known = names_.code(code);
      if (known != nullptr) {
        row.name = known->qualname;
        row.place = known->file;
      } else {
        row.name = code == 0 ? report::kNoFunctionName : "[unknown]";
      }
      row.line = view == View::kLines ? lower(id) : known == nullptr ? 0 : known->first_line;
      break;
    }
    case View::kC:
      row.name = c_function(id);
      break;
    case View::kThreads: {
      const auto pid = static_cast<std::uint32_t>(upper(id));
      row.name = fmt::format("{} {}", lower(id), names_.thread(pid, lower(id)));
      break;
    }
    case View::kTasks:
      row.name = names_.task(id).name;
      row.pid = names_.task(id).pid;
      row.place = fmt::format("pid {}", row.pid);
      row.greenlet = names_.task(id).kind == Names::TaskKind::kGreenlets;
      break;
    case View::kProcesses:
      row.name = fmt::format("{} {}", id, names_.process(static_cast<std::uint32_t>(id)));
      break;
  }
}

const std::string& Profile::c_function(std::uint64_t number) const {
  static const std::string unknown = "[unknown]";
  const auto found = c_functions_.find(number);
  return found == c_functions_.end() || found->second.empty() ? unknown : found->second;
}

void Profile::merge_c_functions(std::vector<Row>& rows) const {
  const auto add = [](auto& sums, const auto& more) {
    std::ranges::transform(sums, more, sums.begin(), std::plus{});
  };
  std::map<std::string_view, Row> merged;
  for (auto& row : rows) {
    const auto [entry, fresh] = merged.try_emplace(c_function(row.id), row);
    auto& all = entry->second;
    if (!fresh) {
      all.id = std::min(all.id, row.id);
      all.self += row.self;
      all.total += row.total;
      all.gil += row.gil;
      all.self_time += row.self_time;
      all.total_time += row.total_time;
      add(all.uses, row.uses);
      add(all.history, row.history);
    }
  }
  rows.clear();
  for (auto& [name, row] : merged) {
    rows.push_back(std::move(row));
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
  if (options.view == View::kC) {
    for (auto& row : table.rows) {
      row.history = history_of(found->second.at(row.id));
    }
    merge_c_functions(table.rows);
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
    if (options.view != View::kC) {
      row.history = history_of(found->second.at(row.id));
    }
  }
  return table;
}

std::vector<double> Profile::history_of(const Entry& entry) const {
  std::vector<double> history;
  for (std::size_t age = ended_; age > 0; --age) {
    const auto index = (current_ + kHistory - age) % kHistory;
    history.push_back(cpu_share(entry.intervals.at(index).self, period_, lengths_.at(index)));
  }
  return history;
}

std::vector<Place> Profile::stack_of(View view, std::uint64_t id) const {
  std::vector<Place> places;
  const auto has_id = [&](std::uint64_t one) {
    return view == View::kC ? c_function(one) == c_function(id) : one == id;
  };
  for (const auto& frame : stacks_.most_frequent_with(view, has_id)) {
    const auto* const known = names_.code(frame.code);
    places.push_back(known == nullptr
                         ? Place{.name = "[unknown]", .file = {}}
                         : Place{.name = known->qualname, .file = known->file, .line = frame.line});
  }
  return places;
}

Uses Profile::uses() const {
  Uses uses{};
  const auto time = time_of_shares();
  for (std::size_t use = 0; use < sample::kCpuUses; ++use) {
    std::uint64_t count = since_start_ ? uses_since_start_.at(use) : 0;
    for (std::size_t age = since_start_ ? 0 : ended_; age > 0; --age) {
      count += uses_.at((current_ + kHistory - age) % kHistory).at(use);
    }
    uses.at(use) = cpu_share(count, period_, time);
  }
  return uses;
}

double Profile::share_of_processes(double Row::*share) const {
  double sum = 0;
  const auto found = entries_.find(View::kProcesses);
  if (found != entries_.end()) {
    for (const auto& [id, entry] : found->second) {
      sum += row_of(id, entry).*share;
    }
  }
  return sum;
}

}  // namespace pyinject::live
