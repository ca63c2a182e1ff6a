#include "python/layout/frame_layout.hpp"

#include "procfs/maps.hpp"
#include "procfs/open_mapped.hpp"
#include "python/layout/frame_reading.hpp"

#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace pyinject::python {

namespace {

// struct _Py_AsyncioModuleDebugOffsets (Modules/_asynciomodule.c, 3.14 and 3.15): seven words about
// a task, two about an interpreter, four about a thread.
std::optional<TaskOffsets> task_offsets(const elf::ElfFile& file) {
  constexpr std::size_t kWords = 13;
  constexpr std::size_t kTaskSize = 0;
  constexpr std::size_t kTaskName = 1;
  constexpr std::size_t kInterpreterSize = 7;
  constexpr std::size_t kInterpreterTasks = 8;
  constexpr std::size_t kThreadSize = 9;
  constexpr std::size_t kRunningTask = 11;
  constexpr std::size_t kThreadTasks = 12;
  constexpr std::uint64_t kMostTask = 4096;
  // Free-threaded builds have the heaps of each thread in its state.
  constexpr std::uint64_t kMostThread = std::uint64_t{1} << 20U;
  constexpr std::uint64_t kMostInterpreter = std::uint64_t{4} << 20U;
  const auto section = file.section(".AsyncioDebug");
  if (!section) {
    return std::nullopt;
  }
  const auto bytes = file.read_at(section->address, kWords * sizeof(std::uint64_t));
  if (!bytes) {
    return std::nullopt;
  }
  std::array<std::uint64_t, kWords> words{};
  std::memcpy(words.data(), bytes->data(), bytes->size());
  if (words[kTaskSize] > kMostTask || words[kThreadSize] > kMostThread ||
      words[kRunningTask] >= words[kThreadSize] || words[kThreadTasks] >= words[kThreadSize] ||
      words[kInterpreterSize] > kMostInterpreter ||
      words[kInterpreterTasks] >= words[kInterpreterSize]) {
    return std::nullopt;
  }
  for (std::size_t i = kTaskName; i < kInterpreterSize; ++i) {
    if (words.at(i) >= words[kTaskSize]) {
      return std::nullopt;
    }
  }
  const auto narrow = [&words](std::size_t i) { return static_cast<std::uint32_t>(words.at(i)); };
  return TaskOffsets{.name = narrow(kTaskName),
                     .running = narrow(kRunningTask),
                     .size = narrow(kTaskSize),
                     .awaited_by = narrow(2),
                     .is_task = narrow(3),
                     .awaited_by_is_set = narrow(4),
                     .coroutine = narrow(5),
                     .node = narrow(6),
                     .interpreter_tasks = narrow(kInterpreterTasks),
                     .thread_tasks = narrow(kThreadTasks)};
}

}  // namespace

std::optional<TaskOffsets> find_task_offsets(const ProcessImage& image, const elf::ElfFile& file) {
  auto found = task_offsets(file);
  return found ? found : loaded_task_offsets(image);
}

std::optional<TaskOffsets> loaded_task_offsets(base::Pid pid) {
  return loaded_task_offsets(RunningProcess{pid});
}

std::optional<TaskOffsets> loaded_task_offsets(const ProcessImage& image) {
  const auto maps = image.mappings();
  for (const auto& mapping : maps.value_or(std::vector<procfs::Mapping>{})) {
    if (!mapping.executable || mapping.inode == 0 ||
        mapping.path.find("/_asyncio.") == std::string::npos) {
      continue;
    }
    auto opened = image.open(mapping);
    if (auto* const fd = std::get_if<base::UniqueFd>(&opened)) {
      auto module = elf::ElfFile::open(std::move(*fd));
      if (const auto* const elf = std::get_if<elf::ElfFile>(&module)) {
        return task_offsets(*elf);
      }
    }
  }
  return std::nullopt;
}

std::variant<FrameLayout, std::string> frame_layout(const Target& target) {
  const RunningProcess process{target.id.pid};
  const auto prepared = prepare_frame_reading(target, process);
  if (const auto* why = std::get_if<std::string>(&prepared)) {
    return *why;
  }
  const auto& [file, found] = std::get<FrameReading>(prepared);
  const auto& stack = found.stack;
  constexpr auto kTypes = std::to_array<std::string_view>({"PyCode_Type", "PyUnicode_Type"});
  const auto symbols = file.find_symbols(kTypes);
  const auto code_type = symbols.find(kTypes[0]);
  const auto text_type = symbols.find(kTypes[1]);
  if (code_type == symbols.end() || text_type == symbols.end()) {
    return std::string{"its interpreter does not export PyCode_Type or PyUnicode_Type"};
  }
  const auto tasks = found.publishes_tasks ? find_task_offsets(process, file) : std::nullopt;
  // parse_layout() has checked the range of all offsets.
  const auto narrow = [](std::uint64_t offset) { return static_cast<std::uint32_t>(offset); };
  return FrameLayout{
      // interpreters.head; .main follows it.
      .interpreters = target.addresses.runtime + (found.interpreters_main - sizeof(std::uint64_t)),
      .code_type = target.bias.apply(code_type->second.address),
      .text_type = target.bias.apply(text_type->second.address),
      .next_interpreter = narrow(found.next_interpreter),
      .interpreter_id = narrow(found.interpreter_id),
      .threads_head = narrow(found.threads_head),
      .gil = narrow(found.gil),
      .next_thread = narrow(found.next_thread),
      .thread_interpreter = narrow(found.thread_interpreter),
      .thread_id = narrow(found.thread_id),
      .current_frame = narrow(stack.current_frame),
      .frame_in_cframe = stack.frame_in_cframe,
      .previous_cframe = narrow(stack.previous_cframe),
      .running_task = tasks ? tasks->running : 0,
      .tasks_later = found.publishes_tasks && !tasks,
      .executable = narrow(stack.executable),
      .executable_tags = stack.executable_tags,
      .previous = narrow(stack.previous),
      .instruction = narrow(stack.instruction),
      .owner = narrow(stack.owner),
      .file_name = narrow(stack.file_name),
      .qualified_name = narrow(stack.qualified_name),
      .line_table = narrow(stack.line_table),
      .first_line = narrow(stack.first_line),
      .byte_code = narrow(stack.byte_code),
      .thread_byte_code = narrow(stack.thread_byte_code),
      .byte_code_index = narrow(stack.byte_code_index),
      .type = narrow(stack.type),
      .item_count = narrow(stack.item_count),
      .bytes_data = narrow(stack.bytes_data),
      .text_length = narrow(stack.text_length),
      .text_state = narrow(stack.text_state),
      .text_form = stack.text_form,
      .ascii_data = narrow(stack.ascii_data),
      .int_digits = narrow(stack.int_digits),
      .task_name = tasks ? tasks->name : 0,
      .gil_last_holder = narrow(found.gil_last_holder),
      .gil_locked = narrow(found.gil_locked),
      .gc_collecting = found.free_threaded ? 0 : narrow(found.gc_collecting),
      .calls_c = found.calls_c};
}

}  // namespace pyinject::python
