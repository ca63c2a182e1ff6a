// What a snapshot shows of a program's objects: asyncio's tasks, greenlets, the locks that threads
// wait for, the threads' names, and the variables of functions.
//
// For example:
//   if (const auto snapshot = inspect::take_snapshot(pid, &target)) {
//     for (const auto& task : snapshot->tasks) {
//       std::cout << task.name << ": " << python::name(task.state) << '\n';
//     }
//   }
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/python/stack_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::python {

// A thread's name in its program (Thread.name): UTF-8 with every character that the program chose.
struct ThreadName {
  base::Tid tid;
  std::string name;
  bool certain = true;
  // False: the main thread, or a thread that other code started ("Dummy-1").
  bool by_threading = true;
  bool operator==(const ThreadName&) const = default;
};

struct Variable {
  std::string name;
  // As repr() writes it, about 200 characters at most; of an object whose memory does not show its
  // value, its type and address: "<Shop at 0x7f31e8>".
  std::string value;
  bool argument = false;
  bool operator==(const Variable&) const = default;
};

// The variables of a function that have a value, arguments first.
struct Locals {
  std::vector<Variable> variables = {};
  std::size_t left_out = 0;  // further ones
  bool late = false;         // true: they were not read, for lack of time
  bool operator==(const Locals&) const = default;
};

struct AsyncFrame {
  CodeNames names;
  std::uint32_t line = 0;             // 0: unknown
  std::optional<Locals> locals = {};  // nullopt: not asked for, or they changed while being read
  bool operator==(const AsyncFrame&) const = default;
};

// Addresses identify objects as long as they live.
struct AsyncTask {
  enum class State { kPending, kRunning };

  std::uint64_t address = 0;
  std::uint64_t loop = 0;  // its event loop
  // The thread that runs its loop; nullopt: none, or the loop does not say.
  std::optional<base::Tid> thread = {};
  std::string name;  // UTF-8
  State state = State::kPending;
  // Innermost first. A pending task: what it awaits, down to the last coroutine or generator. The
  // running one: the functions on its thread's stack, from the innermost to its coroutine.
  std::vector<AsyncFrame> awaits = {};
  // The future or task that it waits for; 0: none, for example if it is ready to run.
  std::uint64_t waits_for = 0;
  // The tasks that await it, also by means of gather(), wait(), shield() and a TaskGroup. From 3.14
  // on, asyncio keeps them. Before, they come from what tasks wait for and from asyncio's own
  // callbacks, so other kinds of awaiting are missing.
  std::vector<std::uint64_t> awaited_by;
  // False: it changed during every read, or is too long.
  bool certain = true;
  bool operator==(const AsyncTask&) const = default;
};
[[nodiscard]] std::string_view name(AsyncTask::State state);  // "pending"

struct AsyncTasks {
  std::vector<AsyncTask> tasks;
  bool complete = true;  // false: some tasks could not be read
};

// A greenlet that is suspended. The one that runs is on its thread's stack.
struct SuspendedGreenlet {
  std::uint64_t address = 0;
  std::string type;                             // the name of its class: "greenlet.greenlet", "Hub"
  std::vector<AsyncFrame> frames = {};          // innermost first
  std::vector<std::uint64_t> activations = {};  // the addresses of the frames
  std::optional<base::Tid> thread = {};         // nullopt: unknown
  bool certain = true;            // false: it changed during every read, or is too long
  std::size_t outer_certain = 0;  // that many outer frames did not change
  bool operator==(const SuspendedGreenlet&) const = default;
};

struct SuspendedGreenlets {
  std::vector<SuspendedGreenlet> greenlets;
  bool complete = true;  // false: there may be more
};

// An object of a thread that waits for it in acquire(), get(), join() and so on.
struct Wait {
  enum class Kind {
    // CPython does not record its owner. It is known if exactly one thread is inside `with LOCK:`.
    kLock,
    kRLock,
    kCondition,
    kEvent,
    kSemaphore,
    kBarrier,
    kQueue,
    kFuture,  // of concurrent.futures
    kJoin,    // the owner is the joined thread
  };

  base::Tid waiter;
  Kind kind = Kind::kLock;
  std::string object;  // the name of its class: "RLock", "LifoQueue"
  std::uint64_t address = 0;
  // The thread that must act before the wait can end; nullopt: not known.
  std::optional<base::Tid> owner;
  std::uint64_t count = 0;  // kRLock: how many times its owner has acquired it
  // False: it changed during every read.
  bool certain = true;
  bool operator==(const Wait&) const = default;
};

// Whether threads exclude each other by it; by the others, one waits for what another does next.
[[nodiscard]] constexpr bool is_lock(Wait::Kind kind) {
  return kind == Wait::Kind::kLock || kind == Wait::Kind::kRLock || kind == Wait::Kind::kSemaphore;
}

}  // namespace pyinject::python
