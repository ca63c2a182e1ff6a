// What the rows of a live profile are called. Names are not made printable, and their number is
// limited: a program that makes new ones all the time fills no more memory.
#pragma once

#include "base/numbered.hpp"
#include "sample/stack.hpp"

#include <compare>
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

// Functions, threads, processes, tasks: no more of each.
inline constexpr std::size_t kMostNames = 65536;

class Names {
 public:
  enum class TaskKind : std::uint8_t { kTask, kGreenlets };
  // A task, or the greenlets with this name.
  struct Task {
    std::uint32_t pid = 0;
    std::string name;
    TaskKind kind = TaskKind::kTask;
    auto operator<=>(const Task&) const = default;
  };

  // Several numbers may name the same function: known_as() is one of them. If there are too many,
  // the half with the fewest samples is forgotten: a program that makes functions all the time does
  // not take the names of others.
  void add(sample::Code code);
  // IN_USE: whether a row needs the name; those of others are forgotten if there are too many.
  void add_thread(std::uint32_t pid, std::uint32_t tid, std::string name,
                  const std::function<bool(std::uint32_t pid, std::uint32_t tid)>& in_use);
  void add_process(std::uint32_t pid, std::string name,
                   const std::function<bool(std::uint32_t pid)>& in_use);
  // CODE, a number of add(), has so many more samples.
  void count(std::uint64_t code, std::uint32_t samples);
  // The number of the task of STACK, from 1 on, or if IN_GREENLET and there is none, of its
  // greenlet; 0: neither. ON_FORGET: the numbers until now are void, there were too many.
  [[nodiscard]] std::uint64_t task_of(const sample::Stack& stack, bool in_greenlet,
                                      const std::function<void()>& on_forget);

  [[nodiscard]] sample::Frame known_as(sample::Frame frame) const;
  // nullptr: not known.
  [[nodiscard]] const sample::Code* code(std::uint64_t number) const;
  // Empty: not known.
  [[nodiscard]] std::string thread(std::uint32_t pid, std::uint32_t tid) const;
  [[nodiscard]] std::string process(std::uint32_t pid) const;
  [[nodiscard]] const Task& task(std::uint64_t number) const {
    return tasks_.at(static_cast<std::uint32_t>(number) - 1);
  }

 private:
  void forget_codes();
  [[nodiscard]] bool makes_room();
  [[nodiscard]] std::string greenlet_of(const sample::Stack& stack) const;

  struct KnownCode {
    sample::Code code;
    std::uint32_t samples = 0;  // with it, halved each time that names are forgotten
  };
  std::unordered_map<std::uint64_t, KnownCode> codes_;
  // The number of the same function that known_as() tells.
  std::unordered_map<std::uint64_t, std::uint64_t> same_;
  std::map<std::tuple<std::string, std::uint32_t, std::string>, std::uint64_t> numbers_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> threads_;
  std::map<std::uint32_t, std::string> processes_;
  base::Numbered<Task, std::map<Task, std::uint32_t>> tasks_;
  std::uint64_t refused_ = 0;
};

}  // namespace pyinject::live
