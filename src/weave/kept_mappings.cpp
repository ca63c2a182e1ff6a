#include "weave/kept_mappings.hpp"

#include <algorithm>
#include <iterator>

#include <sys/mman.h>

namespace pyinject::weave {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kLast = ~std::uint64_t{0} - kPage;

// Values are not trusted: saturates.
std::uint64_t end_of(std::uint64_t begin, std::uint64_t length) {
  if (begin >= kLast) {
    return begin;
  }
  const auto end = begin + std::min(length, kLast - begin);
  return (end + kPage - 1) / kPage * kPage;
}

void add_to(std::uint64_t& sum, std::uint64_t bytes) {
  if (__builtin_add_overflow(sum, bytes, &sum)) {
    sum = ~std::uint64_t{0};
  }
}

bool failed(std::uint64_t result) { return result >= ~std::uint64_t{0} - (kPage - 1); }

}  // namespace

void KeptMappings::add(const Moment& moment) {
  if (!full()) {
    moments_.push_back(moment);
  }
}

void KeptMappings::enters(Thread thread, std::uint64_t time, Kind kind,
                          const Arguments& arguments) {
  add({.time = time, .thread = thread, .what = What::kEnters, .kind = kind, .values = arguments});
}

void KeptMappings::leaves(Thread thread, std::uint64_t time, Kind kind, std::uint64_t result) {
  add({.time = time, .thread = thread, .what = What::kLeaves, .kind = kind, .values = {result}});
}

void KeptMappings::ends(std::uint32_t pid, std::uint64_t time) {
  add({.time = time, .thread = {.pid = pid, .tid = 0}, .what = What::kEnds});
}

KeptMappings::Owner KeptMappings::owner(std::uint32_t tid, std::uint64_t time) {
  owners_.push_back({.tid = tid, .time = time});
  return static_cast<Owner>(owners_.size() - 1);
}

KeptMappings::Pieces KeptMappings::remove(Pieces& pieces, std::uint64_t begin, std::uint64_t end) {
  Pieces removed;
  auto each = pieces.upper_bound(begin);
  if (each != pieces.begin() && std::prev(each)->second.end > begin) {
    --each;
  }
  while (each != pieces.end() && each->first < end) {
    const auto [from, piece] = *each;
    each = pieces.erase(each);
    if (from < begin) {
      pieces.emplace(from, Piece{.end = begin, .owner = piece.owner});
    }
    if (piece.end > end) {
      pieces.emplace(end, Piece{.end = piece.end, .owner = piece.owner});
    }
    const auto first = std::max(from, begin);
    const auto last = std::min(piece.end, end);
    removed.emplace(first, Piece{.end = last, .owner = piece.owner});
    owners_[piece.owner].bytes -= last - first;
  }
  return removed;
}

void KeptMappings::insert(Pieces& pieces, std::uint64_t begin, std::uint64_t end, Owner owner) {
  if (begin < end) {
    remove(pieces, begin, end);
    pieces.emplace(begin, Piece{.end = end, .owner = owner});
    owners_[owner].bytes += end - begin;
  }
}

void KeptMappings::map(Pieces& pieces, std::uint64_t begin, std::uint64_t end, Owner owner) {
  insert(pieces, begin, end, owner);
  add_to(mapped_, begin < end ? end - begin : 0);
}

void KeptMappings::fill(Pieces& pieces, std::uint64_t begin, std::uint64_t end, Owner owner) {
  const auto known = remove(pieces, begin, end);
  auto from = begin;
  for (const auto& [next, piece] : known) {
    map(pieces, from, next, owner);
    insert(pieces, next, piece.end, piece.owner);
    from = piece.end;
  }
  map(pieces, from, end, owner);
}

void KeptMappings::free(Process& process, std::uint64_t address) {
  if (const auto block = process.blocks.find(address); block != process.blocks.end()) {
    owners_[block->second].bytes = 0;
    process.blocks.erase(block);
  }
}

// A block at the address of another one: that one was freed, and the record of it is lost.
void KeptMappings::allocate(const Moment& moment) {
  const auto [address, size, weight] = moment.values;
  auto& process = processes_[moment.thread.pid];
  free(process, address);
  const auto number = owner(moment.thread.tid, moment.time);
  owners_[number].bytes = weight;
  process.blocks.emplace(address, number);
  add_to(mapped_, weight);
}

// What another thread maps at the same addresses meanwhile is mapped after this.
void KeptMappings::enter(const Moment& moment) {
  if (moment.kind == Kind::kAllocate) {
    allocate(moment);
    return;
  }
  if (moment.kind == Kind::kFree) {
    free(processes_[moment.thread.pid], moment.values[0]);
    return;
  }
  auto& call = pending_[moment.thread.tid];
  call = {.kind = moment.kind, .time = moment.time, .arguments = moment.values};
  if (moment.kind == Kind::kUnmap || moment.kind == Kind::kRemap) {
    const auto [begin, length, unused] = moment.values;
    call.moved = remove(processes_[moment.thread.pid].pieces, begin, end_of(begin, length));
  }
}

// What was mapped stays with the call that mapped it; what is new is this call's.
void KeptMappings::remap(Process& process, const Pending& call, std::uint32_t tid,
                         std::uint64_t result) {
  const auto [old, old_length, new_length] = call.arguments;
  const bool moves = !failed(result);
  const auto from = moves ? result : old;
  const auto end = end_of(from, moves ? new_length : old_length);
  for (const auto& [begin, piece] : call.moved) {
    const auto first = from + (begin - old);
    insert(process.pieces, first, std::min(end, first + (piece.end - begin)), piece.owner);
  }
  const auto grown_from = end_of(from, old_length);
  if (moves && end > grown_from) {
    map(process.pieces, grown_from, end, owner(tid, call.time));
  }
}

void KeptMappings::set_heap_end(Process& process, const Pending& call, std::uint32_t tid,
                                std::uint64_t result) {
  const auto last = std::exchange(process.heap_end, result);
  if (!last) {
    // brk(0) asks where the end is.
    unknown_ += call.arguments[0] == 0 ? 0 : 1;
  } else if (*last < result) {
    map(process.pieces, *last, result, owner(tid, call.time));
  } else {
    remove(process.pieces, result, *last);
  }
}

void KeptMappings::leave(const Moment& moment) {
  const auto tid = moment.thread.tid;
  const auto found = pending_.find(tid);
  if (found == pending_.end() || found->second.kind != moment.kind) {
    return;
  }
  const auto call = std::move(found->second);
  pending_.erase(found);
  auto& process = processes_[moment.thread.pid];
  const auto result = moment.values[0];
  const auto [begin, length, protection] = call.arguments;
  switch (call.kind) {
    case Kind::kMap:
      if (failed(result)) {
        break;
      }
      if (protection == PROT_NONE) {  // an address range without memory, as yet
        remove(process.pieces, result, end_of(result, length));
        break;
      }
      map(process.pieces, result, end_of(result, length), owner(tid, call.time));
      break;
    case Kind::kUnmap:
    case Kind::kAllocate:
    case Kind::kFree:
      break;
    case Kind::kRemap:
      remap(process, call, tid, result);
      break;
    case Kind::kBreak:
      set_heap_end(process, call, tid, result);
      break;
    case Kind::kProtect:
      if (failed(result)) {
        break;
      }
      if (protection == PROT_NONE) {
        remove(process.pieces, begin, end_of(begin, length));
      } else if ((protection & PROT_WRITE) != 0) {
        fill(process.pieces, begin, end_of(begin, length), owner(tid, call.time));
      }
      break;
  }
}

void KeptMappings::end(std::uint32_t pid) {
  if (const auto process = processes_.find(pid); process != processes_.end()) {
    remove(process->second.pieces, 0, ~std::uint64_t{0});
    for (const auto& [address, number] : process->second.blocks) {
      owners_[number].bytes = 0;
    }
    processes_.erase(process);
  }
}

void KeptMappings::complete(std::uint64_t young_since) {
  std::ranges::stable_sort(moments_, {}, &Moment::time);
  for (const auto& moment : moments_) {
    switch (moment.what) {
      case What::kEnters:
        enter(moment);
        break;
      case What::kLeaves:
        leave(moment);
        break;
      case What::kEnds:
        end(moment.thread.pid);
        break;
    }
  }
  for (const auto& call : owners_) {
    if (call.time >= young_since) {
      add_to(young_, call.bytes);
    } else if (call.bytes != 0) {
      add_to(kept_of_[{call.tid, call.time}], call.bytes);
      add_to(kept_, call.bytes);
    }
  }
}

std::uint64_t KeptMappings::of(std::uint32_t tid, std::uint64_t time) const {
  const auto found = kept_of_.find({tid, time});
  return found == kept_of_.end() ? 0 : found->second;
}

}  // namespace pyinject::weave
