// Options that take effect when a recorded file is completed. The options of every step on the way
// there, from the command line on, contain this struct.
#pragma once

namespace pyinject::weave {

struct WeaveFlags {
  // Put the lines of Python frames into their names: "py::f:file:12".
  bool lines = false;
  // Whole Python stacks (of the BPF engine) get a frame at their root that says what their thread
  // has to do with the GIL, and one with the name of the asyncio task that ran.
  bool gil = false;
  bool tasks = false;
  // Also sample threads that stop running. The period of such a sample is the time until its thread
  // runs again, in nanoseconds; needs the records of perf's --switch-events.
  bool off_cpu = false;
  // Keep perf's own file as NAME.raw.
  bool keep_raw = false;
};

}  // namespace pyinject::weave
