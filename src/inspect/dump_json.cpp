#include "pyinject/inspect/dump_json.hpp"

#include "base/text.hpp"
#include "inspect/frame_json.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>

namespace pyinject::inspect {

namespace {

using base::printable;
using nlohmann::ordered_json;

ordered_json json_of(const DescribedCall& call) {
  ordered_json one;
  one["number"] = call.number;
  one["name"] = call.name;
  one["arguments"] = ordered_json::array();
  for (const auto& argument : call.arguments) {
    one["arguments"].push_back(printable(argument));
  }
  one["fd"] = call.descriptor ? ordered_json(*call.descriptor) : ordered_json{};
  one["file"] = text_or_null(call.file);
  return one;
}

const char* name_of(sample::Gil state) {
  switch (state) {
    case sample::Gil::kNone:
      return "none";
    case sample::Gil::kHeld:
      return "held";
    case sample::Gil::kWaitedFor:
      return "awaited";
    case sample::Gil::kUnknown:
      break;
  }
  return nullptr;
}

std::string hexadecimal(std::uint64_t address) { return fmt::format("0x{:x}", address); }

ordered_json json_of(const python::Wait& wait) {
  ordered_json one;
  one["object"] = printable(wait.object);
  one["address"] = hexadecimal(wait.address);
  one["owner"] = wait.owner ? ordered_json(wait.owner->value()) : ordered_json{};
  one["owner_is_inferred"] = wait.owner && wait.kind == python::Wait::Kind::kLock;
  return one;
}

ordered_json json_of(const python::AsyncTask& task, const ProcessSnapshot& process) {
  ordered_json one;
  one["id"] = hexadecimal(task.address);
  one["name"] = printable(task.name);
  one["state"] = python::name(task.state);
  one["loop"] = hexadecimal(task.loop);
  one["tid"] = task.thread ? ordered_json(task.thread->value()) : ordered_json{};
  one["frames"] = frames_json(task.awaits);
  one["awaited_by"] = ordered_json::array();
  for (const auto awaiter : task.awaited_by) {
    one["awaited_by"].push_back(hexadecimal(awaiter));
  }
  one["certain"] = task.certain;
  const auto same_await = process.same_await.find(task.address);
  one["same_await_seconds"] =
      same_await == process.same_await.end()
          ? ordered_json{}
          : ordered_json(std::chrono::duration<double>{same_await->second}.count());
  return one;
}

ordered_json json_of(const python::SuspendedGreenlet& greenlet) {
  ordered_json one;
  one["id"] = hexadecimal(greenlet.address);
  one["type"] = printable(greenlet.type);
  one["tid"] = greenlet.thread ? ordered_json(greenlet.thread->value()) : ordered_json{};
  one["frames"] = frames_json(greenlet.frames);
  one["certain"] = greenlet.certain;
  return one;
}

ordered_json json_of(const Frame& frame) {
  auto one = frame_json(frame.native ? "native" : "python", frame.function, frame.file, frame.line);
  add_locals(one, frame.locals);
  if (frame.native) {
    one["address"] = hexadecimal(frame.address);
  }
  return one;
}

ordered_json json_of(const ThreadSnapshot& thread) {
  ordered_json one;
  one["tid"] = thread.tid.value();
  one["python_id"] = thread.python ? ordered_json(thread.python_id) : ordered_json{};
  one["name"] = printable(thread.name);
  one["python_name"] = text_or_null(thread.python_name);
  one["interpreters"] = thread.interpreters;
  one["state"] = name(thread.activity);
  one["cpu"] = thread.processor < 0 ? ordered_json{} : ordered_json(thread.processor);
  const auto* const gil = name_of(thread.gil);
  one["gil"] = gil != nullptr ? ordered_json(gil) : ordered_json{};
  one["gil_holder"] = thread.gil_holder ? ordered_json(thread.gil_holder->value()) : ordered_json{};
  one["system_call"] = thread.call ? json_of(*thread.call) : ordered_json{};
  one["waits_for"] = thread.wait ? json_of(*thread.wait) : ordered_json{};
  one["kernel"] = ordered_json::array();
  for (const auto& function : thread.kernel) {
    one["kernel"].push_back(printable(function));
  }
  one["ran_meanwhile"] = thread.ran_meanwhile;
  one["frames"] = ordered_json::array();
  for (const auto& frame : thread.frames) {
    one["frames"].push_back(json_of(frame));
  }
  one["settled"] = thread.settled && !thread.unreadable;
  one["complete"] = thread.complete && !thread.unreadable;
  one["native_missing"] = text_or_null(thread.native_missing);
  return one;
}

ordered_json json_of(const CoreOrigin& core) {
  ordered_json one;
  one["file"] = printable(core.file);
  one["size"] = core.size;
  one["expected_size"] = core.expected_size;
  one["truncated"] = core.truncated();
  one["signal"] = core.signal == 0 ? ordered_json{} : ordered_json(core.signal);
  one["signal_name"] = text_or_null(core.signal_name);
  one["cause"] = text_or_null(core.cause);
  one["tid"] = core.thread ? ordered_json(core.thread->value()) : ordered_json{};
  return one;
}

ordered_json json_of(const DumpedProcess& process) {
  ordered_json one;
  one["pid"] = process.pid.value();
  const auto snapshot = process.snapshot.value_or(ProcessSnapshot{});
  one["core"] = snapshot.core ? json_of(*snapshot.core) : ordered_json{};
  one["user"] = text_or_null(snapshot.user);
  one["version"] =
      snapshot.version ? ordered_json(python::to_string(*snapshot.version)) : ordered_json{};
  one["interpreter"] = text_or_null(snapshot.interpreter);
  one["command"] = text_or_null(snapshot.command);
  one["stopped"] = snapshot.stopped;
  one["stopped_us"] = nullptr;
  if (snapshot.stopped_for) {
    one["stopped_us"] =
        std::chrono::duration_cast<std::chrono::microseconds>(*snapshot.stopped_for).count();
  }
  one["main_thread_exited"] = snapshot.main_thread_exited;
  one["reason"] = nullptr;
  one["found"] = text_or_null(snapshot.no_stacks);
  one["no_locals"] = text_or_null(snapshot.no_locals);
  one["remedy"] = nullptr;
  if (process.refusal) {
    one["reason"] = python::name(process.refusal->reason);
    one["found"] = printable(process.refusal->found);
    one["remedy"] = printable(process.refusal->remedy);
  }
  one["threads"] = ordered_json::array();
  for (const auto& thread : snapshot.threads) {
    if (thread.shown) {
      one["threads"].push_back(json_of(thread));
    }
  }
  one["deadlocks"] = ordered_json::array();
  for (const auto& members : snapshot.deadlocks) {
    auto tids = ordered_json::array();
    for (const auto tid : members) {
      tids.push_back(tid.value());
    }
    one["deadlocks"].push_back(std::move(tids));
  }
  one["tasks"] = ordered_json::array();
  for (const auto& task : snapshot.tasks) {
    one["tasks"].push_back(json_of(task, snapshot));
  }
  one["all_tasks"] = snapshot.all_tasks;
  one["greenlets"] = ordered_json::array();
  for (const auto& greenlet : snapshot.greenlets) {
    one["greenlets"].push_back(json_of(greenlet));
  }
  one["all_greenlets"] = snapshot.all_greenlets;
  return one;
}

}  // namespace

std::string to_json(const std::vector<DumpedProcess>& processes, JsonForm form) {
  ordered_json all;
  all["version"] = 1;
  all["processes"] = ordered_json::array();
  for (const auto& process : processes) {
    all["processes"].push_back(json_of(process));
  }
  constexpr int kIndent = 2;
  return all.dump(form == JsonForm::kLine ? -1 : kIndent) + "\n";
}

}  // namespace pyinject::inspect
