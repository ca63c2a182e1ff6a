#include "bpf/table_memory.hpp"

#include "pyinject/base/unique_fd.hpp"

#include <algorithm>

#include <sys/mman.h>

#if PYINJECT_BPF
#include <bpf/bpf.h>
#endif

namespace pyinject::bpf {

namespace {

constexpr std::size_t kSegmentBytes = std::size_t{NATIVE_SEGMENT_WORDS} * sizeof(std::uint32_t);
constexpr std::size_t kRuleBytes = std::size_t{UNWIND_MOST_RULES} * sizeof(unwind_rule);

// nullptr: it cannot be mapped.
void* map_memory(int map, std::size_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

#if PYINJECT_BPF
base::UniqueFd make_segment() {
  bpf_map_create_opts options{};
  options.sz = sizeof options;
  options.map_flags = BPF_F_MMAPABLE;
  return base::UniqueFd{bpf_map_create(BPF_MAP_TYPE_ARRAY, "segment", sizeof(std::uint32_t),
                                       kSegmentBytes, 1, &options)};
}
#else
base::UniqueFd make_segment() { return {}; }
#endif

}  // namespace

#if PYINJECT_BPF
bool set_entry(int map, std::uint32_t key, const void* value) {
  return bpf_map_update_elem(map, &key, value, BPF_ANY) == 0;
}

void drop_entry(int map, std::uint32_t key) { (void)bpf_map_delete_elem(map, &key); }
#else
bool set_entry(int /*map*/, std::uint32_t /*key*/, const void* /*value*/) { return false; }
void drop_entry(int /*map*/, std::uint32_t /*key*/) {}
#endif

TableSegments::~TableSegments() {
  for (auto* const words : memory_) {
    ::munmap(words, kSegmentBytes);
  }
}

bool TableSegments::add() {
  if (memory_.size() >= NATIVE_MOST_SEGMENTS) {
    return false;
  }
  const auto map = make_segment();
  void* const memory = map.valid() ? map_memory(map.get(), kSegmentBytes) : nullptr;
  if (memory == nullptr) {
    return false;
  }
  const auto descriptor = static_cast<std::uint32_t>(map.get());
  if (!set_entry(map_, static_cast<std::uint32_t>(memory_.size()), &descriptor)) {
    ::munmap(memory, kSegmentBytes);
    return false;
  }
  memory_.push_back(static_cast<std::uint32_t*>(memory));
  used_ = 0;
  return true;
}

std::optional<TableSegments::Place> TableSegments::allocate(std::size_t words) {
  constexpr std::size_t kAlignment = NATIVE_MAPPING_WORDS;
  words = (words + kAlignment - 1) / kAlignment * kAlignment;
  if (words > room() && (words > NATIVE_SEGMENT_WORDS || !add())) {
    return std::nullopt;
  }
  const Place place{.segment = static_cast<std::uint16_t>(memory_.size() - 1),
                    .word = static_cast<std::uint32_t>(used_)};
  used_ += words;
  return place;
}

TableRules::TableRules(int map) : memory_{static_cast<unwind_rule*>(map_memory(map, kRuleBytes))} {}

TableRules::~TableRules() {
  if (memory_ != nullptr) {
    ::munmap(memory_, kRuleBytes);
  }
}

void TableRules::publish() {
  const auto all = rules_.all();
  std::copy(all.begin() + static_cast<std::ptrdiff_t>(published_), all.end(), memory_ + published_);
  published_ = all.size();
}

}  // namespace pyinject::bpf
