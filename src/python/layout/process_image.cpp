#include "python/layout/process_image.hpp"

#include "procfs/blocked_task.hpp"

namespace pyinject::python {

std::unique_ptr<memory::MemoryReader> RunningProcess::memory() const {
  return std::make_unique<memory::ProcessMemory>(pid_);
}

std::optional<std::vector<procfs::Mapping>> RunningProcess::mappings() const {
  return procfs::read_maps(pid_);
}

std::variant<base::UniqueFd, procfs::NotOpened> RunningProcess::open(
    const procfs::Mapping& mapping) const {
  return procfs::open_mapped_file(pid_, mapping);
}

ThreadNumbers RunningProcess::thread_numbers() const { return ThreadNumbers{pid_}; }

std::optional<std::string> RunningProcess::system_call(base::Tid tid) const {
  return procfs::read_system_call(pid_, tid);
}

}  // namespace pyinject::python
