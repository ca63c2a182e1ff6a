// Who holds the GIL of a running target, and who waits for it.
#pragma once

#include "memory/process_memory.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"
#include "python/layout/runtime_layout.hpp"
#include "python/layout/runtime_view.hpp"
#include "python/layout/stack_owners.hpp"
#include "python/layout/thread_numbers.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace pyinject::inspect {

// One GIL; interpreters may share it.
struct Gil {
  base::RemoteAddress address;
  std::optional<base::Tid> holder;  // nullopt: free, or held by an unknown thread

  // The GIL contains its mutex and condition variables (Python/ceval_gil.c: take_gil()).
  [[nodiscard]] bool contains_futex(std::uint64_t futex) const {
    constexpr std::uint64_t kBytes = 256;
    return futex >= address.value() && futex < address.value() + kBytes;
  }
};

// A thread state of a thread: a thread has one of each interpreter that it works in, or two of
// the main one.
struct InterpreterOfThread {
  std::int64_t interpreter = 0;  // id; 0 is the main one
  std::uint64_t python_id = 0;   // threading.get_ident()
  base::RemoteAddress gil;       // null: unknown
};

class GilView {
 public:
  // The arguments must outlive it.
  GilView(const memory::MemoryReader& memory, const python::RuntimeLayout& layout,
          base::RemoteAddress runtime, python::ThreadNumbers numbers)
      : memory_{memory},
        layout_{layout},
        runtime_{runtime},
        numbers_{std::move(numbers)},
        owners_{layout} {}

  // Reads everything again.
  void update();

  [[nodiscard]] const std::vector<Gil>& gils() const { return gils_; }
  [[nodiscard]] const std::vector<InterpreterOfThread>& of(base::Tid tid) const;
  // Of threads with a state.
  [[nodiscard]] std::size_t thread_count() const { return threads_.size(); }
  // nullptr: unknown.
  [[nodiscard]] const Gil* find(base::RemoteAddress gil) const;

 private:
  void update_owners(const python::RuntimeView& view);

  const memory::MemoryReader& memory_;
  const python::RuntimeLayout& layout_;
  base::RemoteAddress runtime_;
  python::ThreadNumbers numbers_;
  std::vector<Gil> gils_;
  std::map<base::Tid, std::vector<InterpreterOfThread>> threads_;
  python::StackOwners owners_;
};

}  // namespace pyinject::inspect
