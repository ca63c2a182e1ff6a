// The steps of examining a process, in order. A step that ends the examination throws Refuse.
#pragma once

#include "memory/process_memory.hpp"
#include "procfs/maps.hpp"
#include "procfs/open_mapped.hpp"
#include "procfs/status.hpp"
#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/target.hpp"
#include "python/examine/mailbox.hpp"
#include "python/examine/mapped_file.hpp"
#include "python/layout/process_image.hpp"
#include "python/layout/runtime_layout.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace pyinject::python {

// A refusal thrown by the steps below; run() converts it into a value.
struct Refuse {
  Reason reason{};
  std::string found;
  std::string remedy;
};

// A mapped file of the process and its address.
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
        cancellation_{cancellation, base::Deadline::after(kPatience)},
        reader_{std::make_unique<memory::ProcessMemory>(pid)} {}
  // Of a process that does not run (any more), to observe it.
  Examination(MappedFiles& files, base::Pid pid, const ProcessImage& image)
      : files_{files},
        pid_{pid},
        image_{&image},
        purpose_{Purpose::kObserve},
        cancellation_{base::Cancellation::never(), base::Deadline::after(kPatience)},
        reader_{image.memory()} {}

  [[nodiscard]] Detection run();
  // Runs only the first steps, which find the file of the interpreter. Does not check whether the
  // interpreter is usable.
  [[nodiscard]] std::variant<Module, Refusal> interpreter();
  [[nodiscard]] base::ProcessId id() const { return target_.id; }

 private:
  [[nodiscard]] bool executes_another() const;
  [[nodiscard]] bool given_up() const { return budget_.spent() || cancellation_.stopped(); }
  [[nodiscard]] bool is_being_loaded();
  // examination_interpreter.cpp: file and version.
  void look_at_process();
  void look_at_image();
  void find_interpreter();
  [[nodiscard]] Refuse not_examined() const;
  [[nodiscard]] std::variant<base::UniqueFd, procfs::NotOpened> open(
      const procfs::Mapping& mapping) const;
  void check_loaded() const;
  void read_version();
  void check_symbols();
  void check_trampoline() const;
  // examination_runtime.cpp: addresses.
  void find_runtime();
  void prove_layout();
  void check_code();
  void find_libc();
  void find_mailbox();
  // examination_state.cpp: whether it may be activated now.
  void read_state();
  void look_at_surroundings();
  void refuse_traced() const;
  void refuse_jit_dump() const;
  void check_stacks() const;
  void check_exit();
  void check_watchers() const;
  void check_names() const;
  [[nodiscard]] bool has_started(base::RemoteAddress flags) const;
  [[nodiscard]] bool may_be_starting() const;

  [[nodiscard]] std::shared_ptr<const MappedFile> look_at_file(const procfs::Mapping& mapping);
  [[nodiscard]] std::optional<Module> module_of(const procfs::Mapping& mapping);
  [[nodiscard]] std::optional<UnusedMemory> page_tail(const Module& module) const;
  [[nodiscard]] std::optional<UnusedMemory> top_of_stack() const;
  [[nodiscard]] std::vector<UnusedMemory> unused_memory() const;
  [[nodiscard]] bool is_executable_of_process(const procfs::Mapping& mapping) const;
  [[nodiscard]] std::string remedy_for_layout() const;
  [[nodiscard]] std::vector<std::byte> code_of(std::string_view symbol) const;
  using CodeProbe = std::function<std::optional<std::uint64_t>(std::span<const std::byte> code,
                                                               base::RemoteAddress at)>;
  // PROBE's result for the function SYMBOL, or else for one of the parts that it was split into.
  [[nodiscard]] std::optional<std::uint64_t> probe_code(std::string_view symbol,
                                                        const CodeProbe& probe) const;

  static constexpr std::chrono::seconds kPatience{10};

  MappedFiles& files_;
  base::Pid pid_;
  const ProcessImage* image_ = nullptr;  // nullptr: a running process
  Purpose purpose_;
  base::Cancellation cancellation_;
  FileBudget budget_;  // a process can have 65530 mapped files, each as slow to read as possible
  std::unique_ptr<memory::MemoryReader> reader_;
  const memory::MemoryReader& memory_ = *reader_;
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
