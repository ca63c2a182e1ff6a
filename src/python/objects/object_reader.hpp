// Reads asyncio's tasks, the locks that threads wait for, and the threads' names from a target
// while it runs. Nothing is stopped. What changes during each of a few reads is marked as not
// certain.
#pragma once

#include "pyinject/base/deadline.hpp"
#include "pyinject/python/objects.hpp"
#include "pyinject/python/stack_reader.hpp"
#include "pyinject/python/target.hpp"
#include "python/layout/process_image.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::python {

class ObjectReader {
 public:
  // A string says why TARGET's objects cannot be read.
  [[nodiscard]] static std::variant<ObjectReader, std::string> of(const Target& target);
  // The same with TARGET as IMAGE shows it.
  [[nodiscard]] static std::variant<ObjectReader, std::string> of(
      const Target& target, std::shared_ptr<const ProcessImage> image);

  // The names of all threads that the threading module knows, ordered by tid.
  [[nodiscard]] std::vector<ThreadName> thread_names();

  // All tasks of all interpreters that have not ended. Tasks that are not of the type in the module
  // _asyncio are not read. Empty and complete: the target does not use asyncio.
  [[nodiscard]] AsyncTasks tasks();

  // All greenlets of all interpreters that are suspended in Python functions. Empty and complete:
  // the target does not use greenlet.
  // PATIENCE: for a target that runs; nullopt: half a second.
  [[nodiscard]] SuspendedGreenlets greenlets(
      std::optional<std::chrono::milliseconds> patience = std::nullopt);

  // What the threads of STACKS (StackReader) wait for, for those that wait for a known object.
  [[nodiscard]] std::vector<Wait> waits(std::span<const ThreadStack> stacks);

  // Also read the variables of functions, but none after UNTIL. nullopt: none (default). They get
  // into the frames of tasks and greenlets.
  void want_locals(std::optional<base::Deadline> until);
  // Those of each frame of STACK (StackReader).
  [[nodiscard]] std::vector<std::optional<Locals>> locals(const ThreadStack& stack);

  // STEADY: the target is stopped from now on until the next call, so nothing is read twice.
  void set_steady(bool steady);

  ObjectReader(ObjectReader&& other) noexcept;
  ObjectReader& operator=(ObjectReader&& other) noexcept;
  ~ObjectReader();

 private:
  class Impl;
  explicit ObjectReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pyinject::python
