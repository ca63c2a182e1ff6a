// A profile to be exported.
#pragma once

#include "pyinject/export/formats.hpp"
#include "pyinject/report/profile.hpp"

#include <string>
#include <string_view>

namespace pyinject::exports {

// outer() calls inner() at line 7, which calls memcpy and waits; [GIL held] is at the root.
[[nodiscard]] inline report::Profile two_threads() {
  using report::Kind;
  using report::Unit;
  report::Profile profile;
  profile.objects = {{.path = "/usr/lib/libc.so.6", .build_id = "ab12"},
                     {.path = "/usr/bin/python3.15"},
                     {.path = "[kernel.kallsyms]"}};
  profile.functions = {{.kind = Kind::kPython, .name = "outer", .file = "/srv/a.py"},
                       {.kind = Kind::kPython, .name = "Cart.add;<lambda>", .file = "/srv/b 12"},
                       {.kind = Kind::kNative, .name = "memcpy", .object = 0},
                       {.kind = Kind::kNative, .name = "", .object = 1, .address = 0x40},
                       {.kind = Kind::kKernel, .name = "do_idle", .object = 2},
                       {.kind = Kind::kMark, .name = "[GIL held]"},
                       {.kind = Kind::kMark, .name = "[task fetch 1]"}};
  profile.frames = {{.function = 5}, {.function = 0}, {.function = 1, .line = 7},
                    {.function = 2}, {.function = 3}, {.function = 4},
                    {.function = 6}};
  profile.nodes = {{},
                   {.caller = 0, .frame = 0},   // 1: [GIL held]
                   {.caller = 1, .frame = 1},   // 2: outer
                   {.caller = 2, .frame = 2},   // 3: inner
                   {.caller = 3, .frame = 3},   // 4: memcpy
                   {.caller = 0, .frame = 1},   // 5: outer
                   {.caller = 5, .frame = 4},   // 6: python3.15
                   {.caller = 6, .frame = 5},   // 7: do_idle
                   {.caller = 0, .frame = 6},   // 8: [task fetch 1]
                   {.caller = 8, .frame = 1}};  // 9: outer
  profile.events = {{.name = "cpu-clock", .unit = Unit::kNanoseconds},
                    {.name = "context-switches", .unit = Unit::kWaits}};
  profile.threads = {{.pid = 10, .tid = 10, .name = "web", .process = "web"},
                     {.pid = 10, .tid = 11, .name = "worker 3", .process = "web"}};
  profile.samples = {{.time = 1'000'000, .period = 5'000'000, .stack = 4},
                     {.time = 2'000'000, .period = 5'000'000, .stack = 4},
                     {.time = 3'000'000, .period = 700, .stack = 7, .thread = 1, .event = 1},
                     {.time = 4'000'000, .period = 5'000'000, .stack = 9, .thread = 1}};
  profile.notes = {"3 samples were lost"};
  return profile;
}

// One thread, samples of 5 ms: the garbage collector in three, in none, in one that is followed 2
// ms later by one without it; later in one that is preempted for 40 ms, and 1 s later in another
// one. At last, the only sample of an event whose period is not a time.
[[nodiscard]] inline report::Profile collections() {
  using report::Kind;
  using report::Unit;
  report::Profile profile;
  profile.objects = {{.path = "/usr/bin/python3.15"}};
  profile.functions = {{.kind = Kind::kPython, .name = "outer", .file = "/srv/a.py"},
                       {.kind = Kind::kPython, .name = "[gc]"},
                       {.kind = Kind::kNative, .name = "visit_decref", .object = 0}};
  profile.frames = {{.function = 0}, {.function = 1}, {.function = 2}};
  profile.nodes = {{},
                   {.caller = 0, .frame = 0},   // 1: outer
                   {.caller = 1, .frame = 1},   // 2: [gc]
                   {.caller = 2, .frame = 2}};  // 3: visit_decref
  profile.events = {{.name = "cpu-clock", .unit = Unit::kNanoseconds},
                    {.name = "context-switches", .unit = Unit::kWaits},
                    {.name = "page-faults", .unit = Unit::kSamples}};
  profile.threads = {{.pid = 10, .tid = 10, .name = "web", .process = "web"}};
  constexpr std::uint64_t kMillisecond = 1'000'000;
  const auto add = [&](std::uint64_t time, std::uint32_t stack, std::uint32_t event = 0,
                       std::uint64_t period = 5) {
    profile.samples.push_back({.time = time * kMillisecond,
                               .period = period * kMillisecond,
                               .stack = stack,
                               .event = event});
  };
  add(5, 3);
  add(10, 2);
  add(15, 3);
  add(20, 1);
  add(25, 3);
  add(27, 1);
  add(30, 3);
  add(32, 3, 1, 40);
  add(1000, 3);
  add(2000, 3, 2);
  return profile;
}

[[nodiscard]] inline std::string text_of(const report::Profile& profile, std::string_view format) {
  std::string text;
  find_format(format)->write(profile, [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace pyinject::exports
