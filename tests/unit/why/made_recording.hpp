// Recordings for tests, made of words.
#pragma once

#include "pyinject/sample/states.hpp"
#include "why/accounting.hpp"
#include "why/recording.hpp"

#include <cstdint>
#include <initializer_list>
#include <string>

namespace pyinject::why {

// Times are in milliseconds from the start of the recording.
struct MadeRecording {
  static constexpr std::uint64_t kBegin = 1'000'000'000;
  static constexpr std::uint64_t kMs = 1'000'000;

  explicit MadeRecording(std::uint64_t length = 100) {
    recording.pid = 7;
    recording.begin = kBegin;
    recording.end = kBegin + length * kMs;
    recording.kernel_names = true;
    recording.at_begin = recording.at_end = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  }

  static std::uint64_t at(std::uint64_t ms) { return kBegin + ms * kMs; }

  void thread(std::uint32_t tid, const std::string& name) { recording.threads[tid].name = name; }
  // FUNCTIONS: innermost first, all in FILE.
  std::uint32_t stack(std::initializer_list<std::string> functions,
                      const std::string& file = "/srv/app.py") {
    Lines lines;
    for (const auto& function : functions) {
      lines.push_back({.function = recording.names.number(function),
                       .file = recording.names.number(file),
                       .line = static_cast<std::uint32_t>(10 + lines.size())});
    }
    return recording.stacks.number(std::move(lines));
  }
  void event(std::uint32_t tid, std::uint64_t ms, Event::Kind kind) {
    recording.events.push_back({.time = at(ms), .tid = tid, .kind = kind});
  }
  void in(std::uint32_t tid, std::uint64_t ms) { event(tid, ms, Event::Kind::kIn); }
  void sample(std::uint32_t tid, std::uint64_t ms, CodeKind code, std::uint32_t stack = 0,
              sample::Gil gil = sample::Gil::kHeld) {
    recording.events.push_back(
        {.time = at(ms), .tid = tid, .kind = Event::Kind::kSample, .code = code});
    recording.python.push_back({.time = at(ms), .tid = tid, .stack = stack, .gil = gil});
  }
  // A sample of a function with a Python stack that DOES that.
  PythonStack& sample_of(std::uint32_t tid, std::uint64_t ms, CodeKind code, sample::Does does) {
    sample(tid, ms, code);
    recording.python.back().does = does;
    return recording.python.back();
  }
  // Leaves the CPU.
  void out(std::uint32_t tid, std::uint64_t ms, Use work, std::uint32_t stack = 0,
           sample::Gil gil = sample::Gil::kNone) {
    recording.events.push_back(
        {.time = at(ms) - 1, .tid = tid, .kind = Event::Kind::kLeaves, .work = work});
    recording.python.push_back({.time = at(ms) - 1, .tid = tid, .stack = stack, .gil = gil});
    event(tid, ms, Event::Kind::kOut);
  }
  // WAKER: 0: not a thread of this process.
  void wakeup(std::uint32_t tid, std::uint64_t ms, std::uint32_t waker, std::uint32_t stack) {
    recording.events.push_back(
        {.time = at(ms), .tid = tid, .kind = Event::Kind::kWakeup, .waker = waker});
    if (waker != 0) {
      recording.wakers.push_back({.time = at(ms), .tid = waker, .stack = stack});
    }
  }
  Sighting& sighting(std::uint32_t tid, std::uint64_t ms, Use work, std::uint32_t stack = 0) {
    recording.sightings.push_back({.time = at(ms), .tid = tid, .work = work, .stack = stack});
    return recording.sightings.back();
  }

  Recording recording;
};

// In milliseconds.
inline std::uint64_t time_of(const ThreadAccount& account, Use use) {
  return account.times.at(static_cast<std::size_t>(use)) / MadeRecording::kMs;
}

}  // namespace pyinject::why
