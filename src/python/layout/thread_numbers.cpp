#include "python/layout/thread_numbers.hpp"

#include "procfs/status.hpp"
#include "procfs/tasks.hpp"

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

}  // namespace pyinject::python
