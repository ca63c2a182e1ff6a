#include "inspect/core_snapshot.hpp"

#include "base/user_name.hpp"
#include "inspect/core_arguments.hpp"
#include "inspect/core_signal.hpp"
#include "inspect/described_call.hpp"
#include "inspect/python_side.hpp"
#include "procfs/blocked_task.hpp"
#include "python/layout/frame_reading.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <variant>

#include <sys/syscall.h>

namespace pyinject::inspect {

namespace {

CoreOrigin origin_of(const elf::CoreFile& core, const std::string& file) {
  CoreOrigin origin;
  origin.file = file;
  origin.size = core.size();
  origin.expected_size = core.expected_size();
  const auto& notes = core.notes();
  const auto& first = notes.threads.front();
  // A debugger that attached to the process notes its own stop in NT_SIGINFO, but gives no signal.
  if (first.signal != 0) {
    origin.signal = first.signal;
    origin.signal_name = signal_name(first.signal);
    origin.thread = first.tid;
    if (notes.signal && notes.signal->number == first.signal) {
      origin.cause = cause_of(*notes.signal);
    }
  }
  return origin;
}

void describe_process(const CoreImage& image, ProcessSnapshot& process) {
  const auto& noted = image.core().notes().process;
  if (!noted) {
    return;
  }
  process.user = base::user_name(noted->uid);
  const auto arguments = core_arguments(*image.memory(), image.core().notes().auxiliary);
  process.command = arguments.empty() ? noted->arguments + (noted->cut ? "..." : "")
                                      : fmt::format("{}", fmt::join(arguments, " "));
  if (process.command.empty()) {
    process.command = "[" + noted->name + "]";
  }
}

ThreadSnapshot thread_of(const elf::CoreThread& noted, const memory::MemoryReader& memory) {
  ThreadSnapshot thread;
  thread.tid = noted.tid;
  thread.processor = -1;
  thread.activity = Activity::kUnknown;
  if (noted.call) {
    thread.activity = Activity::kSleeping;
    thread.call = describe_call(
        {.number = noted.call->number, .arguments = noted.call->arguments},
        {.memory = memory,
         .file = [](int) { return std::string{}; },
         .now = [](clockid_t) -> std::optional<std::chrono::nanoseconds> { return std::nullopt; }});
  }
  return thread;
}

std::optional<std::uint64_t> core_futex_of(const elf::CoreThread& noted) {
  return noted.call && noted.call->number == SYS_futex ? std::optional{noted.call->arguments[0]}
                                                       : std::nullopt;
}

void match_threads(CoreImage& image, const python::Target& target) {
  const auto prepared = python::prepare_frame_reading(target, image);
  if (const auto* const reading = std::get_if<python::FrameReading>(&prepared)) {
    image.match_threads(reading->layout, target.addresses.runtime);
  }
}

}  // namespace

base::Pid pid_of(const elf::CoreFile& core) {
  const auto& notes = core.notes();
  return notes.process ? notes.process->pid : base::Pid{notes.threads.front().tid.value()};
}

ProcessSnapshot take_core_snapshot(const std::shared_ptr<CoreImage>& image, const std::string& file,
                                   const python::Target* target, bool locals) {
  const auto& core = image->core();
  ProcessSnapshot process;
  process.pid = pid_of(core);
  process.core = origin_of(core, file);
  describe_process(*image, process);
  if (target != nullptr) {
    match_threads(*image, *target);
  }
  const auto memory = image->memory();
  const auto python = python_side_of(target, image, process);
  if (!process.no_stacks.empty() && core.truncated()) {
    process.no_stacks = "the core file is truncated";
  }
  if (python) {
    (void)python->read_stopped();
    if (locals) {
      python->want_locals();
    }
    python->read_objects_stopped();
  }
  std::map<base::Tid, ThreadSnapshot> threads;
  for (const auto& noted : core.notes().threads) {
    auto thread = thread_of(noted, *memory);
    if (thread.tid.value() == process.pid.value() && core.notes().process) {
      thread.name = core.notes().process->name;
    }
    if (python) {
      python->add_frames(thread);
      python->add_gil(thread, core_futex_of(noted));
      // Its thread state may be in the part that is missing.
      thread.complete = thread.complete && !(thread.frames.empty() && core.truncated());
    }
    threads.insert_or_assign(thread.tid, std::move(thread));
  }
  for (auto& [tid, thread] : threads) {
    process.threads.push_back(std::move(thread));
  }
  if (python) {
    python->add_objects(process);
    process.all_tasks = process.all_tasks && !core.truncated();
    process.all_greenlets = process.all_greenlets && !core.truncated();
  }
  return process;
}

}  // namespace pyinject::inspect
