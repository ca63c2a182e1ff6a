// Measures how much a recording slows down a program that only makes calls: plain perf, perf with
// stacks by BPF, perf with the trampoline.
#include "pyinject/base/error.hpp"
#include "sections.hpp"
#include "support/bpf_engine.hpp"
#include "support/paths.hpp"
#include "support/temp_dir.hpp"
#include "targets.hpp"

#include <fmt/format.h>

namespace pyinject::bench {

namespace {

using base::Deadline;

constexpr std::chrono::seconds kPatience{60};
constexpr int kWindows = 3;  // per recording

std::vector<std::string> perf_record() { return {"perf", "record", "-q", "-g"}; }

std::vector<std::string> record_by(const std::string& engine) {
  return {test::tool(), "record", "-q", "--engine", engine};
}

// Runs RECORDER, with the options common to all recorders, until destroyed.
class Recording {
 public:
  Recording(std::vector<std::string> recorder, base::Pid target, int hertz)
      : child_{complete(std::move(recorder), target, hertz)} {
    if (child_.read_line(Deadline::after(kPatience)) != "go") {
      (void)child_.wait(Deadline::after(std::chrono::seconds{1}));
      throw base::Error{"a recording does not begin: " + child_.err()};
    }
  }
  ~Recording() {
    child_.close_stdin();
    (void)child_.wait(Deadline::after(kPatience));
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  [[nodiscard]] base::Pid pid() const { return child_.pid(); }

 private:
  [[nodiscard]] std::vector<std::string> complete(std::vector<std::string> command,
                                                  base::Pid target, int hertz) const {
    for (auto& word : std::vector<std::string>{
             "-F", std::to_string(hertz), "-e", "cpu-clock", "-o", folder_ / "data", "-p",
             std::to_string(target.value()), "--", "sh", "-c", "echo go; read word"}) {
      command.push_back(std::move(word));
    }
    return command;
  }

  test::TempDir folder_;
  test::ChildProcess child_;
};

// Rounds per second of CPU time: the median of kWindows windows.
double speed(Worker& worker, const Effort& effort) {
  Series windows;
  for (int i = 0; i < kWindows; ++i) {
    windows.add(
        worker.ask(fmt::format("fib {}", static_cast<double>(effort.window.count()) / 1000)));
  }
  return windows.median();
}

double speed_under(const std::vector<std::string>& recorder, Worker& worker, int hertz,
                   const Effort& effort) {
  const Recording recording{recorder, worker.pid(), hertz};
  return speed(worker, effort);
}

struct Share {
  double program = 0;    // of the target's time, percent
  double collector = 0;  // of one processor, percent
};

Share share_of(Worker& worker, int hertz, const Effort& effort) {
  const Recording recording{record_by("bpf"), worker.pid(), hertz};
  const test::BpfTimeCount count{recording.pid()};
  const auto target = usage_of(worker.pid().value());
  const auto tool = usage_of(recording.pid().value());
  const auto program = count.time();
  const auto took = duration_of([&] { (void)speed(worker, effort); });
  Share share;
  share.program = static_cast<double>((count.time() - program).count()) / 1e4 /
                  (usage_of(worker.pid().value()).cpu_ms - target.cpu_ms);
  share.collector = (usage_of(recording.pid().value()).cpu_ms - tool.cpu_ms) * 1e8 /
                    static_cast<double>(took.count());
  return share;
}

void engines_of(Table& table, const Effort& effort, const test::Interpreter& python, int hertz) {
  Worker worker{python};
  Series perf;
  Series bpf;
  Series bpf_to_perf;
  Series trampoline;
  for (std::size_t round = 0; round < effort.rounds; ++round) {
    const auto nothing = speed(worker, effort);
    const auto with_perf = speed_under(perf_record(), worker, hertz, effort);
    const auto with_bpf = speed_under(record_by("bpf"), worker, hertz, effort);
    perf.add(with_perf / nothing);
    bpf.add(with_bpf / nothing);
    bpf_to_perf.add(with_bpf / with_perf);
    trampoline.add(speed_under(record_by("trampoline"), worker, hertz, effort) / nothing);
  }
  const auto share = share_of(worker, hertz, effort);
  const auto ratio = [](const Series& series) { return fmt::format("{:.3f}", series.median()); };
  table.row({version(python), std::to_string(hertz), std::to_string(effort.rounds), ratio(perf),
             ratio(bpf), ratio(trampoline), ratio(bpf_to_perf),
             fmt::format("{:.2f} %", share.program), fmt::format("{:.2f} %", share.collector)});
}

}  // namespace

void engines(const Effort& effort) {
  if (const auto lacks = test::bpf_engine_lacks(); !lacks.empty()) {
    say_missing("the engines", lacks);
    return;
  }
  Table table{
      "Speed of a program while it is recorded",
      fmt::format("Nothing but calls (fib). Rounds per second of CPU time, {} windows of {} ms in "
                  "each recording, by the same without a recording; the recordings take turns; "
                  "medians. Program: its time by the kernel's count, of the target's. Collector: "
                  "CPU time of the tool, without perf's own, of one processor.",
                  kWindows, effort.window.count()),
      {"CPython", "Hz", "n", "perf -g", "BPF", "trampoline", "BPF / perf -g", "program",
       "collector"}};
  const bool quick = effort.rounds < 5;
  for (const auto& python : interpreters(effort)) {
    for (const int hertz : {999, 4999}) {
      if (!quick || hertz == 999) {
        engines_of(table, effort, python, hertz);
      }
    }
  }
}

}  // namespace pyinject::bench
