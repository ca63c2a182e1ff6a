#include "python/layout/layout_facts.hpp"

#include <algorithm>
#include <array>

namespace pyinject::python {

namespace {

// PyThreadState.eval_breaker, 3.13 to 3.15: follows prev, next and interp. 3.14 and 3.15 publish
// it. Its bits: Include/internal/pycore_ceval.h.
constexpr std::uint64_t kThreadEvalBreaker = 24;
constexpr std::uint64_t kSignalsPendingBit = 2;  // _PY_SIGNALS_PENDING_BIT
constexpr std::uint64_t kCallsToDoBit = 4;       // _PY_CALLS_TO_DO_BIT

// PyLongObject.long_value.ob_digit, 3.12 to 3.15 (Include/cpython/longintrepr.h).
constexpr std::uint64_t kIntDigits = 24;

struct OpcodeRange {
  std::uint8_t first = 0;
  std::uint8_t last = 0;
};

constexpr OpcodeSet opcodes(std::span<const OpcodeRange> ranges) {
  constexpr unsigned kBits = 64;
  OpcodeSet set{};
  for (const auto& [first, last] : ranges) {
    for (unsigned opcode = first; opcode <= last; ++opcode) {
      set.at(opcode / kBits) |= std::uint64_t{1} << opcode % kBits;
    }
  }
  return set;
}

// The opcodes by which Python calls a function that may be written in C: CALL, CALL_KW,
// CALL_FUNCTION_EX, as instrumented, and as specialized for C functions and types (3.12:
// Include/opcode.h; later: Include/opcode_ids.h). A specialized opcode that calls a Python function
// is none of them.
constexpr auto kCallsC312 = std::to_array<OpcodeRange>(
    {{29, 29}, {34, 34}, {38, 48}, {56, 56}, {142, 142}, {171, 171}, {241, 241}, {244, 244}});
constexpr auto kCallsC313 =
    std::to_array<OpcodeRange>({{53, 54}, {57, 57}, {165, 176}, {179, 181}, {244, 246}});
constexpr auto kCallsC314 = std::to_array<OpcodeRange>(
    {{4, 4}, {52, 52}, {55, 55}, {146, 150}, {152, 152}, {154, 160}, {163, 165}, {250, 252}});
constexpr auto kCallsC315 = std::to_array<OpcodeRange>({{4, 4},
                                                        {50, 50},
                                                        {53, 53},
                                                        {147, 151},
                                                        {153, 153},
                                                        {155, 155},
                                                        {157, 163},
                                                        {166, 168},
                                                        {249, 251}});

constexpr auto kForkCrash =
    "a fork while the trampoline is on crashes the child (cpython gh-144766)";
constexpr auto kForkUnmaps =
    "a fork while the trampoline is on unmaps the child's trampolines (cpython gh-149156)";
constexpr std::array kBad312 = std::to_array<BadRelease>({
    {.micro = 0,
     .why = "switching off frees trampolines in use (cpython gh-112367)",
     .use = "3.12.1 or later"},
});
constexpr std::array kBad313 = std::to_array<BadRelease>({
    {.micro = 12, .why = kForkCrash, .use = "another 3.13 release"},
    {.micro = 13, .why = kForkUnmaps, .use = "another 3.13 release"},
});
constexpr std::array kBad314 = std::to_array<BadRelease>({
    {.micro = 3, .why = kForkCrash, .use = "3.14.6 or later"},
    {.micro = 4, .why = kForkUnmaps, .use = "3.14.6 or later"},
    {.micro = 5, .why = kForkUnmaps, .use = "3.14.6 or later"},
});

using O = ObjectLayout;
constexpr auto kObjects313 = std::to_array<PublishedField>({{32, &O::locals},
                                                            {40, &O::argument_count},
                                                            {41, &O::local_names},
                                                            {42, &O::local_kinds},
                                                            {47, &O::type_name},
                                                            {49, &O::type_flags},
                                                            {51, &O::tuple_items},
                                                            {54, &O::list_items},
                                                            {57, &O::dict_keys},
                                                            {58, &O::dict_values},
                                                            {62, &O::int_tag},
                                                            {63, &O::int_digits}});
constexpr auto kObjects314 = std::to_array<PublishedField>({{35, &O::locals},
                                                            {45, &O::argument_count},
                                                            {46, &O::local_names},
                                                            {47, &O::local_kinds},
                                                            {53, &O::type_name},
                                                            {55, &O::type_flags},
                                                            {57, &O::tuple_items},
                                                            {60, &O::list_items},
                                                            {64, &O::set_table},
                                                            {65, &O::set_mask},
                                                            {67, &O::dict_keys},
                                                            {68, &O::dict_values},
                                                            {72, &O::int_tag},
                                                            {73, &O::int_digits},
                                                            {85, &O::generator_frame},
                                                            {86, &O::generator_state}});
constexpr auto kObjects315 = std::to_array<PublishedField>({{43, &O::locals},
                                                            {53, &O::argument_count},
                                                            {54, &O::local_names},
                                                            {55, &O::local_kinds},
                                                            {61, &O::type_name},
                                                            {63, &O::type_flags},
                                                            {64, &O::instance_size},
                                                            {65, &O::dict_offset},
                                                            {67, &O::cached_keys, 56},
                                                            {69, &O::tuple_items},
                                                            {72, &O::list_items},
                                                            {76, &O::set_table},
                                                            {77, &O::set_mask},
                                                            {79, &O::dict_keys},
                                                            {80, &O::dict_values},
                                                            {84, &O::int_tag},
                                                            {85, &O::int_digits},
                                                            {101, &O::generator_frame},
                                                            {102, &O::generator_state}});

// Source: the headers of 3.12.1 (Include/internal/pycore_runtime.h, pycore_interp.h,
// pycore_ceval_state.h, pycore_frame.h, cpython/{pystate,code,unicodeobject}.h); objects: also
// debug information of 3.12.1 and 3.13.0, measured with 3.14 and 3.15 (docs/cpython-notes.md).
constexpr LayoutFacts kFacts312{
    .minor = 12,
    .layout = {.runtime_size = 459944,
               .initialized = 16,
               .finalizing = 24,
               .interpreters_main = 48,
               .main_thread = 64,
               .pending_calls = 2016,
               .queue = QueueForm::kRing32,
               // _PyRuntime.ceval.signals_pending, the word before pending_mainthread
               .signals_pending = 2008,
               .code_arenas = 1960,
               .interpreter_id = 8,
               .next_interpreter = 0,
               .threads_head = 72,
               .gil = 384,
               .eval_frame = 1744,
               .gc_collecting = 312,
               .eval_breaker = 368,
               .eval_breaker_per_thread = false,
               .next_thread = 8,
               .thread_interpreter = 16,
               .thread_id = 136,
               .audit_hooks = 267208,
               .trace_function = 72,
               .profile_function = 64,
               .gil_last_holder = 8,
               .gil_locked = 16,
               .calls_c = opcodes(kCallsC312),
               .stack = {.previous_thread = 0,
                         .native_thread_id = 144,
                         .current_frame = 56,
                         .frame_in_cframe = true,
                         .previous_cframe = 8,  // struct _PyCFrame {current_frame, previous}
                         .frame_size = 80,
                         .executable = 0,
                         .executable_tags = 0,
                         .previous = 8,
                         .instruction = 56,
                         .owner = 70,
                         .owners = kFrameOwners,
                         .stack_end = 64,
                         .stack_end_is_index = true,
                         .file_name = 112,
                         .qualified_name = 128,
                         .line_table = 136,
                         .first_line = 68,
                         .byte_code = 192,
                         .type = 8,
                         .item_count = 16,
                         .bytes_data = 32,
                         .text_length = 16,
                         .text_state = 32,
                         .ascii_data = 40,
                         .text_form = kTextForm,
                         .int_digits = kIntDigits}},
    .objects = {.layout = {.modules = 944,
                           .first_value = 0,
                           .values_follow = false,
                           .generator_states = {.created = -2, .suspended_last = -1}},
                .tasks =
                    TaskLayout{
                        .size = 176, .state = 88, .waits_for = 128, .coroutine = 136, .name = 144}},
    .bad_releases = kBad312,
    .unmaps_used_arenas = kAllReleases,
    .fails_on_odd_names = kAllReleases};

// 3.13 publishes most of the others (_Py_DebugOffsets).
constexpr LayoutFacts kFacts313 = [] {
  auto stack = kFacts312.layout.stack;
  stack.native_thread_id = 160;
  stack.current_frame = 72;
  stack.frame_in_cframe = false;
  stack.previous_cframe = 0;
  stack.byte_code = 200;
  return LayoutFacts{
      .minor = 13,
      .layout = {.pending_calls = 2640,
                 .queue = QueueForm::kArray,
                 .code_arenas = 2576,
                 .eval_frame = 8472,
                 .eval_breaker = kThreadEvalBreaker,
                 .signals_pending_bit = kSignalsPendingBit,
                 .calls_to_do_bit = kCallsToDoBit,
                 .next_thread = 8,
                 .thread_interpreter = 16,
                 .thread_id = 152,
                 .audit_hooks = 10808,
                 .trace_function = 88,
                 .profile_function = 80,
                 .calls_c = opcodes(kCallsC313),
                 .stack = stack},
      .published = PublishedOffsets{.size = 584,
                                    .runtime = 3,
                                    .interpreter = 6,
                                    .gil = 14,
                                    .thread = 20,
                                    .thread_id = 24,
                                    .frame = 28,
                                    .code = 34,
                                    .object_type = 45,
                                    .bytes = 64,
                                    .text = 67,
                                    .threads_after_next = 80,
                                    .collector = 10,
                                    .collector_state = 71,
                                    .collecting_after_threads = 256},
      .objects =
          {.layout = {.generator_states = {.created = -3,
                                           .suspended_last = -1,
                                           .delegates_first = std::int8_t{-1}}},
           .modules = 11,
           .published = kObjects313,
           .tasks = {.size = 144, .state = 96, .waits_for = 112, .coroutine = 120, .name = 128}},
      .bad_releases = kBad313,
      .unmaps_used_arenas = {.first = 0, .last = 11},
      .adds_code_watchers = {.first = 12, .last = 0xff},
      .fails_on_odd_names = kAllReleases};
}();

// 3.14 is 3.13, but:
constexpr LayoutFacts kFacts314 = [] {
  auto facts = kFacts313;
  facts.minor = 14;
  facts.layout.pending_calls = 2848;
  facts.layout.code_arenas = 2760;  // 3.14.0 to 3.14.2
  facts.layout.eval_frame = 8520;
  facts.layout.audit_hooks = 10912;
  facts.layout.publishes_tasks = true;
  facts.layout.calls_c = opcodes(kCallsC314);
  auto& stack = facts.layout.stack;
  stack.frame_size = 88;
  stack.executable_tags = 3;
  stack.owner = 74;
  stack.stack_end_is_index = false;
  stack.byte_code = 208;
  facts.published = PublishedOffsets{.size = 760,
                                     .runtime = 3,
                                     .interpreter = 6,
                                     .gil = 15,
                                     .thread = 23,
                                     .thread_id = 27,
                                     .frame = 31,
                                     .code = 39,
                                     .object_type = 51,
                                     .bytes = 74,
                                     .text = 77,
                                     .threads_after_next = 72,
                                     .collector = 11,
                                     .collector_state = 81,
                                     .collecting_after_threads = 256,
                                     .thread_byte_code = 49,
                                     .byte_code_index = 38};
  facts.objects.layout.locals = 80;
  facts.objects.layout.tuple_items = 32;
  facts.objects.modules = 12;
  facts.objects.published = kObjects314;
  facts.objects.tasks = {};
  facts.free_threaded_interned = 8;
  facts.bad_releases = kBad314;
  facts.unmaps_used_arenas = {.first = 0, .last = 2};
  facts.adds_code_watchers = kAllReleases;
  facts.fails_on_odd_names = {.first = 0, .last = 9};  // 3.14.10 was tried, no earlier one
  facts.activates_once = true;
  facts.checks_c_stack = true;
  return facts;
}();

// 3.15 is 3.14, but:
constexpr LayoutFacts kFacts315 = [] {
  auto facts = kFacts314;
  facts.minor = 15;
  facts.layout.pending_calls = 2976;
  facts.layout.code_arenas = 0;
  facts.layout.eval_frame = 8472;
  facts.layout.thread_id = 176;
  facts.layout.audit_hooks = 10888;
  facts.layout.trace_function = 112;
  facts.layout.profile_function = 104;
  facts.layout.calls_c = opcodes(kCallsC315);
  facts.layout.stack.native_thread_id = 184;
  auto& published = *facts.published;
  published.size = 888;
  published.thread_id = 30;
  published.frame = 39;
  published.code = 47;
  published.object_type = 59;
  published.bytes = 86;
  published.text = 89;
  published.collector_state = 94;
  published.collecting_after_threads = 176;
  published.thread_byte_code = 57;
  published.byte_code_index = 46;
  facts.objects.layout.cached_keys = 888;
  facts.objects.layout.generator_states = {
      .created = 0, .suspended_last = 3, .delegates_first = std::int8_t{2}};
  facts.objects.layout.awaited = 16;
  facts.objects.published = kObjects315;
  facts.bad_releases = {};
  facts.unmaps_used_arenas = kNoRelease;
  facts.fails_on_odd_names = kNoRelease;
  return facts;
}();

constexpr std::array kFacts{kFacts312, kFacts313, kFacts314, kFacts315};

static_assert(std::ranges::all_of(kFacts,
                                  [](const LayoutFacts& facts) {
                                    return facts.layout.stack.owners == kFrameOwners &&
                                           facts.layout.stack.text_form == kTextForm;
                                  }),
              "the BPF program gets them once for all processes (bpf/sampled_process.hpp)");

}  // namespace

std::span<const LayoutFacts> all_layout_facts() { return kFacts; }

const LayoutFacts* layout_facts(const Version& version) {
  const auto* const found = std::ranges::find(kFacts, version.minor, &LayoutFacts::minor);
  return version.major == 3 && found != kFacts.end() ? &*found : nullptr;
}

const LayoutFacts* readable_facts(const Version& version) {
  const auto& newest = kFacts.back();
  return version.major == 3 && version.minor > newest.minor ? &newest : layout_facts(version);
}

bool is_tested(const Version& version) {
  constexpr std::uint8_t kCandidate = 0xc;
  return layout_facts(version) != nullptr && version.level >= kCandidate;
}

std::vector<EntryFrame> entry_frames() {
  std::vector<EntryFrame> frames;
  for (const auto& facts : kFacts) {
    const auto& stack = facts.layout.stack;
    const EntryFrame frame{
        .previous = stack.previous, .owner = stack.owner, .owner_value = stack.owners.first_entry};
    if (std::ranges::find(frames, frame) == frames.end()) {
      frames.push_back(frame);
    }
  }
  return frames;
}

}  // namespace pyinject::python
