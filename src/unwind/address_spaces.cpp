#include "pyinject/unwind/address_spaces.hpp"

#include <algorithm>
#include <utility>

namespace pyinject::unwind {

namespace {

// Mappings of one process that another one has replaced; a just-in-time compiler makes many.
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
  if (parent != child) {  // else a new thread
    changes_.push_back({.time = time, .pid = child, .what = Fork{parent}});
  }
}

void AddressSpaces::exec(Time time, ProcessNumber pid) {
  changes_.push_back({.time = time, .pid = pid, .what = Exec{}});
}

void AddressSpaces::complete() {
  processes_.clear();
  std::ranges::stable_sort(changes_, {}, &Change::time);
  for (const auto& change : changes_) {
    apply(change);
  }
}

void AddressSpaces::apply(const Change& change) {
  if (const auto* const fork = std::get_if<Fork>(&change.what)) {
    const auto parent = processes_.find(fork->parent);
    Process child;
    if (parent != processes_.end()) {
      child.live = parent->second.live;
      for (auto& [begin, piece] : child.live) {
        piece.from = change.time;
      }
    }
    child.changed = change.time;
    child.origin = Origin{.parent = fork->parent, .time = change.time};
    processes_[change.pid] = std::move(child);
    return;
  }
  auto& process = processes_[change.pid];
  process.changed = change.time;
  if (std::holds_alternative<Exec>(change.what)) {
    for (auto& [begin, piece] : std::exchange(process.live, {})) {
      retire(process, piece, change.time);
    }
    process.origin.reset();
    return;
  }
  const auto* const file = std::get<const MappedFile*>(change.what);
  insert(process, {.begin = file->begin, .end = file->end, .from = change.time, .file = file});
}

void AddressSpaces::retire(Process& process, Piece piece, Time time) {
  piece.until = time;
  if (piece.from < time && process.gone.size() < kMostGone) {
    process.gone.push_back(piece);
  }
}

void AddressSpaces::insert(Process& process, const Piece& piece) {
  auto at = process.live.lower_bound(piece.begin);
  if (at != process.live.begin() && std::prev(at)->second.end > piece.begin) {
    --at;
  }
  while (at != process.live.end() && at->second.begin < piece.end) {
    const Piece old = at->second;
    at = process.live.erase(at);
    retire(process, old, piece.from);
    if (old.begin < piece.begin) {
      Piece left = old;
      left.end = piece.begin;
      process.live.emplace(left.begin, left);
    }
    if (old.end > piece.end) {
      Piece right = old;
      right.begin = piece.end;
      at = process.live.emplace(right.begin, right).first;
      break;
    }
  }
  process.live.insert_or_assign(piece.begin, piece);
}

const MappedFile* AddressSpaces::find(ProcessNumber pid, Time time, std::uint64_t address) const {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) {
    return nullptr;
  }
  const auto& process = found->second;
  if (time < process.changed) {
    for (const auto& piece : process.gone) {
      if (piece.begin <= address && address < piece.end && piece.from <= time &&
          time < piece.until) {
        return piece.file;
      }
    }
  }
  const auto behind = process.live.upper_bound(address);
  if (behind == process.live.begin() || std::prev(behind)->second.end <= address) {
    return nullptr;
  }
  return std::prev(behind)->second.file;
}

std::optional<Time> AddressSpaces::settled_since(ProcessNumber pid) const {
  const auto found = processes_.find(pid);
  return found == processes_.end() ? std::nullopt : std::optional{found->second.changed};
}

std::optional<AddressSpaces::Origin> AddressSpaces::origin(ProcessNumber pid) const {
  const auto found = processes_.find(pid);
  return found == processes_.end() ? std::nullopt : found->second.origin;
}

}  // namespace pyinject::unwind
