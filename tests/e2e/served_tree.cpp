#include "e2e/served_tree.hpp"

#include "base/text.hpp"
#include "pyinject/base/error.hpp"
#include "support/cpu_time.hpp"
#include "support/find_perf.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>

#include <unistd.h>

namespace pyinject::test {

namespace {

using base::Deadline;
using std::chrono::seconds;

std::vector<std::string> record_command(std::vector<std::string> program,
                                        const std::vector<std::string>& arguments) {
  program.emplace_back("record");
  program.insert(program.end(), arguments.begin(), arguments.end());
  // Exits with the status that it reads; 0 at the end of its stdin.
  for (const char* const word :
       {"--", "/bin/sh", "-c", "echo recording; read status; exit ${status:-0}"}) {
    program.emplace_back(word);
  }
  return program;
}

// "py::Base.work:<string>": programs run by -c have this file name.
std::optional<std::string> own_function(std::string_view symbol) {
  constexpr std::string_view kPrefix = "py::";
  constexpr std::string_view kSuffix = ":<string>";
  if (!symbol.starts_with(kPrefix) || !symbol.ends_with(kSuffix)) {
    return std::nullopt;
  }
  symbol.remove_prefix(kPrefix.size());
  symbol.remove_suffix(kSuffix.size());
  return std::string{symbol};
}

bool in_kernel(std::string_view address) { return address.size() == 16 && address[0] == 'f'; }

// One sample: a line with pid and tid, then one line per frame, innermost first.
ScriptSample parse_served(std::string_view block) {
  ScriptSample sample;
  bool first_frame = true;
  for (const auto line : base::split(block, '\n')) {
    const auto text = base::trim(line);
    if (sample.pid.empty()) {
      sample.pid = text;
      continue;
    }
    const auto blank = text.find(' ');
    if (first_frame) {
      sample.user = !in_kernel(text.substr(0, blank));
      first_frame = false;
    }
    if (blank != std::string_view::npos) {
      if (auto name = own_function(text.substr(blank + 1))) {
        sample.python.insert(sample.python.begin(), std::move(*name));
      }
    }
  }
  return sample;
}

}  // namespace

const std::set<Chain>& served_chains() {
  static const std::set<Chain> chains{
      {"<module>", "serve", "request", "Special.handle", "Base.handle", "Special.work", "Base.work",
       "Base.down", "Base.down", "Base.down", "burn_method"},
      {"<module>", "serve", "request", "Stream.total", "Stream.drain", "Stream.produce",
       "Stream.halves", "Stream.step", "burn_generator"},
      {"<module>", "serve", "request", "Ranking.order", "Ranking.arrange", "Ranking.by_key",
       "Ranking.by_key.<locals>.key", "Ranking.weigh", "burn_key"},
      {"<module>", "serve", "request", "descend", "descend", "descend", "descend", "descend",
       "descend", "descend", "burn_recursion"},
  };
  return chains;
}

void remove_maps(const Interpreter& python, const std::string& pid) {
  const auto map = "/tmp/perf-" + pid + ".map";
  ::unlink(map.c_str());
  if (!python.root.empty()) {
    ::unlink((python.root + map).c_str());
  }
}

PythonOptions on_request() {
  PythonOptions options;
  options.args = {"on-request"};
  return options;
}

ServedTree::ServedTree(const Interpreter& python, const PythonOptions& options)
    : python_{python}, process_{std::in_place, python, target_source("served_tree.py"), options} {}

ServedTree::~ServedTree() {
  const auto text = pid();
  process_.reset();
  remove_maps(python_, text);
}

std::string ServedTree::pid() const { return std::to_string(process_->pid().value()); }

void ServedTree::serve(int requests, std::chrono::nanoseconds at_least) {
  const auto enough = cpu_time(process_->pid()) + at_least;
  do {
    process_->send_line(std::to_string(requests));
    const auto answer = process_->read_line(kPatience);
    EXPECT_TRUE(answer.ends_with(" 0")) << python_.name << ": requests served, wrong: " << answer;
  } while (cpu_time(process_->pid()) < enough);
}

ExitStatus ServedTree::finish() {
  process_->child().close_stdin();
  if (const auto status = process_->child().wait(Deadline::after(kPatience))) {
    return *status;
  }
  throw base::Error{python_.name + " does not end"};
}

std::vector<ScriptSample> read_samples(const std::string& perf, const std::string& data,
                                       const ChildOptions& options) {
  const auto script = run({perf, "script", "--no-inline", "--kallsyms", few_kernel_symbols(), "-i",
                           data, "-F", "pid,ip,sym"},
                          {.child = options, .input = {}, .deadline = kPatience});
  if (script.status != ExitStatus{}) {
    throw base::Error{fmt::format("{} script -i {}: {}", perf, data, script.err)};
  }
  std::vector<ScriptSample> samples;
  std::string_view rest = script.out;
  while (!base::trim(rest).empty()) {
    const auto end = std::min(rest.find("\n\n"), rest.size());
    samples.push_back(parse_served(base::trim(rest.substr(0, end))));
    rest.remove_prefix(std::min(end + 2, rest.size()));
  }
  return samples;
}

bool begins_served(const Chain& chain) {
  return !chain.empty() && std::ranges::any_of(served_chains(), [&](const Chain& whole) {
    return chain.size() <= whole.size() && std::equal(chain.begin(), chain.end(), whole.begin());
  });
}

Named count_named(const std::vector<ScriptSample>& samples, const std::string& pid) {
  std::set<std::string> leaves;
  for (const auto& chain : served_chains()) {
    leaves.insert(chain.back());
  }
  Named named;
  double whole = 0;
  double begun = 0;
  double innermost = 0;
  double any = 0;
  for (const auto& sample : samples) {
    if (!sample.user || (!pid.empty() && sample.pid != pid)) {
      continue;
    }
    ++named.samples;
    any += sample.python.empty() ? 0 : 1;
    innermost += !sample.python.empty() && leaves.contains(sample.python.back()) ? 1 : 0;
    whole += served_chains().contains(sample.python) ? 1 : 0;
    begun += begins_served(sample.python) ? 1 : 0;
  }
  if (named.samples != 0) {
    const double percent = 100.0 / static_cast<double>(named.samples);
    named.whole = whole * percent;
    named.begun = begun * percent;
    named.innermost = innermost * percent;
    named.any = any * percent;
  }
  return named;
}

void expect_right(const Named& named, const std::string& messages) {
  EXPECT_GE(named.begun, kBegun) << messages;
  EXPECT_GE(named.whole, kInLeaves) << messages;
}

RunResult run_tool(const std::vector<std::string>& arguments, const ChildOptions& options) {
  std::vector<std::string> all{tool()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run(all, {.child = options, .input = {}, .deadline = kPatience});
}

std::string trampoline_of(const std::string& pid) {
  const auto status = run_tool({"status", "-p", pid, "--json"});
  const auto answer = nlohmann::json::parse(status.out);
  const auto& process = answer.at("processes").at(0);
  EXPECT_EQ(process.at("pid"), std::stoi(pid));
  return process.at("trampoline").is_null() ? "none" : process.at("trampoline").get<std::string>();
}

RunningRecord::RunningRecord(const std::vector<std::string>& arguments,
                             const std::vector<std::string>& program, const ChildOptions& options)
    : child_{record_command(program, arguments), options} {
  const auto line = child_.read_line(Deadline::after(kPatience));
  if (line != "recording") {
    (void)child_.wait(Deadline::after(seconds{1}));
    throw base::Error{"record does not begin: " + child_.err()};
  }
}

ExitStatus RunningRecord::finish() {
  child_.close_stdin();
  return wait();
}

ExitStatus RunningRecord::finish(int status) {
  child_.write(std::to_string(status) + "\n");
  return wait();
}

ExitStatus RunningRecord::wait() {
  if (const auto status = child_.wait(Deadline::after(kPatience))) {
    return *status;
  }
  throw base::Error{"record does not end: " + child_.err()};
}

}  // namespace pyinject::test
