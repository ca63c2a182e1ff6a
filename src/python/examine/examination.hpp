// The steps of looking at one process, in their order. Each throws Refuse when that is where it
// ends.
#pragma once

#include "memory/process_memory.hpp"
#include "procfs/maps.hpp"
#include "procfs/status.hpp"
#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/target.hpp"
#include "python/examine/mailbox.hpp"
#include "python/examine/mapped_file.hpp"
#include "python/layout/runtime_layout.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
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
  std::shared_ptr<const MappedFile> file;
  procfs::Mapping mapping;  // an executable one
  base::LoadBias bias;

  [[nodiscard]] base::RemoteAddress address(std::string_view symbol) const {
    return bias.apply(file->symbols.find(symbol)->second.address);
  }
};

class Examination {
 public:
  Examination(MappedFiles& files, base::Pid pid, Purpose purpose,
              const base::Cancellation& cancellation)
      : files_{files},
        pid_{pid},
        purpose_{purpose},
        cancellation_{cancellation, base::Deadline::after(std::chrono::seconds{10})},
        memory_{pid} {}

  [[nodiscard]] Detection run();
  // The first steps only: which file has its interpreter. Whether anything could be done with that
  // is not asked.
  [[nodiscard]] std::variant<Module, Refusal> interpreter();
  [[nodiscard]] base::ProcessId id() const { return target_.id; }

 private:
  [[nodiscard]] bool executes_another() const;
  [[nodiscard]] bool given_up() const { return budget_.spent() || cancellation_.stopped(); }
  [[nodiscard]] bool is_being_loaded();
  // examination_interpreter.cpp: which file, which version.
  void look_at_process();
  void find_interpreter();
  [[nodiscard]] Refuse not_examined() const;
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
  void refuse_traced() const;
  void check_stacks() const;
  void check_exit();
  void check_watchers() const;

  [[nodiscard]] std::optional<Module> module_of(const procfs::Mapping& mapping);
  [[nodiscard]] std::optional<PageTail> page_tail(const Module& module) const;
  [[nodiscard]] bool is_executable_of_process(const procfs::Mapping& mapping) const;
  [[nodiscard]] std::vector<std::byte> code_of(std::string_view symbol) const;

  MappedFiles& files_;
  base::Pid pid_;
  Purpose purpose_;
  base::Cancellation cancellation_;
  FileBudget budget_;  // a process can have 65530 files mapped, each as slow to read as can be
  memory::ProcessMemory memory_;
  Target target_;
  procfs::Status status_;
  std::vector<procfs::Mapping> maps_;
  Module interpreter_;
  Module libc_;
  RuntimeLayout layout_;
  std::optional<bool> frame_pointers_;
  std::optional<base::RemoteAddress> initialized_;  // see Refused
};

}  // namespace pyinject::python
