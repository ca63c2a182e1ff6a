#include "export/flamegraph.hpp"

#include "base/text.hpp"
#include "export/deflate.hpp"
#include "export/flamegraph_page.hpp"
#include "export/json_text.hpp"
#include "report/machinery.hpp"
#include "report/moved_functions.hpp"
#include "report/names.hpp"
#include "report/pair_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace pyinject::exports {

namespace {

using report::FunctionKey;
using report::moved_functions;
using report::Profile;

constexpr std::uint64_t kCell = 20'000'000;  // nanoseconds
constexpr std::uint64_t kMostCells = 180'000;
constexpr auto kNone = std::numeric_limits<std::uint32_t>::max();

struct PageFunction {
  report::Kind kind = report::Kind::kNative;
  std::string name;
  std::string file;
  auto operator<=>(const PageFunction&) const = default;
};

FunctionKey key_of(const PageFunction& function) {
  return {static_cast<int>(function.kind), function.name, function.file};
}

PageFunction page_function(const Profile& profile, const report::Function& function) {
  return {.kind = function.kind,
          .name = name_of(profile, function),
          .file = file_of(profile, function)};
}

struct PageSample {
  std::uint64_t cell = 0;
  std::uint32_t thread = 0;
  std::uint32_t event = 0;
  std::uint32_t stack = 0;
  std::uint32_t use = 0;
  bool old = false;
  std::uint64_t weight = 0;

  [[nodiscard]] auto key() const { return std::tie(old, cell, event, thread, stack, use); }
};

// The tables of the page: those of one or two profiles, without what no sample needs.
class Tables {
 public:
  void add(const Profile& profile, bool old);
  // BEFORE is added next. Its functions whose files are elsewhere are those that are there. Returns
  // their number.
  std::size_t match_moved(const Profile& before);
  // Adds up samples that differ in nothing but their time within a cell.
  void merge();
  [[nodiscard]] std::string json(const FlamegraphOptions& options,
                                 const std::vector<std::string>& notes, bool compares) const;

 private:
  // Numbers in the page of what PROFILE has; kNone: not there yet.
  struct Numbers {
    std::vector<report::Part> parts;  // by function of PROFILE
    std::vector<std::uint32_t> functions;
    std::vector<std::uint32_t> nodes;
  };
  struct Periods {
    std::uint64_t sum = 0;
    std::uint64_t count = 0;
    // Seconds that a sample stands for.
    [[nodiscard]] double mean() const {
      return count == 0 ? 0 : static_cast<double>(sum) / 1e9 / static_cast<double>(count);
    }
  };
  struct Node {
    std::uint32_t caller = 0;
    std::uint32_t frame = 0;
  };
  std::uint32_t event(const report::Event& event);
  void add_events(const Profile& profile);
  std::uint32_t thread(const report::Thread& thread);
  std::uint32_t use(std::string_view name);
  std::uint32_t function(const Profile& profile, std::uint32_t number, Numbers& known);
  std::uint32_t frame(std::uint32_t function, std::uint32_t line);
  std::uint32_t node(const Profile& profile, std::uint32_t number, Numbers& known);
  void append_functions(std::string& out) const;
  void append_samples(std::string& out) const;

  std::uint64_t cell_ = kCell;
  std::vector<report::Event> events_;
  std::vector<std::array<Periods, 2>> periods_;  // by event; those of the older recording
  std::vector<report::Thread> threads_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::string>, std::uint32_t> thread_numbers_;
  std::vector<PageFunction> functions_;
  std::vector<report::Part> parts_;  // by function
  std::map<PageFunction, std::uint32_t> function_numbers_;
  std::vector<report::Frame> frames_;
  report::PairNumbers frame_numbers_;  // by function and line
  std::vector<Node> nodes_{Node{}};
  report::PairNumbers node_numbers_;    // by caller and frame
  std::vector<std::string_view> uses_;  // report::Uses
  std::vector<PageSample> samples_;
  std::map<FunctionKey, FunctionKey> moved_;
};

std::uint32_t Tables::event(const report::Event& event) {
  const auto same = std::ranges::find(events_, event.name, &report::Event::name);
  const auto number = static_cast<std::uint32_t>(same - events_.begin());
  if (same == events_.end()) {
    events_.push_back(event);
    periods_.emplace_back();
  }
  return number;
}

// In the order of the recording.
void Tables::add_events(const Profile& profile) {
  std::vector<bool> has_samples(profile.events.size());
  for (const auto& sample : profile.samples) {
    has_samples[sample.event] = true;
  }
  for (std::size_t i = 0; i < has_samples.size(); ++i) {
    if (has_samples[i]) {
      event(profile.events[i]);
    }
  }
}

std::uint32_t Tables::thread(const report::Thread& thread) {
  const auto [entry, fresh] =
      thread_numbers_.try_emplace({thread.pid, thread.tid, thread.name}, threads_.size());
  if (fresh) {
    threads_.push_back(thread);
  }
  return entry->second;
}

std::uint32_t Tables::use(std::string_view name) {
  const auto number = static_cast<std::uint32_t>(std::ranges::find(uses_, name) - uses_.begin());
  if (number == uses_.size()) {
    uses_.push_back(name);
  }
  return number;
}

std::uint32_t Tables::function(const Profile& profile, std::uint32_t number, Numbers& known) {
  if (known.functions[number] == kNone) {
    auto made = page_function(profile, profile.functions[number]);
    if (const auto moved = moved_.find(key_of(made)); moved != moved_.end()) {
      made.file = std::get<2>(moved->second);
    }
    const auto [entry, fresh] = function_numbers_.try_emplace(made, functions_.size());
    if (fresh) {
      functions_.push_back(std::move(made));
      parts_.push_back(known.parts[number]);
    }
    known.functions[number] = entry->second;
  }
  return known.functions[number];
}

std::uint32_t Tables::frame(std::uint32_t function, std::uint32_t line) {
  const auto [number, fresh] = frame_numbers_.try_emplace(function, line, frames_.size());
  if (fresh) {
    frames_.push_back({.function = function, .line = line});
  }
  return number;
}

std::uint32_t Tables::node(const Profile& profile, std::uint32_t number, Numbers& known) {
  std::vector<std::uint32_t> path;
  for (; known.nodes[number] == kNone; number = profile.nodes[number].caller) {
    path.push_back(number);
  }
  auto result = known.nodes[number];
  for (; !path.empty(); path.pop_back()) {
    const auto& inner = profile.frames[profile.nodes[path.back()].frame];
    const auto number_of_frame = frame(function(profile, inner.function, known), inner.line);
    const auto [number_in_page, fresh] =
        node_numbers_.try_emplace(result, number_of_frame, nodes_.size());
    if (fresh) {
      nodes_.push_back({.caller = result, .frame = number_of_frame});
    }
    result = number_in_page;
    known.nodes[path.back()] = result;
  }
  return result;
}

std::size_t Tables::match_moved(const Profile& before) {
  std::vector<FunctionKey> old;
  std::vector<FunctionKey> now;
  std::ranges::transform(before.functions, std::back_inserter(old), [&](const auto& function) {
    return key_of(page_function(before, function));
  });
  std::ranges::transform(functions_, std::back_inserter(now), key_of);
  moved_ = moved_functions(old, now);
  return moved_.size();
}

void Tables::add(const Profile& profile, bool old) {
  if (profile.samples.empty()) {
    return;
  }
  Numbers known{.parts = report::parts_of(profile),
                .functions = std::vector(profile.functions.size(), kNone),
                .nodes = std::vector(profile.nodes.size(), kNone)};
  known.nodes[0] = 0;
  add_events(profile);
  const auto [first, last] = std::ranges::minmax(profile.samples, {}, &report::Sample::time);
  cell_ = std::max(cell_, (last.time - first.time) / kMostCells + 1);
  report::Uses uses{profile};
  for (const auto& sample : profile.samples) {
    auto& [sum, count] = periods_[event(profile.events[sample.event])].at(old ? 1 : 0);
    sum += sample.period;
    ++count;
    samples_.push_back({.cell = sample.time - first.time,
                        .thread = thread(profile.threads[sample.thread]),
                        .event = event(profile.events[sample.event]),
                        .stack = node(profile, sample.stack, known),
                        .use = use(uses.of(sample)),
                        .old = old,
                        .weight = weight_of(profile, sample)});
  }
}

void Tables::merge() {
  for (auto& sample : samples_) {
    sample.cell = sample.old ? 0 : sample.cell / cell_;
  }
  std::ranges::sort(samples_, {}, &PageSample::key);
  std::size_t kept = 0;
  for (const auto& sample : samples_) {
    if (kept > 0 && samples_[kept - 1].key() == sample.key()) {
      samples_[kept - 1].weight += sample.weight;
    } else {
      samples_[kept++] = sample;
    }
  }
  samples_.resize(kept);
}

void Tables::append_functions(std::string& out) const {
  out += R"("functions":{"kind":)";
  append_numbers(out, functions_,
                 [](const PageFunction& one) { return static_cast<int>(one.kind); });
  out += R"(,"part":)";
  append_numbers(out, parts_, [](report::Part one) { return static_cast<int>(one); });
  out += R"(,"name":)";
  append_list(out, functions_, [&](const PageFunction& one) { out += json_string(one.name); });
  out += R"(,"file":)";
  append_list(out, functions_, [&](const PageFunction& one) { out += json_string(one.file); });
  out += R"(},"frames":{"function":)";
  append_numbers(out, frames_, [](const report::Frame& one) { return one.function; });
  out += R"(,"line":)";
  append_numbers(out, frames_, [](const report::Frame& one) { return one.line; });
  out += R"(},"nodes":{"frame":)";
  append_numbers(out, nodes_, [](const Node& one) { return one.frame; });
  out += R"(,"back":)";  // distance to the caller; compresses better
  append_numbers(out, nodes_, [this](const Node& one) {
    return static_cast<std::uint32_t>(&one - nodes_.data()) - one.caller;
  });
  out += "},";
}

void Tables::append_samples(std::string& out) const {
  out += R"("samples":{"cell":)";  // distance to that of the sample before
  append_numbers(out, samples_, [this](const PageSample& one) {
    const auto* before = &one == samples_.data() ? nullptr : &one - 1;
    return static_cast<std::int64_t>(one.cell) -
           static_cast<std::int64_t>(before == nullptr ? 0 : before->cell);
  });
  out += R"(,"thread":)";
  append_numbers(out, samples_, [](const PageSample& one) { return one.thread; });
  out += R"(,"event":)";
  append_numbers(out, samples_, [](const PageSample& one) { return one.event; });
  out += R"(,"stack":)";
  append_numbers(out, samples_, [](const PageSample& one) { return one.stack; });
  out += R"(,"use":)";
  append_numbers(out, samples_, [](const PageSample& one) { return one.use; });
  out += R"(,"weight":)";
  append_numbers(out, samples_, [](const PageSample& one) { return one.weight; });
  out += R"(,"old":)";
  append_numbers(out, samples_, [](const PageSample& one) { return one.old ? 1 : 0; });
  out += '}';
}

std::string Tables::json(const FlamegraphOptions& options, const std::vector<std::string>& notes,
                         bool compares) const {
  std::string out =
      fmt::format(R"({{"title":{},"facts":{},"lead":{},"cell":{},"compares":{},"notes":)",
                  json_string(options.title), json_string(options.facts), json_string(options.lead),
                  static_cast<double>(cell_) / 1e9, compares);
  append_list(out, notes, [&](const std::string& one) { out += json_string(one); });
  out += R"(,"sources":)";
  append_list(out, options.sources, [&](const PageSource& one) {
    out += fmt::format(R"({{"file":{},"text":{},"note":{}}})", json_string(one.file),
                       json_string(one.text), json_string(one.note));
  });
  out += R"(,"events":)";
  append_list(out, events_, [&](const report::Event& one) {
    const bool waits = one.unit == report::Unit::kWaits;
    const std::string_view unit = waits                              ? "ns"
                                  : one.unit == report::Unit::kCalls ? "calls"
                                  : one.unit == report::Unit::kBytes ? "bytes"
                                                                     : "samples";
    const auto& [now, before] = periods_[static_cast<std::size_t>(&one - events_.data())];
    const bool timed = one.unit == report::Unit::kNanoseconds;
    out += fmt::format(R"({{"name":{},"label":{},"unit":"{}","seconds":{},"before":{}}})",
                       json_string(one.name), json_string(waits ? "Waits" : one.name), unit,
                       timed ? now.mean() : 0, timed ? before.mean() : 0);
  });
  out += R"(,"threads":)";
  append_list(out, threads_, [&](const report::Thread& one) {
    out +=
        fmt::format(R"({{"pid":{},"tid":{},"name":{}}})", one.pid, one.tid, json_string(one.name));
  });
  out += R"(,"uses":)";
  append_list(out, uses_, [&](std::string_view one) { out += fmt::format(R"("{}")", one); });
  out += ',';
  append_functions(out);
  append_samples(out);
  out += '}';
  return out;
}

}  // namespace

std::string flamegraph(const Profile& profile, const Profile* before,
                       const FlamegraphOptions& options) {
  Tables tables;
  tables.add(profile, false);
  auto notes = profile.notes;
  if (before != nullptr) {
    if (const auto moved = tables.match_moved(*before); moved != 0) {
      notes.push_back(
          fmt::format("{} in the older recording: matched by name and the end of the path",
                      base::counted(moved, "function has its file in another directory",
                                    "functions have their files in other directories")));
    }
    tables.add(*before, true);
  }
  tables.merge();
  const auto data = base64(deflated(tables.json(options, notes, before != nullptr)));
  return fmt::format("{}{}{}", kFlamegraphPageBegin, data, kFlamegraphPageEnd);
}

}  // namespace pyinject::exports
