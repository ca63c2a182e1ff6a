#include "pyinject/fake/detector.hpp"

#include "procfs/stat.hpp"

namespace pyinject::fake {

namespace {

python::Refused refused(python::Reason reason) {
  return {.refusal = {.reason = reason, .found = "the test says so", .remedy = {}},
          .version = {},
          .interpreter = {},
          .frame_pointers = {}};
}

}  // namespace

python::Detection Detector::detect(base::Pid pid, const base::Cancellation& cancellation) {
  if (cancellation.stopped()) {
    return refused(python::Reason::kNotExamined);
  }
  if (const auto refusal = refusals.find(pid); refusal != refusals.end()) {
    return refused(refusal->second);
  }
  if (only && !only->contains(pid)) {
    return refused(python::Reason::kNotPython);
  }
  const auto stat = procfs::read_stat(pid);
  python::Target target;
  target.id = {.pid = pid, .start_time = stat ? stat->start_time : 0};
  target.stack_begin = stat ? stat->stack_begin : base::RemoteAddress{};
  target.version = version;
  target.frame_pointers = frame_pointers;
  target.interpreter = "/usr/bin/python3";
  if (const auto state = states.find(pid); state != states.end()) {
    target.state = state->second;
  }
  if (const auto owner = owners.find(pid); owner != owners.end()) {
    target.owner = owner->second;
  }
  return target;
}

std::optional<bool> Detector::known_verdict(const procfs::FileIdentity& /*file*/) {
  return std::nullopt;
}

bool Detector::may_hold_interpreter(base::Pid /*pid*/, const procfs::FileIdentity& /*file*/,
                                    const std::string& path,
                                    const base::Cancellation& /*cancellation*/) {
  return path.find("python") != std::string::npos;
}

}  // namespace pyinject::fake
