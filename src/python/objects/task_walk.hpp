// Walks asyncio's tasks and the coroutines that they wait in. Pure: any memory in, values out.
#pragma once

#include "python/layout/object_layout.hpp"
#include "python/objects/remote_objects.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::python {

// A coroutine, generator or async generator that is not running and has not ended.
struct RawAwait {
  base::RemoteAddress frame;  // of its _PyInterpreterFrame
  base::RemoteAddress code;
  base::RemoteAddress instruction;
  bool operator==(const RawAwait&) const = default;
};

struct RawTask {
  base::RemoteAddress address;
  base::RemoteAddress loop = {};
  // Thread state that owns the list; null: none or unknown (3.12, 3.13).
  base::RemoteAddress thread = {};
  std::uint64_t loop_thread = 0;  // pthread_self() of the thread that runs its loop; 0: unknown
  std::string name = {};
  bool current = false;
  base::RemoteAddress coroutine = {};
  std::vector<RawAwait> awaits = {};  // innermost first; empty while it runs
  base::RemoteAddress waits_for = {};
  std::vector<base::RemoteAddress> awaited_by = {};  // tasks
  // If such a future is what another task waits for, this one awaits it (3.12 and 3.13).
  std::vector<base::RemoteAddress> fulfils = {};
  bool whole = true;  // false: a limit was reached, or a part could not be read
  bool operator==(const RawTask&) const = default;
};

// Where to look for tasks.
struct TaskRoots {
  base::RemoteAddress interpreter;
  std::vector<base::RemoteAddress> threads;  // its thread states
};

struct RawTasks {
  std::vector<RawTask> tasks;
  bool complete = true;  // false: a list could not be read to its end
};

inline constexpr std::size_t kMostTasks = 65536;
inline constexpr std::size_t kMostAwaits = 4096;  // per task
inline constexpr std::size_t kMostAwaiters = 1024;

class TaskWalk {
 public:
  TaskWalk(const RemoteObjects& objects, const TaskLayout& layout)
      : objects_{objects}, layout_{layout} {}

  // The addresses of the tasks of one interpreter, without duplicates, each with the fields THREAD
  // and CURRENT only.
  [[nodiscard]] RawTasks list(const TaskRoots& roots) const;
  enum class Outcome { kRead, kEnded, kNoTask };
  // Fills in the other fields, except for awaited_by in 3.12 and 3.13.
  [[nodiscard]] Outcome read(RawTask& task) const;
  // Sets awaited_by from the other tasks' fields (3.12 and 3.13).
  void derive_awaiters(std::vector<RawTask>& tasks) const;

 private:
  struct Step {
    RawAwait frame;
    std::optional<base::RemoteAddress> next;
  };
  [[nodiscard]] bool follow(base::RemoteAddress head, base::RemoteAddress thread,
                            RawTasks& into) const;
  [[nodiscard]] RawTasks listed(const TaskRoots& roots) const;
  [[nodiscard]] RawTasks registered(const TaskRoots& roots) const;
  void read_awaits(RawTask& task) const;
  [[nodiscard]] bool is_generator(base::RemoteAddress object) const;
  [[nodiscard]] std::optional<Step> step(base::RemoteAddress generator) const;
  [[nodiscard]] bool delegates(std::int8_t state, base::RemoteAddress instruction) const;
  void read_awaiters(RawTask& task) const;
  void read_callbacks(base::RemoteAddress future, RawTask& task) const;
  void read_callback(base::RemoteAddress callback, RawTask& task) const;
  [[nodiscard]] bool is_function(base::RemoteAddress function, std::string_view qualname,
                                 std::string_view file) const;
  [[nodiscard]] bool is_task(base::RemoteAddress object) const;

  const RemoteObjects& objects_;
  const TaskLayout& layout_;
};

// sys.modules[NAME] of INTERPRETER.
[[nodiscard]] std::optional<base::RemoteAddress> find_module(const RemoteObjects& objects,
                                                             base::RemoteAddress interpreter,
                                                             std::string_view name);

}  // namespace pyinject::python
