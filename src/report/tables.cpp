#include "report/tables.hpp"

#include "report/machinery.hpp"
#include "report/marks.hpp"
#include "report/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace pyinject::report {

namespace {

using Key = std::tuple<std::string, std::string, std::uint32_t>;  // name, file, line

template <typename Values, typename Value>
bool admits(const Values& wanted, const Value& value) {
  return wanted.empty() || std::ranges::find(wanted, value) != wanted.end();
}

// What a stack adds to tables, whichever thread has it.
struct StackFacts {
  bool admitted = true;
  Leaf leaf = Leaf::kNative;
  Marks marks;
  std::optional<Key> self{};  // nullopt: it has no function with a row
  std::set<Key> all{};
};

class TableMaker {
 public:
  TableMaker(const Profile& profile, const TableOptions& options)
      : profile_{profile}, options_{options} {}

  [[nodiscard]] std::vector<Table> make();

 private:
  [[nodiscard]] bool admits_sample(const Sample& sample) const;
  [[nodiscard]] bool has_row(const Function& function) const;
  [[nodiscard]] Key key_of(std::uint32_t frame) const;
  [[nodiscard]] bool is_mine(const Function& function) const;
  const StackFacts& facts_of(std::uint32_t stack);
  void choose_rows(const std::vector<std::uint32_t>& frames, StackFacts& facts) const;
  void add(const Sample& sample);
  static void add_self(Counts& counts, Leaf leaf, std::uint64_t weight);
  [[nodiscard]] std::optional<Key> group_of(const Sample& sample, const StackFacts& facts) const;

  struct Building {
    Table table;
    std::map<Key, Counts> rows;
    Counts others;
  };
  const Profile& profile_;
  const TableOptions& options_;
  std::uint64_t first_ = 0;
  std::unordered_map<std::uint32_t, StackFacts> facts_;
  std::map<std::uint32_t, Building> tables_;  // by event
};

bool TableMaker::admits_sample(const Sample& sample) const {
  const auto& thread = profile_.threads[sample.thread];
  const auto seconds = static_cast<double>(sample.time - first_) / 1e9;
  return admits(options_.pids, thread.pid) && admits(options_.tids, thread.tid) &&
         (options_.comm.empty() || thread.name == options_.comm) &&
         seconds >= options_.from.value_or(0) && (!options_.until || seconds < *options_.until);
}

bool TableMaker::has_row(const Function& function) const {
  switch (options_.by) {
    case By::kPython:
      return function.kind == Kind::kPython;
    case By::kNative:
      return function.kind == Kind::kNative || function.kind == Kind::kKernel;
    case By::kMixed:
      return function.kind != Kind::kMark;
  }
  return false;
}

Key TableMaker::key_of(std::uint32_t frame) const {
  const auto& function = function_of(profile_, frame);
  return {name_of(profile_, function), file_of(profile_, function),
          options_.view == View::kLines ? profile_.frames[frame].line : 0};
}

bool TableMaker::is_mine(const Function& function) const {
  const std::string_view directory = options_.mine;
  const std::string_view file = function.file;
  return function.kind == Kind::kPython && file.starts_with(directory) &&
         (file.size() == directory.size() || directory.ends_with('/') ||
          file[directory.size()] == '/');
}

void TableMaker::choose_rows(const std::vector<std::uint32_t>& frames, StackFacts& facts) const {
  bool mine = options_.mine.empty();
  for (const auto frame : frames) {
    const auto& function = function_of(profile_, frame);
    if (!has_row(function)) {
      continue;
    }
    mine = mine || is_mine(function);
    if (mine && !facts.self) {
      facts.self = key_of(frame);
    }
    facts.all.insert(key_of(frame));
  }
}

const StackFacts& TableMaker::facts_of(std::uint32_t stack) {
  const auto [entry, fresh] = facts_.try_emplace(stack);
  auto& facts = entry->second;
  if (fresh) {
    auto frames = frames_of(profile_, stack);
    facts.leaf = frames.empty() ? Leaf::kNative : leaf_of(profile_, frames);
    facts.marks = take_marks(profile_, frames);
    facts.admitted =
        (options_.task.empty() || facts.marks.task == options_.task) &&
        (options_.function.empty() || std::ranges::any_of(frames, [&](std::uint32_t frame) {
           return name_of(profile_, function_of(profile_, frame)) == options_.function;
         }));
    choose_rows(frames, facts);
  }
  return facts;
}

void TableMaker::add_self(Counts& counts, Leaf leaf, std::uint64_t weight) {
  (leaf == Leaf::kPython   ? counts.python
   : leaf == Leaf::kNative ? counts.native
                           : counts.kernel) += weight;
}

// The row of the views whose rows are not functions; nullopt: the sample has none.
std::optional<Key> TableMaker::group_of(const Sample& sample, const StackFacts& facts) const {
  const auto& thread = profile_.threads[sample.thread];
  switch (options_.view) {
    case View::kThreads:
      return Key{fmt::format("{} {}/{}", thread.name, thread.pid, thread.tid), "", 0};
    case View::kProcesses:
      return Key{fmt::format("{} {}", thread.process, thread.pid), "", 0};
    case View::kTasks:
      return facts.marks.task.empty() ? std::nullopt : std::optional{Key{facts.marks.task, "", 0}};
    default:
      return std::nullopt;
  }
}

void TableMaker::add(const Sample& sample) {
  const auto& facts = facts_of(sample.stack);
  if (!facts.admitted) {
    return;
  }
  const auto weight = weight_of(profile_, sample);
  auto& building = tables_[sample.event];
  building.table.weight += weight;
  const bool functions = options_.view == View::kFunctions || options_.view == View::kLines;
  if (options_.view == View::kGil) {
    if (facts.self && !facts.marks.gil.empty()) {
      auto& counts = building.rows[*facts.self];
      (facts.marks.gil == "held" ? counts.python : counts.native) += weight;
    }
    return;
  }
  const auto self = functions ? facts.self : group_of(sample, facts);
  auto& own = self ? building.rows[*self] : building.others;
  add_self(own, facts.leaf, weight);
  if (!functions || !self) {
    own.total += weight;
  }
  if (functions) {
    for (const auto& key : facts.all) {
      building.rows[key].total += weight;
    }
  }
}

std::vector<Table> TableMaker::make() {
  first_ = profile_.samples.empty() ? 0 : profile_.samples.front().time;
  for (const auto& sample : profile_.samples) {
    if (admits_sample(sample)) {
      add(sample);
    }
  }
  std::vector<Table> tables;
  for (auto& [event, building] : tables_) {
    auto& table = building.table;
    table.event = profile_.events[event].name;
    table.unit = profile_.events[event].unit;
    for (const auto& [key, counts] : building.rows) {
      table.rows.push_back({.name = std::get<0>(key),
                            .file = std::get<1>(key),
                            .line = std::get<2>(key),
                            .counts = counts});
    }
    const bool by_total = options_.by_total;
    std::ranges::stable_sort(table.rows, [by_total](const Row& left, const Row& right) {
      const std::pair l{left.counts.self(), left.counts.total};
      const std::pair r{right.counts.self(), right.counts.total};
      return by_total ? std::pair{l.second, l.first} > std::pair{r.second, r.first} : l > r;
    });
    if (building.others.self() != 0) {
      table.others = Row{.name = "", .counts = building.others};
    }
    tables.push_back(std::move(table));
  }
  std::stable_partition(tables.begin(), tables.end(),
                        [](const Table& table) { return table.unit != Unit::kWaits; });
  return tables;
}

}  // namespace

std::vector<Table> make_tables(const Profile& profile, const TableOptions& options) {
  return TableMaker{profile, options}.make();
}

}  // namespace pyinject::report
