// A Python process as the code that reads it sees it: while it runs, or in a core file.
#pragma once

#include "memory/process_memory.hpp"
#include "procfs/maps.hpp"
#include "procfs/open_mapped.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "python/layout/thread_numbers.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::python {

// Limit for reading what does not change, where only the storage and the size limit the time.
inline constexpr std::chrono::seconds kPatienceForUnchanged{10};

class ProcessImage {
 public:
  virtual ~ProcessImage() = default;
  ProcessImage() = default;
  ProcessImage(const ProcessImage&) = delete;
  ProcessImage& operator=(const ProcessImage&) = delete;

  // False: it does not change while it is read.
  [[nodiscard]] virtual bool changes() const = 0;
  // Valid as long as this image.
  [[nodiscard]] virtual std::unique_ptr<memory::MemoryReader> memory() const = 0;
  // In ascending order. nullopt: unreadable.
  [[nodiscard]] virtual std::optional<std::vector<procfs::Mapping>> mappings() const = 0;
  // Opens the file of MAPPING, one of mappings(), and no other file.
  [[nodiscard]] virtual std::variant<base::UniqueFd, procfs::NotOpened> open(
      const procfs::Mapping& mapping) const = 0;
  [[nodiscard]] virtual ThreadNumbers thread_numbers() const = 0;
  // The system call in which TID is blocked, in the form of proc_pid_syscall(5). nullopt: unknown.
  [[nodiscard]] virtual std::optional<std::string> system_call(base::Tid tid) const = 0;
};

class RunningProcess : public ProcessImage {
 public:
  explicit RunningProcess(base::Pid pid) : pid_{pid} {}

  [[nodiscard]] bool changes() const override { return true; }
  [[nodiscard]] std::unique_ptr<memory::MemoryReader> memory() const override;
  [[nodiscard]] std::optional<std::vector<procfs::Mapping>> mappings() const override;
  [[nodiscard]] std::variant<base::UniqueFd, procfs::NotOpened> open(
      const procfs::Mapping& mapping) const override;
  [[nodiscard]] ThreadNumbers thread_numbers() const override;
  [[nodiscard]] std::optional<std::string> system_call(base::Tid tid) const override;

 private:
  base::Pid pid_;
};

}  // namespace pyinject::python
