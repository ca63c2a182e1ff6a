#include "bpf/records.hpp"

#include "bpf/placed_groups.hpp"
#include "bpf/sampler_native.h"
#include "bpf/sampler_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

namespace pyinject::bpf {

namespace {

constexpr std::size_t kOfEntry = 64;  // overhead of an unordered_map entry

template <typename Head>
std::optional<Head> head_of(std::span<const std::byte> record) {
  Head head{};
  if (record.size() < sizeof head) {
    return std::nullopt;
  }
  std::memcpy(&head, record.data(), sizeof head);
  return head;
}

// Removes up to SIZE bytes from the start of BYTES.
std::span<const std::byte> take_first(std::span<const std::byte>& bytes, std::size_t size) {
  const auto taken = bytes.first(std::min(size, bytes.size()));
  bytes = bytes.subspan(taken.size());
  return taken;
}

sample::Gil gil_of(std::uint8_t value) {
  switch (value) {
    case SAMPLER_GIL_NONE:
      return sample::Gil::kNone;
    case SAMPLER_GIL_HELD:
      return sample::Gil::kHeld;
    case SAMPLER_GIL_WAITED_FOR:
      return sample::Gil::kWaitedFor;
    default:
      return sample::Gil::kUnknown;
  }
}

// Equal for code objects that are displayed equally. A hash of the lines suffices: a collision
// would need the same name at the same place.
std::string key_of(const std::string& qualname, const python::CodeNames& names,
                   const sampled_name_head& head, std::span<const std::byte> lines) {
  const std::string_view text{reinterpret_cast<const char*>(lines.data()), lines.size()};
  return fmt::format("{}:{}:{}:{}:{}", head.first_line, head.byte_code,
                     std::hash<std::string_view>{}(text), qualname, names.file);
}

sample::Does does_of(unsigned value) {
  return value == SAMPLER_DOES_CALL        ? sample::Does::kCall
         : value == SAMPLER_DOES_BYTE_CODE ? sample::Does::kByteCode
                                           : sample::Does::kUnknown;
}

sample::NativeEnd native_end_of(std::uint8_t value) {
  switch (value) {
    case NATIVE_ROOT:
      return sample::NativeEnd::kRoot;
    case NATIVE_LIMIT:
      return sample::NativeEnd::kLimit;
    case NATIVE_UNMAPPED:
      return sample::NativeEnd::kUnmapped;
    case NATIVE_NO_RULE:
      return sample::NativeEnd::kNoRule;
    case NATIVE_UNREADABLE:
      return sample::NativeEnd::kUnreadable;
    case NATIVE_BROKEN:
      return sample::NativeEnd::kBroken;
    default:
      return sample::NativeEnd::kNotRead;
  }
}

std::string with_cut(std::string name, bool cut) {
  if (cut) {
    name += "...";
  }
  return name;
}

}  // namespace

void Records::decode(std::span<const std::byte> record) {
  __u32 kind = 0;
  if (record.size() < sizeof kind) {
    return;
  }
  std::memcpy(&kind, record.data(), sizeof kind);
  switch (kind) {
    case SAMPLER_STACK:
      return decode_stack(record);
    case SAMPLER_CODE:
      return decode_code(record);
    case SAMPLER_TASK:
      return decode_task(record);
    case SAMPLER_WAKE:
    case SAMPLER_POLL:
      return decode_moment(record);
    default:
      return;
  }
}

void Records::decode_stack(std::span<const std::byte> record) {
  const auto head = head_of<sampled_stack_head>(record);
  if (!head) {
    return;
  }
  auto left = record.subspan(sizeof *head);
  sample::Stack stack{.pid = head->pid,
                      .tid = head->tid,
                      .time = head->time,
                      .whole = true,
                      .truncated = (head->flags & SAMPLER_TRUNCATED) != 0,
                      .unreadable = (head->flags & SAMPLER_UNREADABLE) != 0,
                      .ungrouped = (head->flags & SAMPLER_UNGROUPED) != 0,
                      .gil = gil_of(head->gil),
                      .added = (head->flags & SAMPLER_NO_PROCESS) == 0,
                      .address = head->address,
                      .python_thread = (head->flags & SAMPLER_NO_STATE) == 0,
                      .by_clock = (head->flags & SAMPLER_BY_CLOCK) != 0,
                      .traced = (head->flags & SAMPLER_TRACED) != 0};
  std::vector<sampled_frame> frames(
      std::min<std::size_t>(head->count, left.size() / sizeof(sampled_frame)));
  const auto bytes = take_first(left, frames.size() * sizeof(sampled_frame));
  if (!bytes.empty()) {
    std::memcpy(frames.data(), bytes.data(), bytes.size());
  }
  if ((head->flags & SAMPLER_PLACED) != 0) {
    frames = in_order_of_places(frames);
  }
  const bool collects = (head->does & SAMPLER_COLLECTS) != 0;
  if (!frames.empty() && collects) {
    add_stand_in(sample::kGarbageCollector, sample::kGarbageCollectorName, stack.frames);
  }
  bool shown = false;  // the group has a frame in the result
  auto* into = &stack.frames;
  for (const auto& frame : frames) {
    if (frame.code == SAMPLER_PARENT) {
      into = &stack.parents;
      add_stand_in(sample::kGreenlet, sample::kGreenletName, *into);
      continue;
    }
    const bool outermost = (frame.where & SAMPLER_OUTERMOST) != 0;
    const auto number = numbers_.find(frame.code);
    const auto code = number == numbers_.end() ? codes_.end() : codes_.find(number->second);
    if (code == codes_.end() || !code->second.is_init_cleanup()) {
      into->push_back(
          {.code = code == codes_.end() ? 0 : code->first,
           .line = code == codes_.end() ? 0 : code->second.line_at(frame.where & SAMPLER_OFFSET),
           .outermost = outermost});
      shown = true;
    } else if (outermost && shown) {
      into->back().outermost = true;
    }
    shown = shown && !outermost;
  }
  if (!stack.frames.empty() && !collects) {
    stack.frames.front().does = does_of(head->does);
  }
  if (const auto task = tasks_.find(head->task); task != tasks_.end()) {
    stack.task = task->second;
  }
  stack.native_end = native_end_of(head->native_end);
  stack.native.resize(std::min<std::size_t>(head->native_count, left.size() / sizeof(__u64)));
  if (!stack.native.empty()) {
    std::memcpy(stack.native.data(), left.data(), stack.native.size() * sizeof(__u64));
  }
  receiver_.stack(std::move(stack));
}

void Records::add_stand_in(std::uint32_t number, const char* name,
                           std::vector<sample::Frame>& frames) {
  if (stand_ins_.insert(number).second) {
    receiver_.code({.number = number, .qualname = name, .file = ""});
  }
  frames.push_back({.code = number});
}

void Records::decode_moment(std::span<const std::byte> record) {
  const auto moment = head_of<sampled_moment>(record);
  if (!moment) {
    return;
  }
  const auto& receiver = moment->kind == SAMPLER_WAKE ? receiver_.wakeup : receiver_.poll;
  if (receiver) {
    receiver(
        {.pid = moment->pid, .tid = moment->tid, .waker = moment->waker, .time = moment->time});
  }
}

void Records::decode_code(std::span<const std::byte> record) {
  const auto head = head_of<sampled_name_head>(record);
  if (!head || head->number == 0) {  // number 0: code objects whose names were lost
    return;
  }
  if ((head->missing & SAMPLER_MISSING_NAME) != 0) {
    return;
  }
  auto left = record.subspan(sizeof *head);
  const python::TextUnits name{.bytes = take_first(left, head->name_bytes),
                               .width = head->name_width};
  const python::TextUnits file{.bytes = take_first(left, head->file_bytes),
                               .width = head->file_width};
  const auto lines = take_first(left, head->line_bytes);
  const python::CodeDescription description{name, file, lines, head->first_line, head->byte_code};
  const auto& names = description.names();
  const auto qualname = with_cut(names.qualname, head->name_cut != 0);
  // A description completed later keeps its number.
  const auto before = numbers_.find(head->number);
  const auto own = before == numbers_.end() ? head->number : before->second;
  auto key = key_of(qualname, names, *head, lines);
  // The text is stored in the key, in the description, and by the receiver.
  const auto bytes = first_numbers_.contains(key)
                         ? kOfEntry
                         : description.memory() + 3 * key.size() + 4 * kOfEntry;
  if (!may_keep(head->pid, bytes)) {
    return;
  }
  const auto [known, first] = first_numbers_.try_emplace(std::move(key), own);
  numbers_.insert_or_assign(head->number, known->second);
  if (first) {
    receiver_.code(
        {.number = own, .qualname = qualname, .file = names.file, .first_line = names.first_line});
    codes_.insert_or_assign(own, description);
  }
}

bool Records::may_keep(std::uint32_t pid, std::size_t bytes) {
  const bool may = budget_->bytes.take(pid, bytes);
  if (!may && close_) {
    close_(pid);
  }
  return may;
}

void Records::decode_task(std::span<const std::byte> record) {
  const auto head = head_of<sampled_name_head>(record);
  if (!head || head->number == 0) {  // number 0: stacks without a task
    return;
  }
  auto left = record.subspan(sizeof *head);
  auto name =
      python::to_utf8({.bytes = take_first(left, head->name_bytes), .width = head->name_width});
  if (!may_keep(head->pid, name.size() + 2 * kOfEntry)) {
    return;
  }
  // A task without a name: CPython makes one on request (Modules/_asynciomodule.c).
  tasks_[head->number] = head->name_width == 0 ? "Task-" + std::to_string(head->first_line)
                                               : with_cut(std::move(name), head->name_cut != 0);
}

}  // namespace pyinject::bpf
