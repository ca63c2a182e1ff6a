// The steps of looking at one process, in their order. Each throws Refuse when that is where it
// ends.
#pragma once

#include "pyinject/base/deadline.hpp"
#include "pyinject/procfs/maps.hpp"
#include "pyinject/procfs/status.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/target.hpp"
#include "pyinject/tracee/remote_memory.hpp"
#include "python/mailbox.hpp"
#include "python/mapped_file.hpp"
#include "python/runtime_layout.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace pyinject::python {

// A refusal on its way out of the steps below; run() makes it a value.
struct Refuse {
  Reason reason{};
  std::string found;
  std::string remedy;
};

// One mapped file of the process, with its place.
struct Module {
  const MappedFile* file = nullptr;
  procfs::Mapping mapping;  // an executable one
  base::LoadBias bias;

  [[nodiscard]] base::RemoteAddress address(std::string_view symbol) const {
    return bias.apply(file->symbols.find(symbol)->second.address);
  }
};

class Examination {
 public:
  Examination(MappedFiles& files, base::Pid pid, Purpose purpose)
      : files_{files}, pid_{pid}, purpose_{purpose}, memory_{pid} {}

  [[nodiscard]] Detection run();
  // The first steps only: which file has its interpreter. Whether anything could be done with that
  // is not asked.
  [[nodiscard]] std::variant<Module, Refusal> interpreter();
  [[nodiscard]] base::ProcessId id() const { return target_.id; }

 private:
  [[nodiscard]] bool executes_another() const;
  [[nodiscard]] bool is_being_loaded();
  // examination_interpreter.cpp: which file, which version.
  void look_at_process();
  void find_interpreter();
  void check_loaded() const;
  void read_version();
  void check_symbols();
  // examination_runtime.cpp: what is where in it.
  void find_runtime();
  void check_code();
  void find_libc();
  void find_mailbox();
  // examination_state.cpp: may it be activated now.
  void read_state();
  void look_at_surroundings();
  void check_stacks() const;
  void check_watchers() const;

  [[nodiscard]] std::optional<Module> module_of(const procfs::Mapping& mapping);
  [[nodiscard]] std::optional<PageTail> page_tail(const Module& module) const;
  [[nodiscard]] bool is_executable_of_process(const procfs::Mapping& mapping) const;
  [[nodiscard]] std::vector<std::byte> code_of(std::string_view symbol) const;

  MappedFiles& files_;
  base::Pid pid_;
  Purpose purpose_;
  tracee::ProcessMemory memory_;
  Target target_;
  procfs::Status status_;
  std::vector<procfs::Mapping> maps_;
  Module interpreter_;
  Module libc_;
  RuntimeLayout layout_;
  std::optional<bool> frame_pointers_;
  std::optional<base::RemoteAddress> initialized_;  // see Refused
  // A process can have 65530 files mapped, each of them as slow to look through as it can be.
  base::Deadline patience_ = base::Deadline::after(std::chrono::seconds{10});
};

}  // namespace pyinject::python
