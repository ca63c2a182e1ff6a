#include "e2e/expected_trees.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "e2e/served_tree.hpp"
#include "e2e/take_word.hpp"
#include "pyinject/base/error.hpp"
#include "support/cpu_time.hpp"
#include "support/find_perf.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>

namespace pyinject::test {

namespace {

using base::Deadline;
using std::chrono::seconds;

struct ChainSample {
  std::string thread;
  bool user = false;
  std::vector<std::string> chain;  // outermost first
};

// "PID/TID", then a line "ADDRESS SYMBOL" per frame, innermost first. Without a call chain, the
// only frame is in the first line.
ChainSample parse_chain(std::string_view block) {
  ChainSample sample;
  bool innermost = true;
  std::string_view numbers;
  for (const auto line : base::split(block, '\n')) {
    auto symbol = base::trim(line);
    if (numbers.empty()) {
      numbers = take_word(symbol);
    }
    const auto address = take_word(symbol);
    if (address.empty()) {
      continue;
    }
    if (innermost) {
      sample.user = address.size() != 16 || address.front() != 'f';
      innermost = false;
    }
    constexpr std::string_view kPrefix = "py::";
    // A collection of garbage may begin anywhere, and the program does not tell it.
    if (symbol.starts_with(kPrefix) && symbol != "py::[gc]") {
      sample.chain.emplace_back(symbol.substr(kPrefix.size()));
    }
  }
  sample.thread = base::split(numbers, '/').back();
  std::ranges::reverse(sample.chain);
  return sample;
}

std::string script_of(const std::string& perf, const std::string& data, const std::string& fields,
                      const std::vector<std::string>& options) {
  std::vector<std::string> command{
      perf, "script", "--no-inline", "--kallsyms", few_kernel_symbols(), "-i", data, "-F", fields};
  command.insert(command.end(), options.begin(), options.end());
  auto script = run(command, {.child = {}, .input = {}, .deadline = kPatience});
  if (script.status != ExitStatus{}) {
    throw base::Error{fmt::format("{} script -i {}: {}", perf, data, script.err)};
  }
  return std::move(script.out);
}

// Whether the innermost function is one in which the program spends its time on purpose.
bool works(const std::vector<std::string>& chain) {
  return !chain.empty() && (chain.back().starts_with("burn_") || chain.back().starts_with("spin:"));
}

std::string most_frequent(const std::map<std::string, std::size_t>& counts) {
  constexpr std::size_t kShown = 5;
  std::vector<std::pair<std::size_t, std::string>> sorted;
  sorted.reserve(counts.size());
  for (const auto& [chain, count] : counts) {
    sorted.emplace_back(count, chain);
  }
  std::ranges::sort(sorted, std::greater{});
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, sorted.size()); ++i) {
    text += fmt::format("{:5} x {}\n", sorted[i].first, sorted[i].second);
  }
  return text;
}

}  // namespace

void CallTree::add(int node, int parent, const std::string& function) {
  children_.emplace(std::pair{parent, function}, node);
}

bool CallTree::has(const std::vector<std::string>& chain) const {
  int node = kRoot;
  for (const auto& function : chain) {
    const auto child = children_.find({node, function});
    if (child == children_.end()) {
      return false;
    }
    node = child->second;
  }
  return node != kRoot;
}

CallTreeServer::CallTreeServer(const Interpreter& python, const PythonOptions& options)
    : python_{python},
      process_{std::in_place, python, target_source("call_tree_server.py"), options} {
  for (auto line = process_->read_line(kPatience); line != ".";
       line = process_->read_line(kPatience)) {
    std::string_view rest = line;
    const auto node = base::parse_number<int>(take_word(rest));
    const auto parent = base::parse_number<int>(take_word(rest));
    const std::string thread{take_word(rest)};
    if (!node || !parent) {
      throw base::Error{"no node of a call tree: " + line};
    }
    trees_[thread].add(*node, *parent, std::string{rest});
  }
}

CallTreeServer::~CallTreeServer() {
  children_.push_back(pid());
  process_.reset();
  for (const auto& pid : children_) {
    remove_maps(python_, pid);
  }
}

std::string CallTreeServer::pid() const { return std::to_string(process_->pid().value()); }

std::string CallTreeServer::ask(const std::string& command) {
  process_->send_line(command);
  return process_->read_line(kPatience);
}

void CallTreeServer::work(int rounds, std::chrono::nanoseconds at_least) {
  const auto enough = cpu_time(process_->pid()) + at_least;
  do {
    EXPECT_EQ(ask(std::to_string(rounds)), "0") << python_.name << ": wrong results";
  } while (cpu_time(process_->pid()) < enough);
}

std::string CallTreeServer::fork(int rounds) {
  auto child = ask(fmt::format("fork {}", rounds));
  EXPECT_NE(child, "-1") << python_.name << ": a child did not end well";
  children_.push_back(child);
  trees_[child] = trees_[pid()];
  return child;
}

void CallTreeServer::nest() { EXPECT_EQ(ask("nest"), "0"); }

ExitStatus CallTreeServer::finish() {
  process_->child().close_stdin();
  if (const auto status = process_->child().wait(Deadline::after(kPatience))) {
    return *status;
  }
  throw base::Error{python_.name + " does not end"};
}

std::string monotonic_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return fmt::format("{}.{:09}", now.tv_sec, now.tv_nsec);
}

std::string describe(const Agreements& agreements) {
  const auto share = [](const Agreement& part) {
    return fmt::format("{} of {} ({:.1f} %)", part.right, part.samples, part.percent());
  };
  auto text = fmt::format("{} right, {} to the leaf, {} of threads without a tree\n",
                          share(agreements.all), share(agreements.leaves), agreements.others);
  for (const auto& [thread, part] : agreements.threads) {
    text += fmt::format("  thread {}: {}\n", thread, share(part));
  }
  return text + "wrong:\n" + agreements.wrong;
}

Agreements compare(const std::string& perf, const std::string& data, const ThreadTrees& trees,
                   const std::vector<std::string>& options) {
  const auto script = script_of(perf, data, "pid,tid,ip,sym", options);
  Agreements agreements;
  std::map<std::string, std::size_t> wrong;
  std::string_view rest = base::trim(script);
  while (!rest.empty()) {
    const auto end = std::min(rest.find("\n\n"), rest.size());
    const auto sample = parse_chain(rest.substr(0, end));
    rest = base::trim(rest.substr(end));
    const auto tree = trees.find(sample.thread);
    if (!sample.user) {
      continue;
    }
    if (tree == trees.end()) {
      ++agreements.others;
      continue;
    }
    const bool right = tree->second.has(sample.chain);
    for (Agreement* const part : {&agreements.all, &agreements.threads[sample.thread]}) {
      ++part->samples;
      part->right += right ? 1 : 0;
    }
    ++agreements.leaves.samples;
    agreements.leaves.right += right && works(sample.chain) ? 1 : 0;
    if (!right) {
      ++wrong[fmt::format("{}: {}", sample.thread, fmt::join(sample.chain, " > "))];
    }
  }
  agreements.wrong = most_frequent(wrong);
  return agreements;
}

Agreement frames_between(const std::string& perf, const std::string& data, const std::string& outer,
                         const std::string& inner, const std::string& object) {
  const auto script = script_of(perf, data, "ip,sym,dso", {});
  Agreement found;
  bool inside = false;  // the last Python function was INNER
  bool met = false;
  for (const auto line : base::split(script, '\n')) {
    const auto name = line.find("py::");
    if (name == std::string_view::npos) {
      met = met || line.find(object) != std::string_view::npos;
      inside = inside && !base::trim(line).empty();
      continue;
    }
    const auto symbol = line.substr(name + 4);
    if (inside && symbol.starts_with(outer + ":")) {
      ++found.samples;
      found.right += met ? 1 : 0;
    }
    inside = symbol.starts_with(inner + ":");
    met = false;
  }
  return found;
}

}  // namespace pyinject::test
