#include "bpf/sampled_process.hpp"

#include "python/layout/layout_facts.hpp"

#include <cstdint>

namespace pyinject::bpf {

namespace {

// Whether every field that the program reads is within its copies of frames and code objects.
bool fits(const sampled_process& process) {
  const auto word_within = [](std::uint32_t offset, std::uint32_t limit) {
    return offset % sizeof(__u64) == 0 && offset + sizeof(__u64) <= limit;
  };
  const auto begin = process.first_line & ~7U;
  const auto end = begin + SAMPLER_CODE_WORDS * sizeof(__u64);
  const auto constant = [&](std::uint32_t offset) {
    return word_within(offset, static_cast<std::uint32_t>(end)) && offset >= begin;
  };
  return word_within(process.executable, SAMPLER_FRAME_BYTES) &&
         word_within(process.previous, SAMPLER_FRAME_BYTES) &&
         word_within(process.instruction, SAMPLER_FRAME_BYTES) &&
         process.owner < SAMPLER_FRAME_BYTES && process.first_line % sizeof(__u32) == 0 &&
         end <= SAMPLER_CODE_BYTES && constant(process.file_name) &&
         constant(process.qualified_name) && constant(process.line_table) &&
         process.byte_code_index % sizeof(__u32) == 0 &&
         process.byte_code_index + sizeof(__u32) <= SAMPLER_FRAME_BYTES &&
         word_within(process.type, SAMPLER_CODE_BYTES);
}

}  // namespace

std::optional<sampled_process> process_of(const python::FrameLayout& from) {
  const sampled_process process{
      .interpreters = from.interpreters.value(),
      .code_type = from.code_type.value(),
      .text_type = from.text_type.value(),
      .executable_tags = from.executable_tags,
      .next_interpreter = from.next_interpreter,
      .interpreter_id = from.interpreter_id,
      .threads_head = from.threads_head,
      .gil = from.gil,
      .next_thread = from.next_thread,
      .thread_interpreter = from.thread_interpreter,
      .thread_id = from.thread_id,
      .current_frame = from.current_frame,
      .frame_in_cframe = from.frame_in_cframe ? 1U : 0U,
      .previous_cframe = from.previous_cframe,
      .running_task = from.running_task,
      .tasks_later = from.tasks_later ? 1U : 0U,
      .executable = from.executable,
      .previous = from.previous,
      .instruction = from.instruction,
      .owner = from.owner,
      .file_name = from.file_name,
      .qualified_name = from.qualified_name,
      .line_table = from.line_table,
      .first_line = from.first_line,
      .byte_code = from.byte_code,
      .thread_byte_code = from.thread_byte_code,
      .byte_code_index = from.byte_code_index,
      .type = from.type,
      .item_count = from.item_count,
      .bytes_data = from.bytes_data,
      .text_length = from.text_length,
      .text_state = from.text_state,
      .text_shift = from.text_form.kind_shift - python::kTextForm.kind_shift,
      .ascii_data = from.ascii_data,
      .int_digits = from.int_digits,
      .task_name = from.task_name,
      .gil_last_holder = from.gil_last_holder,
      .gil_locked = from.gil_locked,
      .gc_collecting = from.gc_collecting,
      .calls_c = {from.calls_c[0], from.calls_c[1], from.calls_c[2], from.calls_c[3]},
      .greenlet_module = 0,
      .unused = 0};
  return fits(process) ? std::optional{process} : std::nullopt;
}

sampled_python every_python() {
  return {.generator_owner = python::kFrameOwners.generator,
          .first_entry_owner = python::kFrameOwners.first_entry,
          .text_kind_shift = python::kTextForm.kind_shift,
          .text_kind_mask = python::kTextForm.kind_mask,
          .text_compact = python::kTextForm.compact,
          .text_ascii = python::kTextForm.ascii,
          .text_utf8_fields = python::kTextForm.utf8_fields};
}

}  // namespace pyinject::bpf
