// The examination of a process: its steps, in order, and what they know.
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

// A refusal thrown by the steps below; examine() converts it into a value.
struct Refuse {
  Reason reason{};
  std::string found;
  std::string remedy;
  std::optional<base::RemoteAddress> initialized = std::nullopt;  // see Refused
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

// A process that is being examined, and what has been found of it so far.
struct Examined {
  Examined(MappedFiles& known, base::Pid of, Purpose why, const base::Cancellation& stop)
      : files{known},
        pid{of},
        purpose{why},
        cancellation{stop, base::Deadline::after(kPatience)},
        memory{std::make_unique<memory::ProcessMemory>(of)} {}
  // Of a process that does not run (any more), to observe it.
  Examined(MappedFiles& known, base::Pid of, const ProcessImage& content)
      : files{known},
        pid{of},
        image{&content},
        purpose{Purpose::kObserve},
        cancellation{base::Cancellation::never(), base::Deadline::after(kPatience)},
        memory{content.memory()} {}

  [[nodiscard]] bool given_up() const { return budget.spent() || cancellation.stopped(); }
  [[nodiscard]] Refuse not_examined() const;  // it was given up
  [[nodiscard]] std::variant<base::UniqueFd, procfs::NotOpened> open(
      const procfs::Mapping& mapping) const;
  [[nodiscard]] std::optional<Module> module_of(const procfs::Mapping& mapping);
  // Whether it has called any function of its libpython: perf is linked to one for its scripts.
  // FLAGS: five numbers of what is initialized, the last of which is `initialized` (_PyRuntimeState
  // in Include/internal/pycore_runtime.h, 3.8 to 3.15).
  [[nodiscard]] bool has_started(base::RemoteAddress flags) const;
  using CodeProbe = std::function<std::optional<std::uint64_t>(std::span<const std::byte> code,
                                                               base::RemoteAddress at)>;
  // PROBE's result for the function SYMBOL of the interpreter, or else for one of the parts that it
  // was split into.
  [[nodiscard]] std::optional<std::uint64_t> probe_code(std::string_view symbol,
                                                        const CodeProbe& probe) const;
  [[nodiscard]] std::string remedy_for_layout() const;

  static constexpr std::chrono::seconds kPatience{10};

  MappedFiles& files;
  base::Pid pid;
  const ProcessImage* image = nullptr;  // nullptr: a running process
  Purpose purpose;
  base::Cancellation cancellation;
  FileBudget budget;  // a process can have 65530 mapped files, each as slow to read as possible
  std::unique_ptr<memory::MemoryReader> memory;
  Target target;
  procfs::Status status;
  std::vector<procfs::Mapping> maps;
  Module interpreter;
  RuntimeLayout layout;
};

// All steps.
[[nodiscard]] Detection examine(Examined& process);
// Only the first one. Does not check whether the interpreter is usable.
[[nodiscard]] std::variant<Module, Refusal> interpreter_of(Examined& process);

// The steps. Each throws Refuse.
// examination_interpreter.cpp: file and version.
void find_interpreter(Examined& process);
void check_interpreter(Examined& process);
// examination_runtime.cpp: addresses.
void find_runtime(Examined& process);
void check_code(const Examined& process);
void find_mailbox(Examined& process);
// examination_state.cpp: whether it may be activated now.
void read_state(Examined& process);
void look_at_surroundings(Examined& process);

}  // namespace pyinject::python
