// A small profile for tests of views.
#pragma once

#include "report/tables.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace pyinject::report {

// main() of the program calls load() of a library, which runs C code of the interpreter and of
// libc.
class MadeProfile : public testing::Test {
 protected:
  MadeProfile() {
    profile.objects = {{.path = "/usr/bin/python3.14"}, {.path = "/lib/libc.so.6"}, {.path = "k"}};
    profile.functions = {{.kind = Kind::kPython, .name = "main", .file = "/srv/app/main.py"},
                         {.kind = Kind::kPython, .name = "load", .file = "/usr/lib/json.py"},
                         {.kind = Kind::kNative, .name = "_PyEval_EvalFrameDefault", .object = 0},
                         {.kind = Kind::kNative, .name = "memcpy", .object = 1},
                         {.kind = Kind::kKernel, .name = "read", .object = 2},
                         {.kind = Kind::kMark, .name = "[GIL held]"},
                         {.kind = Kind::kMark, .name = "[task fetch]"}};
    profile.frames = {{.function = 0, .line = 3},
                      {.function = 1, .line = 7},
                      {.function = 2},
                      {.function = 3},
                      {.function = 4},
                      {.function = 5},
                      {.function = 6},
                      {.function = 1, .line = 8}};
    profile.nodes = {{},
                     {.caller = 0, .frame = 0},    // 1: main
                     {.caller = 1, .frame = 2},    // 2: evaluator
                     {.caller = 2, .frame = 1},    // 3: load, line 7
                     {.caller = 3, .frame = 2},    // 4: evaluator
                     {.caller = 4, .frame = 3},    // 5: memcpy
                     {.caller = 2, .frame = 7},    // 6: load, line 8
                     {.caller = 6, .frame = 4},    // 7: read
                     {.caller = 0, .frame = 3},    // 8: memcpy, no Python
                     {.caller = 0, .frame = 5},    // 9: [GIL held]
                     {.caller = 9, .frame = 0},    // 10: main
                     {.caller = 0, .frame = 6},    // 11: [task fetch]
                     {.caller = 11, .frame = 0}};  // 12: main
    profile.events = {{.name = "context-switches", .unit = Unit::kWaits},
                      {.name = "cpu-clock", .unit = Unit::kNanoseconds}};
    profile.threads = {{.pid = 5, .tid = 5, .name = "web", .process = "web"},
                       {.pid = 5, .tid = 6, .name = "io", .process = "web"}};
  }
  void add(std::uint32_t stack, int times, std::uint32_t thread = 0) {
    for (int i = 0; i < times; ++i) {
      profile.samples.push_back({.time = profile.samples.size() * 1'000'000'000,
                                 .period = 10,
                                 .stack = stack,
                                 .thread = thread,
                                 .event = 1});
    }
  }
  void wait(std::uint32_t stack, std::uint64_t nanoseconds) {
    profile.samples.push_back({.period = nanoseconds, .stack = stack, .event = 0});
  }
  static std::vector<std::uint64_t> figures(const Row& row) {
    const auto& counts = row.counts;
    return {counts.self(), counts.python, counts.native, counts.kernel, counts.total};
  }
  Profile profile;
};

}  // namespace pyinject::report
