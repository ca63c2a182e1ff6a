// The Python side of a snapshot: stacks, the GIL, names, locks and tasks of a target, which runs,
// is stopped, or is in a core file.
#pragma once

#include "inspect/gil_view.hpp"
#include "memory/process_memory.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/inspect/snapshot.hpp"
#include "pyinject/python/stack_reader.hpp"
#include "pyinject/python/target.hpp"
#include "python/layout/process_image.hpp"
#include "python/layout/runtime_layout.hpp"
#include "python/objects/object_reader.hpp"
#include "python/stacks/live_stacks.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::inspect {

// The thread is on a processor or waits for one.
[[nodiscard]] bool runs(Activity activity);

class PythonSide {
 public:
  // A string says why its stacks cannot be read.
  [[nodiscard]] static std::variant<std::unique_ptr<PythonSide>, std::string> of(
      const python::Target& target, std::shared_ptr<const python::ProcessImage> image);

  PythonSide(std::shared_ptr<const python::ProcessImage> image,
             std::unique_ptr<python::LiveStacks> stacks, const python::RuntimeLayout& layout,
             const python::Target& target);

  // Reads the stacks of TIDS, or of all threads without TIDS, and then who holds the GIL.
  void read(std::span<const base::Tid> tids);
  // The same for all threads, which are stopped. False: a stack is of a moment at which it cannot
  // be read.
  [[nodiscard]] bool read_stopped();
  void add_frames(ThreadSnapshot& thread) const;
  // FUTEX: the one that THREAD waits for.
  void add_gil(ThreadSnapshot& thread, std::optional<std::uint64_t> futex) const;
  // Whether TID has no GIL, and another thread may have one that TID needs.
  [[nodiscard]] bool may_want_gil(base::Tid tid) const;
  // From now on, the variables of functions belong to what is read of objects.
  void want_locals() { wants_locals_ = true; }
  // Reads what is in Python's objects: names, locks, tasks. STEADY: whether a thread has not run
  // since its stack was read.
  void read_objects(const std::function<bool(base::Tid)>& steady);
  // Walks the lists of the garbage collector, if the process has greenlets.
  void read_greenlets();
  // The same for all threads, which are stopped.
  void read_objects_stopped();
  // Adds what was read.
  void add_objects(ProcessSnapshot& process);
  // Makes THREADS, which were read at different moments, agree on the latest holder.
  void settle_gil(std::map<base::Tid, ThreadSnapshot>& threads) const;

 private:
  struct Stack {
    std::vector<Frame> frames;
    bool settled = true;
    bool complete = true;
    bool unreadable = false;
    [[nodiscard]] bool good() const { return settled && !unreadable; }
  };
  void take(const std::vector<python::ThreadStack>& stacks);
  void read_locals(std::chrono::nanoseconds patience);
  void read_objects(const std::function<bool(base::Tid)>& steady,
                    std::chrono::nanoseconds patience_for_locals);
  [[nodiscard]] std::vector<base::Tid> not_good() const;

  std::shared_ptr<const python::ProcessImage> image_;
  std::unique_ptr<memory::MemoryReader> memory_;
  python::RuntimeLayout layout_;
  std::unique_ptr<python::LiveStacks> reader_;
  GilView gils_;
  std::optional<python::ObjectReader> objects_;  // nullopt: unreadable
  std::string no_objects_;                       // why
  std::vector<python::ThreadName> names_;
  std::vector<python::Wait> waits_;
  python::AsyncTasks tasks_;
  python::SuspendedGreenlets greenlets_;
  std::map<base::Tid, Stack> stacks_;
  std::map<base::Tid, python::ThreadStack> raw_stacks_;  // the same
  bool wants_locals_ = false;
  std::map<base::Tid, std::vector<std::optional<python::Locals>>> locals_;  // of their frames
};

// Nullptr: PROCESS says why there are no Python stacks, or there is no TARGET.
[[nodiscard]] std::unique_ptr<PythonSide> python_side_of(
    const python::Target* target, std::shared_ptr<const python::ProcessImage> image,
    ProcessSnapshot& process);

}  // namespace pyinject::inspect
