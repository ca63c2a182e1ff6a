#include "bpf/native_tables.hpp"

#include "elf/load_bias.hpp"
#include "elf/vdso.hpp"
#include "memory/process_memory.hpp"
#include "procfs/open_mapped.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>
#include <variant>

namespace pyinject::bpf {

namespace {

using std::chrono::steady_clock;

constexpr std::uint64_t kBytes = std::uint64_t{192} << 20U;
constexpr std::uint64_t kSteps = 1'000'000'000;  // some nanoseconds each
constexpr std::uint64_t kStepsToOpen = 20'000;
constexpr std::size_t kMostMappings = 16384;  // of a process
constexpr std::size_t kLeastCapacity = 64;
// A program that still reads a replaced range ends long before.
constexpr std::chrono::seconds kUntilReused{2};
constexpr std::int64_t kNoTime = -1;

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

bool same(const native_mapping& one, const native_mapping& other) {
  return std::memcmp(&one, &other, sizeof one) == 0;
}

std::size_t hash_of(const std::vector<native_mapping>& mappings) {
  return std::hash<std::string_view>{}(
      {reinterpret_cast<const char*>(mappings.data()), mappings.size() * sizeof(native_mapping)});
}

bool can_have_table(const procfs::Mapping& mapping) {
  return mapping.path.starts_with('/') && mapping.inode != 0;
}

native_mapping without_table(std::uint64_t begin, std::uint64_t end) {
  native_mapping mapping{};
  mapping.begin = begin;
  mapping.end = end;
  mapping.kind = NATIVE_NO_TABLE;
  return mapping;
}

// The same, but CPython's and libffi's trampolines have rules.
native_mapping generated_code(base::Pid pid, std::uint64_t begin, std::uint64_t end) {
  std::array<std::byte, 576> bytes{};
  if (end - begin < bytes.size() ||
      !memory::ProcessMemory{pid}.read(base::RemoteAddress{begin}, bytes)) {
    return without_table(begin, end);
  }
  auto mapping = recognise_trampolines(bytes).value_or(without_table(begin, end));
  mapping.begin = begin;
  mapping.end = end;
  return mapping;
}

}  // namespace

NativeTables::NativeTables(const Maps& maps)
    : maps_{maps}, bytes_{kBytes}, steps_{kSteps}, rule_budget_{UNWIND_MOST_RULES} {}

bool NativeTables::knows(base::Pid pid) const {
  const std::lock_guard lock{mutex_};
  return ranges_.contains(static_cast<std::uint32_t>(pid.value()));
}

bool NativeTables::scan(base::Pid pid) {
  const std::lock_guard lock{mutex_};
  const auto maps = procfs::read_maps(pid);
  if (!maps || maps->empty() || !rules_.usable()) {
    return false;
  }
  std::vector<native_mapping> mappings;
  std::vector<std::shared_ptr<File>> files;
  for (const auto& each : *maps) {
    if (!each.executable || each.path == "[vsyscall]") {
      continue;
    }
    const auto begin = each.begin.value();
    const auto end = each.end.value();
    const auto file = file_of(pid, each);
    const auto bias =
        file ? elf::load_bias(file->segments, each.begin, each.offset, true) : std::nullopt;
    auto done = begin;
    const auto start = bias ? elf::start_of(file->segments, *bias) : elf::FileStart{};
    if (bias && procfs::shows(*maps, each, start.address, start.offset)) {
      files.push_back(file);
      for (const auto& piece : file->pieces) {
        const auto from = std::max(piece.begin + bias->value(), begin);
        const auto to = std::min(piece.end + bias->value(), end);
        if (from >= to || from < done) {
          continue;
        }
        if (from > done) {
          mappings.push_back(without_table(done, from));
        }
        native_mapping mapping{};
        mapping.begin = from;
        mapping.end = to;
        mapping.place = static_cast<std::uint32_t>(from - bias->value() - piece.begin);
        mapping.chunks = piece.chunks;
        mapping.word = piece.place.word;
        mapping.segment = piece.place.segment;
        mapping.kind = NATIVE_TABLE;
        mappings.push_back(mapping);
        done = to;
      }
    }
    if (done < end) {
      mappings.push_back(done == begin ? generated_code(pid, begin, end)
                                       : without_table(done, end));
    }
    if (mappings.size() >= kMostMappings) {
      mappings.resize(kMostMappings);
      break;
    }
  }
  rules_.publish();
  const auto number = static_cast<std::uint32_t>(pid.value());
  const auto known = ranges_.find(number);
  if (known != ranges_.end() && std::ranges::equal(known->second->mappings, mappings, same)) {
    publish(pid, known->second.get());  // an exec may have removed it
    return false;
  }
  const auto hash = hash_of(mappings);
  auto range = range_like(mappings, hash);
  if (!range) {
    range = place_range(std::move(mappings), std::move(files), number);
    if (range) {
      range->hash = hash;
      by_hash_.emplace(hash, range);
    }
  }
  release(pid);
  if (range) {
    ranges_.emplace(number, range);
  }
  publish(pid, range.get());
  return true;
}

// Not by a comparison with each process: a family of processes could map thousands of files each.
std::shared_ptr<NativeTables::Range> NativeTables::range_like(
    const std::vector<native_mapping>& mappings, std::size_t hash) const {
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto each = first; each != last; ++each) {
    auto range = each->second.lock();
    if (range && std::ranges::equal(range->mappings, mappings, same)) {
      return range;
    }
  }
  return nullptr;
}

void NativeTables::forked(base::Pid parent, base::Pid child) {
  const std::lock_guard lock{mutex_};
  const auto known = ranges_.find(static_cast<std::uint32_t>(parent.value()));
  if (known == ranges_.end()) {
    return;
  }
  const auto range = known->second;
  release(child);
  ranges_.emplace(static_cast<std::uint32_t>(child.value()), range);
}

void NativeTables::forget(base::Pid pid) {
  const std::lock_guard lock{mutex_};
  release(pid);
  publish(pid, nullptr);
}

// Drops the process's range, which others may share.
void NativeTables::release(base::Pid pid) {
  auto node = ranges_.extract(static_cast<std::uint32_t>(pid.value()));
  if (node.empty()) {
    return;
  }
  const auto range = std::move(node.mapped());
  if (range.use_count() == 1) {
    const auto [first, last] = by_hash_.equal_range(range->hash);
    const auto own =
        std::find_if(first, last, [&](const auto& each) { return each.second.lock() == range; });
    if (own != last) {
      by_hash_.erase(own);
    }
    bytes_.give_back(range->spender, range->capacity * sizeof(native_mapping));
    retired_.push_back(
        {.place = range->place, .capacity = range->capacity, .since = steady_clock::now()});
  }
}

void NativeTables::publish(base::Pid pid, const Range* range) const {
  const auto key = static_cast<std::uint32_t>(pid.value());
  if (range == nullptr) {
    drop_entry(maps_.natives, key);
    return;
  }
  const native_process process{
      .epoch = range->epoch,
      .segment = range->place.segment,
      .first = range->place.word / NATIVE_MAPPING_WORDS,
      .count = static_cast<__u32>(range->mappings.size()),
  };
  (void)set_entry(maps_.natives, key, &process);
}

std::shared_ptr<NativeTables::File> NativeTables::file_of(base::Pid pid,
                                                          const procfs::Mapping& mapping) {
  const auto spender = static_cast<base::Budget::Spender>(pid.value());
  if (mapping.path == "[vdso]") {
    if (!vdso_) {
      vdso_ = compile(elf::copy_of_vdso(), spender);
    }
    return vdso_;
  }
  if (!can_have_table(mapping)) {
    return nullptr;
  }
  // While a process has it mapped, no other file gets its inode, and later none with the same time
  // of change. Of btrfs's subvolumes (images of containers), maps shows the same device.
  const auto facts = procfs::stat_mapped_file(pid, mapping);
  const auto key =
      facts ? FileKey{facts->st_dev, 0, facts->st_ino, nanoseconds(facts->st_ctim)}
            : FileKey{mapping.device_major, mapping.device_minor, mapping.inode, kNoTime};
  auto& known = files_[key];
  if (auto file = known.lock(); file && !file->refused) {
    return file;
  }
  if (!steps_.take(spender, kStepsToOpen)) {
    return nullptr;
  }
  auto opened = procfs::open_mapped_file(pid, mapping);
  auto* const descriptor = std::get_if<base::UniqueFd>(&opened);
  if (descriptor == nullptr) {
    return nullptr;
  }
  auto file = compile(std::move(*descriptor), spender);
  known = file;
  if (facts && !file->refused) {
    kept_.push_back(file);
  }
  return file;
}

std::shared_ptr<NativeTables::File> NativeTables::compile(base::UniqueFd descriptor,
                                                          base::Budget::Spender spender) {
  auto file = std::make_shared<File>();
  auto opened = elf::ElfFile::open(std::move(descriptor));
  const auto* const elf = std::get_if<elf::ElfFile>(&opened);
  if (elf == nullptr) {
    return file;
  }
  file->segments = elf->segments();
  elf::UnwindTableLimits limits{.bytes = base::Allowance{bytes_.left(spender)},
                                .steps = base::Allowance{steps_.left(spender)},
                                .new_rules = base::Allowance{rule_budget_.left(spender)}};
  const auto table = elf::compile_unwind_table(*elf, rules_.rules(), limits);
  steps_.charge(spender, limits.steps.taken());
  rule_budget_.charge(spender, limits.new_rules.taken());
  file->refused =
      limits.bytes.exhausted() || limits.steps.exhausted() || limits.new_rules.exhausted();
  if (table && place_table(*table, *file)) {
    bytes_.charge(spender, (table->index.size() + table->rows.size()) * sizeof(std::uint32_t));
  } else {
    file->pieces.clear();
  }
  return file;
}

// Distributes the table over as many segments as it needs.
bool NativeTables::place_table(const elf::UnwindTable& table, File& file) {
  constexpr std::uint64_t kChunk = std::uint64_t{1} << UNWIND_CHUNK_BITS;
  constexpr std::size_t kWorthwhile = 4096;  // words left in a segment
  const auto chunks = static_cast<std::uint32_t>(table.index.size() - 1);
  // The index, the row in force before the first chunk, and the rows.
  const auto words_for = [&](std::uint32_t from, std::uint32_t to) {
    return std::size_t{to - from} + 2 + (table.index[to] - table.index[from]);
  };
  for (std::uint32_t from = 0; from < chunks;) {
    if (segments_.room() < kWorthwhile && !segments_.add()) {
      return false;
    }
    std::uint32_t to = from;
    for (std::uint32_t step = std::bit_ceil(chunks - from); step > 0; step /= 2) {
      if (to + step <= chunks && words_for(from, to + step) <= segments_.room()) {
        to += step;
      }
    }
    const auto place = to == from ? std::nullopt : segments_.allocate(words_for(from, to));
    if (!place) {
      return false;
    }
    auto* const index = segments_.words(*place);
    const auto rows = (to - from) + 2;
    const auto first = table.index[from];
    for (auto chunk = from; chunk <= to; ++chunk) {
      index[chunk - from] = place->word + rows + (table.index[chunk] - first);
    }
    constexpr std::uint32_t kRule = 0xffff;
    index[rows - 1] = first == 0 ? 0 : table.rows[first - 1] & kRule;
    std::copy(table.rows.begin() + first, table.rows.begin() + table.index[to], index + rows);
    const auto begin = table.begin.value() + from * kChunk;
    const auto end = std::min(table.end.value(), table.begin.value() + to * kChunk);
    if (begin < end) {
      file.pieces.push_back({.begin = begin, .end = end, .chunks = to - from, .place = *place});
    }
    from = to;
  }
  return true;
}

std::shared_ptr<NativeTables::Range> NativeTables::place_range(
    std::vector<native_mapping> mappings, std::vector<std::shared_ptr<File>> files,
    base::Budget::Spender spender) {
  const auto capacity = std::bit_ceil(std::max(mappings.size(), kLeastCapacity));
  if (!bytes_.take(spender, capacity * sizeof(native_mapping))) {
    return nullptr;
  }
  const auto place = allocate_range(capacity);
  if (!place) {
    bytes_.give_back(spender, capacity * sizeof(native_mapping));
    return nullptr;
  }
  std::memcpy(segments_.words(*place), mappings.data(), mappings.size() * sizeof(native_mapping));
  return std::make_shared<Range>(Range{.mappings = std::move(mappings),
                                       .files = std::move(files),
                                       .place = *place,
                                       .capacity = capacity,
                                       .epoch = ++epoch_,
                                       .spender = spender});
}

std::optional<TableSegments::Place> NativeTables::allocate_range(std::size_t capacity) {
  const auto now = steady_clock::now();
  const auto fits = [&](const Retired& retired) {
    return retired.capacity == capacity && retired.since + kUntilReused <= now;
  };
  if (const auto found = std::ranges::find_if(retired_, fits); found != retired_.end()) {
    const auto place = found->place;
    retired_.erase(found);
    return place;
  }
  return segments_.allocate(capacity * NATIVE_MAPPING_WORDS);
}

}  // namespace pyinject::bpf
