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
  std::size_t runs = 200;       // per kind of stop
  std::size_t slow_runs = 20;   // of measurements that take seconds: rivals, whole commands
  std::size_t toggles = 10000;  // switching on and off again, in one process
  std::size_t rounds = 15;      // interleaved windows of speed
  std::chrono::milliseconds window{200};
  std::vector<int> threads{1, 8, 64};
  std::string only;  // part of an interpreter's name
};

class Series {
 public:
  void add(double value) { values_.push_back(value); }
  void add(nanoseconds span) { add(static_cast<double>(span.count()) / 1000); }
  [[nodiscard]] std::size_t count() const { return values_.size(); }
  // PERCENT of the values are not above the result. Throws base::Error if there are no values.
  [[nodiscard]] double percentile(double percent) const;
  [[nodiscard]] double median() const { return percentile(50); }
  // "37 / 101 / 400": median, 99 percent, greatest.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<double> values_;
};

// A Markdown table. Prints each row at once, since a run takes minutes.
class Table {
 public:
  Table(const std::string& title, const std::string& text, const std::vector<std::string>& columns);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // Throws base::Error if a cell is missing or empty, which makes the test fail.
  void row(const std::vector<std::string>& cells);

 private:
  std::size_t columns_;
};

// Reports on stderr why a row is missing that this machine cannot measure.
void say_missing(const std::string& what, const std::string& why);

// Print processor, kernel and load, at the beginning and at the end of a run.
void print_machine();
void print_load(const std::string& when);

// Keeps this process and its children off the processor reserved for targets with one thread:
// otherwise the figures would show the competition for a processor instead of the stop. Call it
// once.
void leave_one_processor();
// -1: no processor to spare.
[[nodiscard]] int processor_of_targets();

// CPU time and memory of a process, according to /proc.
struct Usage {
  double cpu_ms = 0;
  double resident_mb = 0;  // peak so far
};
[[nodiscard]] Usage usage_of(int pid);

[[nodiscard]] nanoseconds duration_of(const std::function<void()>& work);

// Waits for SPAN, so that an untouched window is as long as a touched one.
void wait_for(nanoseconds span);

}  // namespace pyinject::bench
