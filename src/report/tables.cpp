#include "report/tables.hpp"

#include "report/gil_holders.hpp"
#include "report/selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace pyinject::report {

namespace {

class TableMaker {
 public:
  TableMaker(const Profile& profile, const ViewOptions& options)
      : profile_{profile},
        options_{options},
        selection_{profile, options, options.view == View::kLines} {}

  [[nodiscard]] std::vector<Table> make();

 private:
  struct Building {
    Table table;
    std::map<std::uint32_t, Counts> rows;  // by row of the selection, or of groups_
    Counts others;
  };
  void add(const Slice& slice, const StackFacts& facts);
  static void add_gil(const Slice& slice, const StackFacts& facts, Building& building);
  [[nodiscard]] std::optional<std::uint32_t> group_of(const Slice& slice, const StackFacts& facts);
  [[nodiscard]] Table finish(std::uint32_t event, Building& building) const;
  void add_holders(std::vector<Table>& tables);

  const Profile& profile_;
  const ViewOptions& options_;
  Selection selection_;
  std::map<std::string, std::uint32_t> groups_;
  std::vector<std::string> group_names_;
  std::map<std::uint32_t, Building> tables_;  // by event
};

// The row of the views whose rows are not functions; nullopt: the sample has none.
std::optional<std::uint32_t> TableMaker::group_of(const Slice& slice, const StackFacts& facts) {
  const auto& thread = profile_.threads[slice.thread];
  std::string name;
  if (options_.view == View::kThreads) {
    name = fmt::format("{} {}/{}", thread.name, thread.pid, thread.tid);
  } else if (options_.view == View::kProcesses) {
    name = fmt::format("{} {}", thread.process, thread.pid);
  } else if (name = facts.marks.task_or_greenlet(); name.empty()) {
    return std::nullopt;
  }
  const auto [entry, fresh] =
      groups_.try_emplace(name, static_cast<std::uint32_t>(group_names_.size()));
  if (fresh) {
    group_names_.push_back(std::move(name));
  }
  return entry->second;
}

void TableMaker::add_gil(const Slice& slice, const StackFacts& facts, Building& building) {
  if (facts.self && !facts.marks.gil.empty()) {
    auto& counts = building.rows[*facts.self];
    (facts.marks.gil == "held" ? counts.python : counts.native) += slice.weight;
  }
}

void TableMaker::add(const Slice& slice, const StackFacts& facts) {
  auto& building = tables_[slice.event];
  building.table.weight += slice.weight;
  if (options_.view == View::kGil) {
    add_gil(slice, facts, building);
    return;
  }
  const bool functions = is_of_functions(options_.view);
  const auto self = functions ? facts.self : group_of(slice, facts);
  auto& own = self ? building.rows[*self] : building.others;
  own.add(facts.leaf, slice.weight);
  building.table.undecided += facts.leaf == Leaf::kUndecided ? slice.weight : 0;
  if (!functions || !self) {
    own.total += slice.weight;
  }
  if (functions) {
    for (const auto row : facts.all) {
      building.rows[row].total += slice.weight;
    }
  }
}

Table TableMaker::finish(std::uint32_t event, Building& building) const {
  auto& table = building.table;
  table.event = profile_.events[event].name;
  table.unit = profile_.events[event].unit;
  const bool groups = !is_of_functions(options_.view) && options_.view != View::kGil;
  for (const auto& [number, counts] : building.rows) {
    const auto key = groups ? RowKey{.name = group_names_[number]} : selection_.key(number);
    table.rows.push_back({.name = key.name, .file = key.file, .line = key.line, .counts = counts});
  }
  std::ranges::sort(table.rows, [by_total = options_.by_total](const Row& left, const Row& right) {
    const std::pair l{left.counts.self(), left.counts.total};
    const std::pair r{right.counts.self(), right.counts.total};
    if (l != r) {
      return by_total ? std::pair{l.second, l.first} > std::pair{r.second, r.first} : l > r;
    }
    return std::tie(left.name, left.file, left.line) < std::tie(right.name, right.file, right.line);
  });
  if (building.others.self() != 0) {
    table.others = Row{.name = "", .counts = building.others};
  }
  return std::move(table);
}

// To the waits only: samples of CPU events say that a thread tries to get the GIL, not how long it
// sleeps for it.
void TableMaker::add_holders(std::vector<Table>& tables) {
  const auto holders = gil_holders(profile_, selection_);
  for (auto& table : tables) {
    for (auto& row : table.rows) {
      const auto found = holders.find({.name = row.name, .file = row.file});
      if (table.unit == Unit::kWaits && found != holders.end()) {
        row.holders = found->second;
      }
    }
  }
}

std::vector<Table> TableMaker::make() {
  selection_.visit([this](const Slice& slice, const StackFacts& facts) { add(slice, facts); });
  std::vector<Table> tables;
  for (auto& [event, building] : tables_) {
    tables.push_back(finish(event, building));
  }
  std::stable_partition(tables.begin(), tables.end(),
                        [](const Table& table) { return table.unit != Unit::kWaits; });
  if (options_.view == View::kGil) {
    add_holders(tables);
  }
  return tables;
}

}  // namespace

void Counts::add(Leaf leaf, std::uint64_t weight) {
  (leaf == Leaf::kPython ? python : leaf == Leaf::kKernel ? kernel : native) += weight;
}

bool is_of_functions(View view) {
  return view == View::kFunctions || view == View::kLines || view == View::kImports;
}

std::vector<Table> make_tables(const Profile& profile, const ViewOptions& options) {
  return TableMaker{profile, options}.make();
}

}  // namespace pyinject::report
