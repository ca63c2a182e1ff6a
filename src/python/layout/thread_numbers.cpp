#include "python/layout/thread_numbers.hpp"

#include "procfs/status.hpp"
#include "procfs/tasks.hpp"
#include "python/layout/thread_block.hpp"

#include <utility>

namespace pyinject::python {

ThreadNumbers::ThreadNumbers(base::Pid process) : process_{process} {
  const auto status = procfs::read_status(process);
  nested_ = status && status->namespace_pids.size() > 1;
}

void ThreadNumbers::update() {
  if (!process_) {
    return;
  }
  constexpr int kMostOddStates = 1024;
  left_to_look_at_ = kMostOddStates;
  std::map<base::Tid, std::uint64_t> natives;
  ours_.clear();
  for (const auto tid : procfs::list_tasks(*process_)) {
    auto native = static_cast<std::uint64_t>(tid.value());
    if (const auto known = natives_.find(tid); known != natives_.end()) {
      native = known->second;
    } else if (nested_) {
      const auto status = procfs::read_status(*process_, tid);
      if (!status || status->namespace_pids.empty()) {
        continue;
      }
      native = static_cast<std::uint64_t>(status->namespace_pids.back());
    }
    natives.emplace(tid, native);
    ours_.emplace(native, tid);
  }
  natives_ = std::move(natives);
}

std::optional<base::Tid> ThreadNumbers::ours(std::uint64_t native) const {
  const auto found = ours_.find(native);
  return found == ours_.end() ? std::nullopt : std::optional{found->second};
}

std::optional<base::Tid> ThreadNumbers::ours(const memory::MemoryReader& memory,
                                             const ThreadState& state) {
  if (const auto tid = ours(state.native_id); tid || !process_ || left_to_look_at_ == 0) {
    return tid;
  }
  --left_to_look_at_;
  // The thread that survives a fork is the first one of the new process.
  const base::Tid first{process_->value()};
  const auto native = natives_.find(first);
  return native != natives_.end() &&
                 tid_in_thread_block(memory, base::RemoteAddress{state.thread_id}) == native->second
             ? std::optional{first}
             : std::nullopt;
}

}  // namespace pyinject::python
