#include "weave/function_names.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <span>
#include <utility>

namespace pyinject::weave {

namespace {

// The highest range that no process uses; user addresses on x86-64 end at 2^47. A file that leaves
// no such range is forged and gets an arbitrary one.
std::uint64_t choose_base(const unwind::AddressSpaces& spaces) {
  constexpr auto kSize = SyntheticNames::kSize;
  constexpr std::uint64_t kHighest = std::uint64_t{0x4000} << 32U;
  std::vector<AddressRange> used;
  std::ranges::transform(spaces.files(), std::back_inserter(used), [](const auto& file) {
    return AddressRange{.begin = file.begin, .end = file.end};
  });
  std::ranges::sort(used, std::greater{}, &AddressRange::end);
  std::uint64_t base = kHighest;
  for (const auto& range : used) {
    if (range.end <= base) {
      break;
    }
    if (range.begin < base + kSize) {
      const auto below = range.begin / kSize * kSize;
      if (below <= kSize) {
        base = kHighest;
        break;
      }
      base = below - kSize;
    }
  }
  return base;
}

}  // namespace

FunctionNames::FunctionNames(const WeaveOptions& options, const RecordingContext& context,
                             RecordedProcesses& processes,
                             std::shared_ptr<base::RecordingBudget> budget, Tally& tally)
    : options_{options},
      context_{context},
      processes_{processes},
      budget_{std::move(budget)},
      tally_{tally},
      synthetic_{choose_base(processes.spaces())} {
  expect_lines();
}

// The places of names in the synthetic range depend on their numbers of lines.
void FunctionNames::expect_lines() {
  const auto expect = [this](const sample::Code& name, std::uint32_t last_line) {
    synthetic_.expect(named_code(name), last_line);
  };
  if (context_.stacks != nullptr && !options_.flags.lines) {
    context_.stacks->each_name(expect);
  }
  if (context_.waits != nullptr && !options_.flags.lines) {
    context_.waits->stacks.each_name(expect);
  }
}

const sample::Code* FunctionNames::name_of(std::uint32_t pid, std::uint64_t code) const {
  if ((code & Waits::kCode) != 0) {
    return context_.waits->stacks.name(pid, code);
  }
  const sample::Code* name = nullptr;
  for (int depth = 0; name == nullptr && depth < kMostAncestors; ++depth) {
    name = context_.stacks->name(pid, code);
    if (const auto* const forked = processes_.forked_by(pid)) {
      pid = forked->pid;
    }
  }
  return name;
}

// The address of its trampoline if it has got one since, so that perf counts both as one function.
// If each sample has its own stack, frames have lines, which a trampoline cannot encode; besides,
// the map may be that of an earlier process with this pid.
SyntheticNames::Place FunctionNames::place_of(const sample::Frame& frame, std::uint32_t pid) {
  const auto* const name = name_of(pid, frame.code);
  if (name == nullptr) {
    return synthetic_.place({.name = "py::[unknown]"});
  }
  auto code = named_code(*name);
  constexpr std::size_t kBesideText = 256;
  if (!budget_->bytes.take(processes_.spaces().family(pid), 3 * code.name.size() + kBesideText)) {
    tally_.drop(pid, Limit::kNames);
    return synthetic_.place({.name = "py::[unknown]"});
  }
  if (options_.flags.lines && frame.line != 0) {
    code.name += fmt::format(":{}", frame.line);
    code.first_line = frame.line;
    return synthetic_.place(code);
  }
  const bool every = context_.stacks != nullptr && context_.stacks->has_every_sample();
  const auto* const trampoline = every ? nullptr : processes_.maps().trampoline(pid, code.name);
  return trampoline != nullptr &&
                 processes_.lies_in_anonymous_code(pid, ~std::uint64_t{0}, trampoline->start)
             ? SyntheticNames::Place::at(trampoline->start + 1)
             : synthetic_.place(code, pid);
}

std::uint64_t FunctionNames::address_of(const sample::Frame& frame, std::uint32_t pid,
                                        std::uint64_t time) {
  const std::tuple key{pid, frame.code, options_.flags.lines ? frame.line : 0};
  auto place = places_.find(key);
  if (place == places_.end()) {
    place = places_.emplace(key, place_of(frame, pid)).first;
  }
  const auto address = place->second.address(frame.line, frame.does);
  if (is_own(address)) {
    return address;
  }
  // A trampoline that is mapped later: that of a program that is executed later may have the same
  // name.
  const auto mapped = processes_.spaces().look_up(pid, time, address);
  const auto* const name = name_of(pid, frame.code);
  return (mapped.file != nullptr && mapped.until != 0) || name == nullptr
             ? place->second.address()
             : synthetic_.place(named_code(*name), pid).address();
}

std::uint64_t FunctionNames::address_of_mark(const std::string& text) {
  return *marks_.insert(synthetic_.address(text)).first;
}

void FunctionNames::note_hit(const SampleWork& work, std::size_t from) {
  // Branch addresses are not parsed.
  all_ = all_ || work.sample.event->samples(PERF_SAMPLE_BRANCH_STACK);
  if (processes_.named().empty()) {
    return;
  }
  processes_.maps().mark_hit(work.sample.pid, work.sample.ip);
  for (auto at = from; at < work.result.size(); ++at) {
    // For a caller, perf looks up the byte before its return address.
    processes_.maps().mark_hit(work.sample.pid, work.result[at]);
    processes_.maps().mark_hit(work.sample.pid, work.result[at] - 1);
  }
}

std::vector<perfdata::BuildId> FunctionNames::finish() {
  std::vector<perfdata::BuildId> ids;
  const auto add = [&](std::uint32_t pid, std::span<const ImageSymbol> symbols,
                       std::span<const AddressRange> ranges) {
    auto image = make_symbol_image(symbols, ranges);
    auto path = options_.image_path(pid);
    ids.push_back({.id = image.build_id, .file = path});
    tally_.summary.images.push_back({.path = std::move(path), .image = std::move(image)});
  };
  for (const auto& [pid, ranges] : processes_.named()) {
    std::vector<ImageSymbol> symbols;
    for (const auto& symbol : all_ ? processes_.maps().of(pid) : processes_.maps().hit(pid)) {
      symbols.push_back(
          {.address = symbol.start, .size = symbol.size, .name = base::printable(symbol.name)});
    }
    if (!symbols.empty()) {
      add(pid, symbols, ranges);
    }
  }
  if (!synthetic_.symbols().empty()) {
    add(0, synthetic_.symbols(), std::array{synthetic_.range()});
  }
  for (const auto& [pid, count] : synthetic_.without_lines()) {
    tally_.drop(pid, Limit::kLines, count);
  }
  return ids;
}

}  // namespace pyinject::weave
