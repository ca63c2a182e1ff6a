// The profile behind a live view: counts of samples by function, line, thread, task or greenlet,
// and process, in total and in the latest intervals. Pure: stacks in, tables out.
#pragma once

#include "live/frequent_stacks.hpp"
#include "live/names.hpp"
#include "live/row_id.hpp"
#include "pyinject/perfdata/stack_counts.hpp"
#include "sample/stack.hpp"
#include "sample/use.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyinject::live {

enum class Order { kSelf, kTotal, kSelfTime, kTotalTime, kGil, kWait };

// What a thread did in a sample, up to kUnknown: the stack was read from outside, or its process
// has just been forked.
using sample::Use;
// Shares of one CPU, by Use.
using Uses = std::array<double, sample::kCpuUses>;
// Threads that wait, by Use.
using Waits = std::array<double, sample::kUses>;

// Intervals of the history in a row.
inline constexpr std::size_t kHistory = 20;

// Shares are of one CPU. TOTAL counts a sample once, however often a function is in its stack.
struct Row {
  std::uint64_t id = 0;  // of the same function, line, ... in each table of this view
  std::string name;      // not made printable
  std::string place;     // a function's file, "pid 7" of a task; empty for other rows
  std::uint32_t line = 0;
  std::uint32_t pid = 0;  // of tasks
  bool greenlet = false;  // of tasks: it is no task, but the greenlets with this name
  // Shares: in the latest intervals, unless they are since the start.
  double self = 0;  // for threads, tasks and processes the same as TOTAL
  double total = 0;
  double gil = 0;                        // the part of SELF with the GIL; 0 unless requested
  double wait = 0;                       // threads that wait in it, without functions that it calls
  std::chrono::nanoseconds self_time{};  // since the start, or the latest reset()
  std::chrono::nanoseconds total_time{};
  std::chrono::nanoseconds wait_time{};
  Uses uses{};                  // parts of SELF, since the start, or the latest reset()
  Waits waits{};                // parts of WAIT, likewise
  std::vector<double> history;  // SELF of each interval, the latest last; at most kHistory
};

// A function of a stack, not made printable.
struct Place {
  std::string name;
  std::string file;
  std::uint32_t line = 0;
  bool operator==(const Place&) const = default;
};

struct TableOptions {
  View view = View::kFunctions;
  Order order = Order::kSelf;
  std::string_view filter = {};  // only rows whose name or place contains it
  std::size_t most = 1000;       // rows
};

struct Table {
  std::vector<Row> rows;
  std::size_t left_out = 0;  // rows that match, beyond OPTIONS.most
};

class Profile {
 public:
  // PERIOD: the time that a sample stands for.
  explicit Profile(std::chrono::nanoseconds period) : period_{period} {}

  // Several numbers may name the same function: they share its rows. As Names.
  void name(sample::Code code) { names_.add(std::move(code)); }
  void name_thread(std::uint32_t pid, std::uint32_t tid, std::string name);
  void name_process(std::uint32_t pid, std::string name);
  // A process that is sampled has a GIL or, a free-threaded build, none.
  void note_gil(bool has) { any_gil_ = has || any_gil_.value_or(false); }
  // Several numbers, those of its instructions, have the same name: they share a row.
  void name_c_function(std::uint64_t number, std::string name);
  // IN_GREENLET: it counts for a greenlet if it has no task, which may use greenlets. C_FUNCTION:
  // the one that ran, if USE is kC; 0: unknown.
  void add(const sample::Stack& stack, std::uint64_t count = 1, Use use = Use::kUnknown,
           bool in_greenlet = false, std::uint64_t c_function = 0);
  // The thread of STACK was off the CPU for LENGTH, as USE says.
  void add_wait(const sample::Stack& stack, Use use, std::chrono::nanoseconds length);
  // Ends an interval of this LENGTH.
  void end_interval(std::chrono::nanoseconds length);
  void reset();
  // From now on, all shares are those since the start, not those in the latest intervals.
  void share_since_start() { since_start_ = true; }

  [[nodiscard]] Table table(const TableOptions& options) const;
  // The most frequent stack with row ID of VIEW, since the start, innermost function first. Empty:
  // none is known any more.
  [[nodiscard]] std::vector<Place> stack_of(View view, std::uint64_t id) const;

  [[nodiscard]] const Names& names() const { return names_; }
  [[nodiscard]] std::uint64_t samples() const { return samples_; }
  // Since the start, or the latest reset().
  [[nodiscard]] const perfdata::StackCounts& kinds() const { return kinds_; }
  [[nodiscard]] std::chrono::nanoseconds length() const { return length_; }
  // Use of CPUs in the same time as in the tables.
  [[nodiscard]] double share() const { return share_of_processes(&Row::self); }
  [[nodiscard]] double gil_share() const { return share_of_processes(&Row::gil); }
  // Whether any of the processes has a GIL.
  [[nodiscard]] bool has_gil() const { return any_gil_.value_or(true); }
  [[nodiscard]] Uses uses() const;

 private:
  using UseCounts = std::array<std::uint32_t, sample::kCpuUses>;
  struct Count {
    std::uint32_t self = 0;
    std::uint32_t total = 0;
    std::uint32_t gil = 0;
    float waited = 0;  // seconds
  };
  struct Entry {
    std::array<Count, kHistory> intervals{};
    std::uint64_t self = 0;
    std::uint64_t total = 0;
    std::uint64_t gil = 0;
    std::chrono::nanoseconds waited{};
    std::uint64_t latest = 0;                  // number of the latest stack
    UseCounts uses{};                          // of SELF
    std::array<float, sample::kUses> waits{};  // seconds
  };
  // By a number that is unique in its view.
  using Entries = std::unordered_map<std::uint64_t, Entry>;
  // How much a sample adds to a row.
  struct Weight {
    std::uint32_t count = 1;
    bool self = true;
    bool gil = false;
    std::chrono::nanoseconds waited{};
    Use use = Use::kUnknown;  // of the sample, or of the wait
  };

  void count(View view, std::uint64_t id, const Weight& weight);
  // Without a name.
  [[nodiscard]] Row row_of(std::uint64_t id, const Entry& entry) const;
  [[nodiscard]] std::vector<double> history_of(const Entry& entry) const;
  void describe(View view, Row& row) const;
  [[nodiscard]] const std::string& c_function(std::uint64_t number) const;
  // Rows of C functions with one name become one row, which has the least of their numbers.
  void merge_c_functions(std::vector<Row>& rows) const;
  // Of the shares: in the latest intervals, or since the start.
  struct Sum {
    std::uint64_t self = 0;
    std::uint64_t total = 0;
    std::uint64_t gil = 0;
    double waited = 0;  // seconds
  };
  [[nodiscard]] Sum sum_of(const Entry& entry) const;
  [[nodiscard]] std::chrono::nanoseconds time_of_shares() const;
  // The sum over all processes.
  [[nodiscard]] double share_of_processes(double Row::*share) const;

  std::chrono::nanoseconds period_;
  Names names_;
  std::map<View, Entries> entries_;
  std::unordered_map<std::uint64_t, std::string> c_functions_;
  FrequentStacks stacks_;
  std::array<std::chrono::nanoseconds, kHistory> lengths_{};
  std::array<UseCounts, kHistory> uses_{};  // of all stacks, by interval
  UseCounts uses_since_start_{};
  std::size_t current_ = 0;  // index of the interval that counts
  std::size_t ended_ = 0;    // intervals, at most kHistory - 1
  std::uint64_t samples_ = 0;
  perfdata::StackCounts kinds_;
  std::uint64_t added_ = 0;  // stacks
  std::chrono::nanoseconds length_{};
  bool since_start_ = false;
  std::optional<bool> any_gil_;  // nullopt: no process yet
};

}  // namespace pyinject::live
