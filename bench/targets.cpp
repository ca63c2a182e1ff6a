#include "targets.hpp"

#include "base/text.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pyinject::bench {

namespace {

// sys.argv: the kind, the number of threads, the processor for the main thread or -1. While busy,
// the program checks for a line about every millisecond; no gap includes that check.
constexpr const char* kWatched = R"(
import os
import select
import sys
import threading
from time import perf_counter_ns as clock
kind, threads, processor = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.sched_setaffinity(0, range(os.cpu_count()))
go = threading.Event()
def work():
    go.wait()
    total = 0
    while True:
        for i in range(1000):
            total += i
def wait():
    threading.Event().wait()
def watch():
    last = clock()
    largest = 0
    for _ in range(10000):
        now = clock()
        if now - last > largest:
            largest = now - last
        last = now
    return largest
for _ in range(threads - 1):
    threading.Thread(target=work if kind == 'busy' else wait, daemon=True).start()
if processor >= 0:
    os.sched_setaffinity(0, {processor})  # this thread only
largest = watch()
print('ready', flush=True)
go.set()
while True:
    if kind != 'idle':
        largest = max(largest, watch())
    if kind == 'idle' or select.select([sys.stdin], [], [], 0)[0]:
        if not sys.stdin.readline():
            break
        print(largest, flush=True)
        largest = 0
)";

constexpr const char* kWorker = R"(
import json
import sys
from time import perf_counter_ns, process_time
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def order(n):
    text = json.dumps({'id': n, 'items': [{'name': str(i), 'price': i * 1.5} for i in range(20)]})
    return sum(item['price'] for item in json.loads(text)['items'])
def rounds(work, seconds):
    begin = now = process_time()
    count = 0
    while now < begin + seconds:
        work()
        count += 1
        now = process_time()
    return count / (now - begin)
def empty():
    pass
def call(count):
    begin = perf_counter_ns()
    for _ in range(count):
        empty()
    return (perf_counter_ns() - begin) / count
def first(count):
    names = {}
    exec('\n'.join(f'def f{i}(): pass' for i in range(count)), names)
    functions = [names[f'f{i}'] for i in range(count)]
    begin = perf_counter_ns()
    for function in functions:
        function()
    return (perf_counter_ns() - begin) / count
commands = {
    'fib': lambda value: rounds(lambda: fib(14), value),
    'mixed': lambda value: rounds(lambda: order(7), value),
    'call': lambda value: call(int(value)),
    'first': lambda value: first(int(value)),
}
fib(10), order(7), call(1000), first(10)
print('ready', flush=True)
for line in sys.stdin:
    command, value = line.split()
    print(round(commands[command](float(value)) * 1000), flush=True)
)";

test::PythonOptions with_arguments(std::vector<std::string> arguments) {
  test::PythonOptions options;
  options.args = std::move(arguments);
  return options;
}

}  // namespace

std::vector<test::Interpreter> interpreters(const Effort& effort) {
  std::vector<test::Interpreter> result;
  for (const auto& python : test::interpreters()) {
    // Rivals do not support targets in a chroot.
    if (python.root.empty() && python.name.find(effort.only) != std::string::npos &&
        std::ranges::none_of(result, [&](const auto& one) { return one.minor == python.minor; })) {
      result.push_back(python);
    }
  }
  return result;
}

std::string version(const test::Interpreter& python) {
  return fmt::format("{}.{}.{}", python.major, python.minor, python.micro);
}

std::string name(Kind kind) {
  switch (kind) {
    case Kind::kBusy:
      return "busy";
    case Kind::kMixed:
      return "mixed";
    case Kind::kIdle:
      break;
  }
  return "idle";
}

Watched::Watched(const test::Interpreter& python, Kind kind, int threads)
    : answers_{kind != Kind::kBusy || threads == 1},
      process_{python, kWatched,
               with_arguments({name(kind), std::to_string(threads),
                               std::to_string(answers_ ? processor_of_targets() : -1)})} {}

nanoseconds Watched::gap() {
  process_.send_line("gap");
  const auto line = process_.read_line(std::chrono::seconds{60});
  const auto largest = base::parse_number<long>(line);
  if (!largest) {
    throw base::Error{"the target said " + line};
  }
  return nanoseconds{*largest};
}

void Watched::check() {
  if (!process_.child().running()) {
    throw base::Error{"the target has ended"};
  }
  if (answers_) {
    (void)gap();
  }
}

Seen watch(Watched& target, const std::function<void()>& work) {
  Seen seen;
  (void)target.gap();
  seen.took = duration_of(work);
  seen.gap = target.gap();
  wait_for(seen.took);
  seen.untouched_gap = target.gap();
  return seen;
}

Worker::Worker(const test::Interpreter& python) : process_{python, kWorker} {}

double Worker::ask(const std::string& command) {
  process_.send_line(command);
  const auto line = process_.read_line(std::chrono::seconds{60});
  const auto value = base::parse_number<long>(line);
  if (!value) {
    throw base::Error{"the target said " + line};
  }
  return static_cast<double>(*value) / 1000;
}

}  // namespace pyinject::bench
