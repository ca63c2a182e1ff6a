// Numbers for the functions whose names are read from outside.
#pragma once

#include "pyinject/python/stack_reader.hpp"
#include "sample/stack.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyinject::live {

// Limit; all functions get new numbers when it is reached.
inline constexpr std::size_t kMostFunctions = 65536;

// Equal functions of all processes have the same number.
class FunctionNumbers {
 public:
  // Calls RECEIVER for each new number, starting at FIRST.
  FunctionNumbers(std::function<void(sample::Code)> receiver, std::uint32_t first)
      : receiver_{std::move(receiver)}, next_{first} {}

  std::uint32_t of(const python::CodeNames& names) {
    if (numbers_.size() >= kMostFunctions) {
      numbers_.clear();
    }
    const auto [known, fresh] =
        numbers_.try_emplace({names.file, names.first_line, names.qualname}, next_);
    if (fresh) {
      receiver_({.number = next_++,
                 .qualname = names.qualname,
                 .file = names.file,
                 .first_line = names.first_line});
    }
    return known->second;
  }

 private:
  std::function<void(sample::Code)> receiver_;
  std::map<std::tuple<std::string, std::uint32_t, std::string>, std::uint32_t> numbers_;
  std::uint32_t next_;
};

// The numbers of one process's functions, by the serial numbers of its StackReader.
class NumberedFrames {
 public:
  [[nodiscard]] std::vector<sample::Frame> of(const python::ThreadStack& stack,
                                              const python::StackReader& reader,
                                              FunctionNumbers& functions) {
    std::vector<sample::Frame> frames;
    frames.reserve(stack.frames.size());
    for (const auto& frame : stack.frames) {
      if (known_.size() >= kMostFunctions) {
        known_.clear();
      }
      auto [known, fresh] = known_.try_emplace(frame.code_serial, 0);
      if (fresh) {
        if (const auto names = reader.names(frame)) {
          known->second = functions.of(*names);
        }
      }
      frames.push_back({.code = known->second, .line = frame.line});
    }
    return frames;
  }

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> known_;
};

}  // namespace pyinject::live
