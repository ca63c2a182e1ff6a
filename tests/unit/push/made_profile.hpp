// A profile of three processes: two workers "web" (pids 10, 11), and "job" (12).
#pragma once

#include "pyinject/report/profile.hpp"

namespace pyinject::push {

// handle() of web.py calls memcpy; run() of job.py runs in libpython3.14.
inline report::Profile made_profile() {
  using report::Kind;
  report::Profile profile;
  profile.objects = {{.path = "/usr/lib/libc.so.6", .build_id = "ab12"},
                     {.path = "/opt/lib/libpython3.14.so.1.0"},
                     {.path = "/usr/bin/python3.13"}};
  profile.functions = {{.kind = Kind::kPython, .name = "handle", .file = "/srv/web.py"},
                       {.kind = Kind::kPython, .name = "run", .file = "/srv/job.py"},
                       {.kind = Kind::kNative, .name = "memcpy", .object = 0},
                       {.kind = Kind::kNative, .name = "eval", .object = 1},
                       {.kind = Kind::kNative, .name = "main", .object = 2}};
  profile.frames = {{.function = 0, .line = 7},
                    {.function = 1, .line = 3},
                    {.function = 2},
                    {.function = 3},
                    {.function = 4}};
  profile.nodes = {{},
                   {.caller = 0, .frame = 4},   // 1: main
                   {.caller = 1, .frame = 0},   // 2: main, handle
                   {.caller = 2, .frame = 2},   // 3: main, handle, memcpy
                   {.caller = 0, .frame = 3},   // 4: eval
                   {.caller = 4, .frame = 1}};  // 5: eval, run
  profile.events = {{.name = "cpu-clock", .unit = report::Unit::kNanoseconds}};
  profile.threads = {{.pid = 10, .tid = 10, .name = "web", .process = "web"},
                     {.pid = 11, .tid = 12, .name = "worker", .process = "web"},
                     {.pid = 12, .tid = 12, .name = "job", .process = "job"}};
  profile.samples = {{.time = 1000, .period = 5'000'000, .stack = 3},
                     {.time = 2000, .period = 5'000'000, .stack = 5, .thread = 2},
                     {.time = 3000, .period = 5'000'000, .stack = 2, .thread = 1}};
  return profile;
}

}  // namespace pyinject::push
