#include "e2e/bpf_recording.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "e2e/served_tree.hpp"
#include "e2e/take_word.hpp"
#include "pyinject/base/error.hpp"
#include "support/find_perf.hpp"
#include "support/statistics.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <regex>

namespace pyinject::test {

namespace {

constexpr std::string_view kPythonPrefix = "py::";

// "ADDRESS SYMBOL+0xOFFSET"; nullopt: not a frame.
std::optional<ScriptFrame> parse_frame(std::string_view line, bool& kernel) {
  const auto address = take_word(line);
  const auto number = base::parse_number<std::uint64_t>(address, 16);
  if (!number) {
    return std::nullopt;
  }
  kernel = address.size() == 16 && address.front() == 'f';
  ScriptFrame frame;
  frame.address = *number;
  constexpr std::string_view kOffset = "+0x";
  if (const auto at = line.rfind(kOffset); at != std::string_view::npos) {
    const auto digits = line.substr(at + kOffset.size());
    if (const auto offset = base::parse_number<std::uint64_t>(digits, 16)) {
      frame.offset = *offset;
      line = line.substr(0, at);
    }
  }
  frame.symbol = line;
  return frame;
}

// "PID/TID PERIOD EVENT:", then one line per frame, innermost first. Without a call chain, the only
// frame is in the first line.
ScriptedSample parse_sample(std::string_view block) {
  ScriptedSample sample;
  auto lines = base::split(block, '\n');
  auto head = lines.front();
  const auto numbers = base::split(take_word(head), '/');
  sample.pid = numbers.front();
  sample.tid = numbers.back();
  sample.period = base::parse_number<std::uint64_t>(take_word(head)).value_or(0);
  sample.event = take_word(head);
  lines.front() = head;
  for (const auto line : lines) {
    bool kernel = false;
    if (auto frame = parse_frame(line, kernel)) {
      sample.user = sample.frames.empty() ? !kernel : sample.user;
      sample.frames.push_back(std::move(*frame));
    }
  }
  return sample;
}

nlohmann::json part_of(const std::string& file, const char* name) {
  const auto all = nlohmann::json::parse(base::read_file(file).value_or(""), nullptr, false);
  if (!all.is_object() || !all.contains(name)) {
    throw base::Error{fmt::format("there is no {} in {}", name, file)};
  }
  return all[name];
}

}  // namespace

std::vector<std::string> bpf_record(const std::string& pid, const std::string& data,
                                    const std::string& frequency) {
  return {"--engine", "bpf", "-p", pid, "-F", frequency, "-e", "cpu-clock", "-o", data};
}

bool has_tracepoints() {
  return std::filesystem::exists("/sys/kernel/tracing/events/sched/sched_switch");
}

nlohmann::json bpf_figures(const std::string& file) { return part_of(file, "bpf"); }

std::size_t said_unreadable(const std::string& messages, std::size_t samples) {
  const std::regex said{"([0-9]+) partly unreadable"};
  std::smatch words;
  const auto count = std::regex_search(messages, words, said) ? std::stoul(words[1]) : 0;
  EXPECT_TRUE(share_is_at_most({.count = count, .all = samples}, 0.001)) << messages;
  return count;
}

nlohmann::json counters_in(const std::string& file) { return part_of(file, "counters"); }

const std::vector<Build>& all_builds() {
  static const std::vector<Build> builds{{.minor = 12},
                                         {.minor = 13},
                                         {.minor = 14},
                                         {.minor = 15},
                                         {.minor = 14, .jit = true},
                                         {.minor = 15, .jit = true}};
  return builds;
}

std::vector<Build> builds_without_jit() {
  auto builds = all_builds();
  std::erase_if(builds, [](const Build& build) { return build.jit; });
  return builds;
}

std::string name(const Build& build) {
  return fmt::format("py3_{}{}", build.minor, build.jit ? "_jit" : "");
}

// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Build& build, std::ostream* stream) { *stream << name(build); }

ChildOptions environment_of(const Build& build) {
  ChildOptions options;
  options.env["PYTHON_JIT"] = build.jit ? "1" : "0";
  return options;
}

std::optional<Interpreter> find_build(const Build& build) {
  auto python = plain_interpreter(build.minor);
  return !build.jit || (python && has_jit(*python)) ? python : std::nullopt;
}

std::string ScriptFrame::function() const {
  const std::string_view text =
      std::string_view{symbol}.substr(python() ? kPythonPrefix.size() : 0);
  return std::string{text.substr(0, text.find(':'))};
}

std::string ScriptFrame::file() const {
  const auto begin = symbol.find(':', kPythonPrefix.size());
  return !python() || begin == std::string::npos ? "" : symbol.substr(begin + 1);
}

std::vector<std::string> ScriptedSample::chain() const {
  std::vector<std::string> functions;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (frame->python()) {
      functions.push_back(frame->function());
    }
  }
  return functions;
}

const ScriptFrame* ScriptedSample::innermost() const {
  const auto found =
      std::ranges::find_if(frames, [](const ScriptFrame& frame) { return frame.python(); });
  return found == frames.end() ? nullptr : &*found;
}

bool has_mark(const ScriptedSample& sample, std::string_view mark) {
  return std::ranges::find(sample.frames, mark, &ScriptFrame::symbol) != sample.frames.end();
}

bool holds_gil(const ScriptedSample& sample) { return has_mark(sample, "[GIL held]"); }

std::pair<std::size_t, std::size_t> count_chain(const std::string& data, const std::string& pid,
                                                const std::vector<std::string>& chain) {
  std::size_t right = 0;
  std::size_t user = 0;
  for (const auto& sample : samples_without_kernel_names(data)) {
    user += sample.pid == pid && sample.user ? 1 : 0;
    right += sample.pid == pid && sample.user && sample.chain() == chain ? 1 : 0;
  }
  return {right, user};
}

std::vector<ScriptedSample> scripted_samples(const std::string& data,
                                             const std::vector<std::string>& options,
                                             const std::string& perf, const ChildOptions& child) {
  // By default perf script leaves out what is more than 127 entries away from the leaf, such as the
  // first functions of a thread that compiles.
  std::vector<std::string> command{perf,   "script", "--no-inline",
                                   "-i",   data,     "--max-stack",
                                   "4096", "-F",     "pid,tid,period,event,ip,sym,symoff"};
  command.insert(command.end(), options.begin(), options.end());
  const auto script =
      run(command, {.child = child, .input = {}, .deadline = std::chrono::seconds{60}});
  if (script.status != ExitStatus{}) {
    throw base::Error{fmt::format("{} script -i {}: {}", perf, data, script.err)};
  }
  std::vector<ScriptedSample> samples;
  std::string_view rest = base::trim(script.out);
  while (!rest.empty()) {
    const auto end = std::min(rest.find("\n\n"), rest.size());
    samples.push_back(parse_sample(rest.substr(0, end)));
    rest = base::trim(rest.substr(end));
  }
  return samples;
}

std::vector<ScriptedSample> samples_without_kernel_names(const std::string& data,
                                                         const std::string& perf) {
  return scripted_samples(data, {"--kallsyms", few_kernel_symbols()}, perf);
}

}  // namespace pyinject::test
