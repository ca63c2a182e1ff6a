// Figures and how they are printed.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace pyinject::bench {

using std::chrono::nanoseconds;

// How much is measured.
struct Effort {
  std::size_t runs = 200;       // of each kind of stop
  std::size_t slow_runs = 20;   // of what takes seconds: rivals, whole commands
  std::size_t toggles = 10000;  // on and off again, in one process
  std::size_t rounds = 15;      // of interleaved windows of speed
  std::chrono::milliseconds window{200};
  std::vector<int> threads{1, 8, 64};
  std::string only;  // part of an interpreter's name
};

class Series {
 public:
  void add(double value) { values_.push_back(value); }
  void add(nanoseconds span) { add(static_cast<double>(span.count()) / 1000); }
  [[nodiscard]] std::size_t count() const { return values_.size(); }
  // PERCENT of the values are not above it; throws base::Error when there is none.
  [[nodiscard]] double percentile(double percent) const;
  [[nodiscard]] double median() const { return percentile(50); }
  // "37 / 101 / 400": median, 99 percent, greatest.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<double> values_;
};

// A Markdown table that is printed row by row: a run takes minutes.
class Table {
 public:
  Table(const std::string& title, const std::string& text, const std::vector<std::string>& columns);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // Throws base::Error when a cell is missing or empty: that is what the test is for.
  void row(const std::vector<std::string>& cells);

 private:
  std::size_t columns_;
};

// Says on stderr why a row is missing that only a better machine can have.
void say_missing(const std::string& what, const std::string& why);

// Processor, kernel, load; at the beginning and at the end of a run.
void print_machine();
void print_load(const std::string& when);

// Keeps this process, and what it starts, from the processor that targets with one thread get: it
// is not their stop that would be measured else, but the competition for a processor. To be called
// once.
void leave_one_processor();
// -1: there is none to spare.
[[nodiscard]] int processor_of_targets();

// CPU time and memory of a process, as /proc says it.
struct Usage {
  double cpu_ms = 0;
  double resident_mb = 0;  // at most so far
};
[[nodiscard]] Usage usage_of(int pid);

[[nodiscard]] nanoseconds duration_of(const std::function<void()>& work);

// Lets SPAN pass: an untouched window is as long as a touched one.
void wait_for(nanoseconds span);

}  // namespace pyinject::bench
