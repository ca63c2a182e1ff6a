// What the recorder reads of the process itself, without stopping it.
#include "base/clock.hpp"
#include "inspect/connection.hpp"
#include "inspect/process_files.hpp"
#include "procfs/cgroup.hpp"
#include "procfs/descriptors.hpp"
#include "procfs/executable.hpp"
#include "procfs/sockets.hpp"
#include "procfs/stat.hpp"
#include "why/event_loop.hpp"
#include "why/recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iterator>
#include <string_view>
#include <utility>

namespace pyinject::why {

namespace {

// What CALL waits for; empty: it is not known.
std::string awaited_by(const inspect::DescribedCall& call) {
  if (const auto peer = inspect::peer_of(call.file); !peer.empty()) {
    return std::string{peer};
  }
  const bool for_child = call.name.starts_with("wait") && !call.arguments.empty();
  return for_child ? call.arguments.front() : call.file.starts_with('/') ? call.file : "";
}

bool is_blocked(const inspect::ThreadSnapshot& thread) {
  return !thread.ran_meanwhile && (thread.activity == inspect::Activity::kSleeping ||
                                   thread.activity == inspect::Activity::kUninterruptible);
}

bool runs_hub(const python::SuspendedGreenlet& greenlet) {
  return std::ranges::any_of(greenlet.frames, [](const auto& frame) {
    return is_hub(frame.names.qualname, frame.names.file);
  });
}

}  // namespace

void Recorder::look_at_descendants() {
  recording_.descendants = procfs::read_descendants_usage(target_.id.pid);
  recording_.descendants.on_cpu = std::max<std::chrono::nanoseconds>(
      recording_.descendants.on_cpu - at_begin_.descendants.on_cpu, std::chrono::nanoseconds{0});
  for (auto& [pid, on_cpu] : recording_.descendants.living) {
    const auto before = at_begin_.descendants.living.find(pid);
    on_cpu -= before == at_begin_.descendants.living.end() ? std::chrono::nanoseconds{0}
                                                           : std::min(before->second, on_cpu);
  }
  const auto own = procfs::executable_of(target_.id.pid);
  for (const auto& [pid, on_cpu] : recording_.descendants.living) {
    recording_.workers += own && procfs::executable_of(pid) == own ? 1 : 0;
  }
}

std::uint32_t Recorder::stack_of(const std::vector<inspect::Frame>& frames) {
  Lines lines;
  lines.reserve(frames.size());
  for (const auto& frame : frames) {
    lines.push_back({.function = recording_.names.number(frame.function),
                     .file = recording_.names.number(frame.file),
                     .line = frame.line});
  }
  return recording_.stacks.number(std::move(lines));
}

void Recorder::add_thread(const inspect::ThreadSnapshot& thread) {
  auto& name = recording_.threads[static_cast<std::uint32_t>(thread.tid.value())].name;
  if (!thread.python_name.empty()) {
    name = thread.python_name;
  } else if (name.empty()) {  // an exiting thread has lost its Python name
    name = thread.name;
  }
}

void Recorder::add_sighting(const inspect::ProcessSnapshot& process,
                            const inspect::ThreadSnapshot& thread, std::uint64_t time) {
  const std::vector<std::string_view> functions{thread.kernel.begin(), thread.kernel.end()};
  const auto found = kernel_work(functions);
  Sighting sighting{.time = time,
                    .tid = static_cast<std::uint32_t>(thread.tid.value()),
                    .work = found.use,
                    .gil = thread.gil,
                    .stack = stack_of(thread.frames)};
  if (!functions.empty()) {
    sighting.place =
        recording_.names.number(functions[found.use == Use::kUnknown ? 0 : found.function]);
  }
  if (thread.call) {
    sighting.awaited = recording_.names.number(awaited_by(*thread.call));
    const std::string_view file = thread.call->file;
    sighting.unnamed = file == "UNIX";
    sighting.connected = !inspect::peer_of(file).empty();
    sighting.by_client = listening_.accepted(file);
  }
  if (thread.wait) {
    sighting.object =
        python::is_lock(thread.wait->kind) ? Sighting::Object::kLock : Sighting::Object::kThread;
    sighting.object_class = recording_.names.number(thread.wait->object);
    sighting.object_name =
        recording_.names.number(fmt::format("{} {:#x}", thread.wait->object, thread.wait->address));
    const auto owner = thread.wait->owner;
    sighting.owner = owner ? static_cast<std::uint32_t>(owner->value()) : 0;
    const auto at = std::ranges::find_if(
        process.threads, [&](const auto& each) { return owner && each.tid == *owner; });
    sighting.owner_stack = at == process.threads.end() ? 0 : stack_of(at->frames);
  }
  recording_.sightings.push_back(sighting);
}

// That of the innermost function of the program itself.
Line Recorder::own_line(const std::vector<python::AsyncFrame>& frames) {
  const auto own = std::ranges::find_if(frames, [](const auto& frame) {
    return frame.names.file.find("/lib/python3") == std::string::npos;
  });
  const auto& frame = own == frames.end() ? frames.back() : *own;
  return {.function = recording_.names.number(frame.names.qualname),
          .file = recording_.names.number(frame.names.file),
          .line = frame.line};
}

// Takes longer than the buffers of a recording hold.
void Recorder::look_at_greenlets(inspect::ProcessSnapshot process) {
  for (const auto& greenlet : process.greenlets) {
    if (runs_hub(greenlet)) {
      if (greenlet.thread) {
        recording_.threads[static_cast<std::uint32_t>(greenlet.thread->value())].hub = true;
      }
    } else {
      ++recording_.switched_away[own_line(greenlet.frames)];
    }
  }
  recording_.greenlets = std::move(process.greenlets);
  recording_.all_greenlets = process.all_greenlets;
}

void Recorder::look_at_connections() {
  constexpr std::size_t kMost = 4096;
  auto descriptors = procfs::list_descriptors(target_.id.pid).value_or(std::vector<int>{});
  descriptors.resize(std::min(descriptors.size(), kMost));
  inspect::ProcessFiles files{target_.id.pid};
  for (const int descriptor : descriptors) {
    const auto file = files.describe(descriptor);
    const auto peer = inspect::peer_of(file);
    if (!peer.empty() && !listening_.accepted(file)) {
      ++recording_.servers[std::string{peer}];
    }
  }
}

void Recorder::look_at_cpu_limits() {
  for (auto& limit : procfs::read_cpu_limits(target_.id.pid)) {
    const auto before =
        std::ranges::find(at_begin_.limits, limit.cgroup, &procfs::CpuLimit::cgroup);
    limit.throttled -= before == at_begin_.limits.end() ? limit.throttled : before->throttled;
    const auto most =
        recording_.cpu_limit ? recording_.cpu_limit->throttled : std::chrono::nanoseconds{0};
    if (limit.throttled > most) {
      recording_.cpu_limit = std::move(limit);
    }
  }
}

std::optional<inspect::ProcessSnapshot> Recorder::look(const inspect::SnapshotOptions& options) {
  auto process = inspect::take_snapshot(target_.id.pid, &target_, options);
  recording_.executed = procfs::runs_another(target_.id, target_.stack_begin);
  return recording_.executed ? std::nullopt : std::move(process);
}

void Recorder::take_snapshot() {
  const auto before = base::now_by(CLOCK_MONOTONIC);
  const auto process = look({.pace = inspect::Pace::kOften});
  if (!process) {
    return;
  }
  const auto time = before + (base::now_by(CLOCK_MONOTONIC) - before) / 2;
  ++recording_.snapshots;
  if (const auto resident = procfs::read_resident(target_.id.pid)) {
    recording_.resident_kb.push_back(*resident);
  }
  recording_.command = process->command;
  for (const auto& thread : process->threads) {
    add_thread(thread);
    if (is_blocked(thread)) {
      add_sighting(*process, thread, time);
    }
  }
  recording_.awaited.clear();
  for (const auto& task : process->tasks) {
    if (task.state == python::AsyncTask::State::kPending && !task.awaits.empty()) {
      ++recording_.awaited[own_line(task.awaits)];
    }
  }
  for (const auto& deadlock : process->deadlocks) {
    std::vector<std::uint32_t> tids;
    std::ranges::transform(deadlock, std::back_inserter(tids),
                           [](base::Tid tid) { return static_cast<std::uint32_t>(tid.value()); });
    if (deadlocks_.insert(tids).second) {
      recording_.deadlocks.push_back(std::move(tids));
    }
  }
  add_usage();
}

}  // namespace pyinject::why
