// Every sample and every wait that a live view has counted, as a profile for pictures and exports.
#pragma once

#include "report/profile_builder.hpp"
#include "sample/stack.hpp"
#include "sample/use.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

namespace pyinject::live {

class KeptSamples {
 public:
  // Samples and waits; those beyond them are lost. Some 40 bytes each.
  static constexpr std::size_t kMost = std::size_t{4} << 20U;

  // PERIOD: the time that a sample stands for.
  explicit KeptSamples(std::chrono::nanoseconds period) : period_{period} {}

  void name(const sample::Code& code);
  // As Profile::add() and Profile::add_wait(), which ends at NOW, by CLOCK_MONOTONIC.
  void add(const sample::Stack& stack, std::uint64_t count, sample::Use use, bool in_greenlet,
           std::uint64_t now);
  void add_wait(const sample::Stack& stack, std::chrono::nanoseconds length, std::uint64_t now);

  // NAMES_OF: those of a thread and its process. LOST: samples that never came.
  using Names = std::pair<std::string, std::string>;
  [[nodiscard]] report::Profile finish(
      const std::function<Names(std::uint32_t pid, std::uint32_t tid)>& names_of,
      std::uint64_t lost) &&;

 private:
  [[nodiscard]] bool has_room();
  std::uint32_t mark(std::uint32_t caller, const std::string& text);
  std::uint32_t call(std::uint32_t caller, const sample::Frame& frame);
  // The node of STACK's Python functions and marks.
  std::uint32_t stack_of(const sample::Stack& stack, bool in_greenlet);
  std::uint32_t thread_of(const sample::Stack& stack);

  std::chrono::nanoseconds period_;
  report::ProfileBuilder profile_;
  std::uint32_t samples_ =
      profile_.event({.name = "cpu-clock", .unit = report::Unit::kNanoseconds});
  std::uint32_t waits_ = profile_.event({.name = "context-switches", .unit = report::Unit::kWaits});
  std::unordered_map<std::uint64_t, report::Function> functions_;             // by Code::number
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> threads_;  // by pid and tid
  std::size_t kept_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace pyinject::live
