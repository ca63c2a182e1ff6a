#include "python/examine/code_arenas.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

namespace pyinject::python {

namespace {

// struct code_arena_st, the same in 3.12 to 3.14.
struct Record {
  std::uint64_t start = 0;
  std::uint64_t current = 0;  // address of the next trampoline
  std::uint64_t size = 0;
  std::uint64_t size_left = 0;
  std::uint64_t code_size = 0;
  std::uint64_t previous = 0;
};
static_assert(sizeof(Record) == 48);

constexpr std::size_t kMostArenas = 4096;
constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kMostArenaBytes = std::uint64_t{1} << 20U;
constexpr std::uint64_t kMostCode = 64;  // the detector refuses longer trampolines

// Empty: RECORD, read from ADDRESS, describes an arena.
std::string implausible(const Record& record, base::RemoteAddress address,
                        const std::vector<procfs::Mapping>& maps) {
  const auto* const around = procfs::find_mapping(maps, address);
  if (around == nullptr || !around->readable || !around->writable || address.value() % 8 != 0) {
    return fmt::format("there can be no arena record at {:#x}", address.value());
  }
  const std::uint64_t used = record.current - record.start;
  const std::uint64_t total = used + record.size_left;
  if (record.current < record.start || used > kMostArenaBytes ||
      record.size_left > kMostArenaBytes || total == 0 || total % kPageBytes != 0 ||
      (record.size != total && record.size != kPinnedSize) || record.code_size == 0 ||
      record.code_size > kMostCode) {
    return fmt::format("the arena record at {:#x} has a size of {}, {} used, {} left, code of {}",
                       address.value(), record.size, used, record.size_left, record.code_size);
  }
  const auto* const code = procfs::find_mapping(maps, base::RemoteAddress{record.start});
  if (code == nullptr || record.start % kPageBytes != 0 || !code->readable || code->writable ||
      !code->executable || code->shared || code->inode != 0 ||
      code->end.value() - record.start < total) {
    return fmt::format("no anonymous code is mapped at the arena {:#x}", record.start);
  }
  return {};
}

}  // namespace

std::variant<std::vector<CodeArena>, std::string> read_code_arenas(
    const memory::MemoryReader& memory, base::RemoteAddress head,
    const std::vector<procfs::Mapping>& maps) {
  std::vector<CodeArena> arenas;
  auto next = memory.read_pointer(head);
  while (next && !next->is_null()) {
    if (arenas.size() == kMostArenas) {
      return fmt::format("the list of arenas does not end within {}", kMostArenas);
    }
    const auto record = memory.read_value<Record>(*next);
    if (!record) {
      break;
    }
    if (auto wrong = implausible(*record, *next, maps); !wrong.empty()) {
      return wrong;
    }
    arenas.push_back(
        {.size_field = *next + offsetof(Record, size), .pinned = record->size == kPinnedSize});
    next = base::RemoteAddress{record->previous};
  }
  if (!next || !next->is_null()) {
    return std::string{"the list of arenas cannot be read"};
  }
  // Before the first activation: the two preceding words are the status, -1 to 1, and an index.
  const auto status = memory.read_value<std::int32_t>(head - 2 * sizeof(std::uint64_t));
  const auto index = memory.read_value<std::int64_t>(head - sizeof(std::uint64_t));
  constexpr std::int64_t kMostIndex = 255;
  if (!status || !index || *status < -1 || *status > 1 || *index < -1 || *index > kMostIndex) {
    return fmt::format("the trampoline's state is not at {:#x}", head.value());
  }
  return arenas;
}

std::optional<bool> has_new_arena(const memory::MemoryReader& memory, base::RemoteAddress head) {
  const auto newest = memory.read_pointer(head);
  if (!newest) {
    return std::nullopt;
  }
  if (newest->is_null()) {
    return false;
  }
  const auto size = memory.read_value<std::uint64_t>(*newest + offsetof(Record, size));
  return size ? std::optional{*size != kPinnedSize} : std::nullopt;
}

std::string unpinned_note(const std::string& problem) {
  return fmt::format(
      "its trampolines may be unmapped at its exit ({}), where daemon threads can then crash "
      "(cpython gh-143228)",
      problem);
}

}  // namespace pyinject::python
