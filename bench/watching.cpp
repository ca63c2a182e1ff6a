// Many processes: measures the time to examine all of them and the cost of detecting new ones.
#include "base/text.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/watch/process_watch.hpp"
#include "sections.hpp"
#include "support/child_process.hpp"
#include "support/interpreters.hpp"
#include "support/python_process.hpp"

#include <fmt/format.h>

#include <ctime>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <poll.h>

namespace pyinject::bench {

namespace {

using base::Deadline;

constexpr std::size_t kMany = 500;

// Python processes of every available interpreter: starts one of each, which forks the others.
class Crowd {
 public:
  explicit Crowd(std::size_t count) {
    const auto interpreters = test::interpreters();
    for (std::size_t which = 0; which < interpreters.size(); ++which) {
      const auto forks =
          count / interpreters.size() + (which < count % interpreters.size() ? 1 : 0);
      auto process = std::make_unique<test::PythonProcess>(
          interpreters[which], fmt::format("import os, sys\n"
                                           "pids = []\n"
                                           "for i in range({}):\n"
                                           "  read, write = os.pipe()\n"
                                           "  pid = os.fork()\n"
                                           "  if pid == 0:\n"
                                           "    os.write(write, b'x')\n"
                                           "    sys.stdin.read()\n"
                                           "    os._exit(0)\n"
                                           "  os.read(read, 1)\n"
                                           "  os.close(read)\n"
                                           "  os.close(write)\n"
                                           "  pids.append(pid)\n"
                                           "print('ready', flush=True)\n"
                                           "print(*pids, flush=True)\n"
                                           "sys.stdin.read()\n",
                                           forks));
      const auto line = process->read_line();
      for (const auto word : base::split(line, ' ')) {
        pids_.emplace_back(base::parse_number<pid_t>(word).value_or(0));
      }
      processes_.push_back(std::move(process));
    }
  }
  [[nodiscard]] const std::vector<base::Pid>& pids() const { return pids_; }
  [[nodiscard]] std::size_t interpreters() const { return processes_.size(); }

 private:
  std::vector<base::Pid> pids_;
  std::vector<std::unique_ptr<test::PythonProcess>> processes_;
};

void detect_all(python::Detector& detector, const Crowd& crowd) {
  for (const auto pid : crowd.pids()) {
    const auto detection = detector.detect(pid);
    if (const auto* refused = std::get_if<python::Refused>(&detection)) {
      throw base::Error{python::describe(refused->refusal)};
    }
  }
}

// The CPU time of this thread.
nanoseconds cpu_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds{time.tv_sec} + nanoseconds{time.tv_nsec};
}

struct Heard {
  double percent = 0;  // of one processor
  std::size_t births = 0;
};

Heard listen(watch::ProcessWatch& watch, nanoseconds span) {
  Heard heard;
  const auto before = cpu_time();
  const auto end = Deadline::after(span);
  while (!end.expired()) {
    pollfd ready{.fd = watch.fd(), .events = POLLIN, .revents = 0};
    ::poll(&ready, 1, end.remaining_ms());
    for (const auto& event : watch.take()) {
      heard.births += event.change == watch::Change::kForked ? 1 : 0;
    }
  }
  heard.percent = 100.0 * static_cast<double>((cpu_time() - before).count()) /
                  static_cast<double>(span.count());
  return heard;
}

constexpr auto kStorm =
    "import os, time\n"
    "begin = time.monotonic()\n"
    "i = 0\n"
    "print('ready', flush=True)\n"
    "while True:\n"
    "  os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)\n"
    "  i += 1\n"
    "  time.sleep(max(0, begin + i / 500 - time.monotonic()))\n";

void listen_to_all(watch::ProcessWatch& watch, nanoseconds span, Table& table) {
  const auto quiet = listen(watch, span);
  test::ChildProcess storm{{"python3", "-c", kStorm}};
  if (!storm.read_line(Deadline::after(std::chrono::seconds{10}))) {
    throw base::Error{"the storm does not begin: " + storm.err()};
  }
  const auto busy = listen(watch, span);
  const auto rate = static_cast<double>(busy.births) * 1e9 / static_cast<double>(span.count());
  table.row({std::string{watch.name()}, fmt::format("{:.2f} %", quiet.percent),
             fmt::format("{:.2f} %", busy.percent), fmt::format("{:.0f}", rate)});
}

}  // namespace

void watching(const Effort& effort) {
  const bool quick = effort.runs < 10;
  const Crowd crowd{quick ? 20 : kMany};
  {
    Table table{
        "Examining many processes",
        fmt::format("{} Python processes of {} interpreters, in milliseconds for all of them.",
                    crowd.pids().size(), crowd.interpreters()),
        {"", "ms: median / 99 % / max"}};
    Series first;
    Series again;
    for (std::size_t run = 0; run < effort.slow_runs; ++run) {
      const auto detector = python::make_detector();
      const auto milliseconds = [](nanoseconds span) {
        return static_cast<double>(span.count()) / 1e6;
      };
      first.add(milliseconds(duration_of([&] { detect_all(*detector, crowd); })));
      again.add(milliseconds(duration_of([&] { detect_all(*detector, crowd); })));
    }
    table.row({"their files are new to it", first.text()});
    table.row({"again", again.text()});
  }
  const auto span = quick ? nanoseconds{effort.window} : nanoseconds{std::chrono::seconds{10}};
  Table table{
      "Detecting new processes",
      "Share of one processor; 500 times a second `/bin/true` is forked, executed and waited for, "
      "while the processes of the table above exist.",
      {"by", "nothing happens", "the storm", "process starts detected per second"}};
  std::string why;
  if (const auto watch = watch::watch_by_perf_events(why)) {
    listen_to_all(*watch, span, table);
  } else {
    say_missing("perf events", why);
  }
  listen_to_all(*watch::watch_by_procfs(), span, table);
}

}  // namespace pyinject::bench
