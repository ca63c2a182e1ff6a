#include "measure.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <thread>

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace pyinject::bench {

namespace {

std::string content(const std::string& path) { return base::read_file(path).value_or(""); }

int g_processor_of_targets = -1;

// The text after "NAME ... :" in TEXT; empty if there is no such line.
std::string field(const std::string& text, const std::string& name) {
  for (const auto line : base::split(text, '\n')) {
    const auto colon = line.find(':');
    if (line.starts_with(name) && colon != std::string_view::npos) {
      return std::string{base::trim(line.substr(colon + 1))};
    }
  }
  return "";
}

void print(const std::string& text) {
  (void)std::fputs(text.c_str(), stdout);
  (void)std::fflush(stdout);
}

}  // namespace

double Series::percentile(double percent) const {
  if (values_.empty()) {
    throw base::Error{"nothing was measured"};
  }
  auto sorted = values_;
  std::ranges::sort(sorted);
  const auto rank = std::ceil(percent / 100 * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

std::string Series::text() const {
  return fmt::format("{:.0f} / {:.0f} / {:.0f}", median(), percentile(99), percentile(100));
}

Table::Table(const std::string& title, const std::string& text,
             const std::vector<std::string>& columns)
    : columns_{columns.size()} {
  print(fmt::format("\n## {}\n\n{}\n\n| {} |\n|", title, text, fmt::join(columns, " | ")));
  for (std::size_t i = 0; i < columns_; ++i) {
    print("---|");
  }
  print("\n");
}

Table::~Table() { print_load(""); }

void Table::row(const std::vector<std::string>& cells) {
  if (cells.size() != columns_ ||
      std::ranges::any_of(cells, [](const auto& cell) { return cell.empty(); })) {
    throw base::Error{fmt::format("a row is not complete: {}", fmt::join(cells, " | "))};
  }
  print(fmt::format("| {} |\n", fmt::join(cells, " | ")));
}

void say_missing(const std::string& what, const std::string& why) {
  fmt::print(stderr, "bench: no figures for {}: {}\n", what, why);
}

void print_machine() {
  utsname name{};
  ::uname(&name);
  const auto cpu = content("/proc/cpuinfo");
  print(fmt::format("# Figures of perf-pyinject\n\n{:%Y-%m-%d}, Linux {}, {} processors ({}{}).\n",
                    fmt::gmtime(std::time(nullptr)), name.release, ::sysconf(_SC_NPROCESSORS_ONLN),
                    field(cpu, "model name"),
                    cpu.find(" hypervisor") == std::string::npos ? "" : ", a virtual machine"));
}

void print_load(const std::string& when) {
  const auto load = content("/proc/loadavg");
  const auto parts = base::split(load, ' ');
  if (parts.size() > 3) {
    print(fmt::format("\n{}Load: {} (1 minute), {} (runnable / all threads).\n",
                      when.empty() ? "" : when + ". ", parts[0], parts[3]));
  }
}

void leave_one_processor() {
  cpu_set_t cpus;
  if (::sched_getaffinity(0, sizeof cpus, &cpus) != 0 || CPU_COUNT(&cpus) < 2) {
    return;
  }
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(static_cast<unsigned>(last), &cpus)) {
    --last;
  }
  CPU_CLR(static_cast<unsigned>(last), &cpus);
  if (::sched_setaffinity(0, sizeof cpus, &cpus) == 0) {
    g_processor_of_targets = last;
  }
}

int processor_of_targets() { return g_processor_of_targets; }

Usage usage_of(int pid) {
  Usage usage;
  const auto root = fmt::format("/proc/{}", pid);
  const auto memory = field(content(root + "/status"), "VmHWM");
  usage.resident_mb =
      static_cast<double>(
          base::parse_number<std::uint64_t>(base::split(memory, ' ').front()).value_or(0)) /
      1024;
  clockid_t clock{};
  timespec time{};
  // Counts all threads of the process, including those that have exited.
  if (::clock_getcpuclockid(pid, &clock) == 0 && ::clock_gettime(clock, &time) == 0) {
    usage.cpu_ms = static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
  }
  return usage;
}

nanoseconds duration_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::steady_clock::now() - begin;
}

void wait_for(nanoseconds span) { std::this_thread::sleep_for(span); }

}  // namespace pyinject::bench
