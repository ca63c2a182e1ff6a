#include "unwind/address_spaces.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace pyinject::unwind {

namespace {

// Mappings of one process that another one has replaced; a just-in-time compiler makes many.
constexpr std::size_t kMostGone = 4096;
constexpr std::size_t kOfNode = 4 * sizeof(void*);  // of a std::map, beside its value

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
  // Programs map and unmap memory all the time, and nothing is looked for in data.
  if (piece.file->executable && piece.from < time && process.gone.size() < kMostGone) {
    process.gone.push_back(piece);
  }
}

AddressSpaces::Pieces& AddressSpaces::to_change(Process& process) {
  if (!process.live) {
    process.live = std::make_shared<Pieces>();
  } else if (process.live.use_count() > 1) {
    const auto bytes = process.live->size() * (sizeof(Pieces::value_type) + kOfNode);
    if (budget_->bytes.take(process.family, bytes)) {
      copied_[process.family] += bytes;
      process.live = std::make_shared<Pieces>(*process.live);
    } else {
      ++emptied_[process.family];
      process.live = std::make_shared<Pieces>();
    }
  }
  return *process.live;
}

void AddressSpaces::insert(Process& process, const Piece& piece) {
  auto& live = to_change(process);
  auto at = live.lower_bound(piece.begin);
  if (at != live.begin() && std::prev(at)->second.end > piece.begin) {
    --at;
  }
  while (at != live.end() && at->second.begin < piece.end) {
    const Piece old = at->second;
    at = live.erase(at);
    retire(process, old, piece.from);
    if (old.begin < piece.begin) {
      Piece left = old;
      left.end = piece.begin;
      live.emplace(left.begin, left);
    }
    if (old.end > piece.end) {
      Piece right = old;
      right.begin = piece.end;
      live.emplace(right.begin, right);
      break;
    }
  }
  live.insert_or_assign(piece.begin, piece);
}

const AddressSpaces::Piece* AddressSpaces::piece_at(const Pieces& pieces, std::uint64_t address) {
  const auto behind = pieces.upper_bound(address);
  return behind == pieces.begin() || std::prev(behind)->second.end <= address
             ? nullptr
             : &std::prev(behind)->second;
}

AddressSpaces::Found AddressSpaces::look_up(ProcessNumber pid, Time time,
                                            std::uint64_t address) const {
  constexpr auto kForEver = ~Time{0};
  const auto found = processes_.find(pid);
  if (found == processes_.end()) {
    return {};
  }
  const auto& process = found->second;
  const auto* const live = process.live ? piece_at(*process.live, address) : nullptr;
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
      const auto* const piece = piece_at(*left->pieces, address);
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
