#include "unwind/address_spaces.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace pyinject::unwind {

namespace {

// Limit on replaced mappings per process; a JIT compiler makes many.
constexpr std::size_t kMostGone = 4096;

}  // namespace

void AddressSpaces::map(Time time, ProcessNumber pid, MappedFile file) {
  if (file.end > file.begin) {
    file.mapped_by = pid;
    files_.push_back(std::move(file));
    changes_.push_back({.time = time, .pid = pid, .what = &files_.back()});
  }
}

void AddressSpaces::fork(Time time, ProcessNumber parent, ProcessNumber child) {
  if (parent != child) {  // otherwise a new thread
    changes_.push_back({.time = time, .pid = child, .what = Fork{parent}});
  }
}

void AddressSpaces::exec(Time time, ProcessNumber pid) {
  changes_.push_back({.time = time, .pid = pid, .what = Exec{}});
}

void AddressSpaces::complete() {
  processes_.clear();
  beginnings_.clear();
  emptied_.clear();
  for (const auto& [family, bytes] : std::exchange(copied_, {})) {
    budget_->bytes.give_back(family, bytes);
  }
  std::ranges::stable_sort(changes_, {}, &Change::time);
  for (const auto& change : changes_) {
    apply(change);
  }
}

void AddressSpaces::apply(const Change& change) {
  if (const auto* const fork = std::get_if<Fork>(&change.what)) {
    const auto parent = processes_.find(fork->parent);
    Process child;
    child.family = fork->parent;
    if (parent != processes_.end()) {
      child.live = parent->second.live;
      child.family = parent->second.family;
    }
    child.changed = change.time;
    beginnings_[change.pid].push_back({.time = change.time, .parent = fork->parent});
    processes_[change.pid] = std::move(child);
    return;
  }
  const auto [known, is_new] = processes_.try_emplace(change.pid);
  auto& process = known->second;
  process.changed = change.time;
  if (is_new || std::holds_alternative<Exec>(change.what)) {
    process.family = change.pid;
  }
  if (std::holds_alternative<Exec>(change.what)) {
    if (process.live && process.left.size() < kMostGone) {
      process.left.push_back({.pieces = std::move(process.live), .until = change.time});
    }
    process.live.reset();
    beginnings_[change.pid].push_back({.time = change.time, .parent = std::nullopt});
    return;
  }
  const auto* const file = std::get<const MappedFile*>(change.what);
  insert(process, {.begin = file->begin, .end = file->end, .from = change.time, .file = file});
}

void AddressSpaces::retire(Process& process, Piece piece, Time time) {
  piece.until = time;
  // Programs map and unmap data all the time, and lookups only need code.
  if (piece.file->executable && piece.from < time && process.gone.size() < kMostGone) {
    process.gone.push_back(piece);
  }
}

bool AddressSpaces::may_copy(const Process& process, std::uint64_t bytes) {
  if (bytes == 0) {
    return true;
  }
  const bool may = budget_->bytes.take(process.family, bytes);
  copied_[process.family] += may ? bytes : 0;
  return may;
}

Pieces& AddressSpaces::to_change(Process& process, const Piece& piece) {
  if (!process.live) {
    process.live = std::make_shared<Pieces>();
    return *process.live;
  }
  bool may = true;
  if (process.live.use_count() > 1) {
    may = may_copy(process, process.live->cost_of_copy());
    if (may) {
      process.live = std::make_shared<Pieces>(*process.live);
    }
  }
  if (!may || !may_copy(process, process.live->cost_of_put(piece))) {
    ++emptied_[process.family];
    process.live = std::make_shared<Pieces>();
  }
  return *process.live;
}

void AddressSpaces::insert(Process& process, const Piece& piece) {
  to_change(process, piece).put(piece, [&](const Piece& old) { retire(process, old, piece.from); });
}

AddressSpaces::Found AddressSpaces::look_up(ProcessNumber pid, Time time,
                                            std::uint64_t address) const {
  constexpr auto kForEver = ~Time{0};
  const auto found = processes_.find(pid);
  if (found == processes_.end()) {
    return {};
  }
  const auto& process = found->second;
  const auto* const live = process.live ? process.live->at(address) : nullptr;
  if (live != nullptr && live->from <= time) {
    return {.file = live->file, .from = live->from, .until = kForEver};
  }
  std::size_t steps = 0;
  if (time < process.changed) {
    steps = process.gone.size();
    for (const auto& piece : process.gone) {
      if (piece.begin <= address && address < piece.end && piece.from <= time &&
          time < piece.until) {
        return {.file = piece.file, .from = piece.from, .until = piece.until, .steps = steps};
      }
    }
    const auto left = std::ranges::upper_bound(process.left, time, {}, &Image::until);
    if (left != process.left.end()) {
      const auto* const piece = left->pieces->at(address);
      return piece != nullptr && piece->from <= time ? Found{.file = piece->file,
                                                             .from = piece->from,
                                                             .until = left->until,
                                                             .steps = steps}
                                                     : Found{.steps = steps};
    }
  }
  if (live != nullptr) {
    return {.file = live->file, .from = 0, .until = 0, .steps = steps};
  }
  return {.file = nullptr, .from = process.changed, .until = kForEver, .steps = steps};
}

ProcessNumber AddressSpaces::family(ProcessNumber pid) const {
  const auto found = processes_.find(pid);
  return found == processes_.end() ? pid : found->second.family;
}

std::optional<Time> AddressSpaces::settled_since(ProcessNumber pid) const {
  const auto found = processes_.find(pid);
  return found == processes_.end() ? std::nullopt : std::optional{found->second.changed};
}

const AddressSpaces::Beginning* AddressSpaces::beginning(ProcessNumber pid, Time time) const {
  const auto found = beginnings_.find(pid);
  if (found == beginnings_.end()) {
    return nullptr;
  }
  const auto later = std::ranges::upper_bound(found->second, time, {}, &Beginning::time);
  return later == found->second.begin() ? nullptr : &*std::prev(later);
}

std::optional<AddressSpaces::Origin> AddressSpaces::origin(ProcessNumber pid, Time time) const {
  const auto* const begun = beginning(pid, time);
  return begun == nullptr || !begun->parent
             ? std::nullopt
             : std::optional{Origin{.parent = *begun->parent, .time = begun->time}};
}

Time AddressSpaces::began(ProcessNumber pid, Time time) const {
  const auto* const begun = beginning(pid, time);
  return begun == nullptr ? 0 : begun->time;
}

}  // namespace pyinject::unwind
