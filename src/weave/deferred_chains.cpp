#include "weave/deferred_chains.hpp"

#include <utility>

namespace pyinject::weave {

std::size_t DeferredChains::cost(const Chain& chain) {
  constexpr std::size_t kOverhead = 192;  // of the containers
  return kOverhead + chain.addresses.capacity() * sizeof(std::uint64_t);
}

// The records of one round of perf are in the order of the processors that they are from, so a
// chain may precede its sample by up to a round.
void DeferredChains::pass(const perfdata::Record& record) {
  ++passed_;
  if (record.type == perfdata::kFinishedRound) {
    while (!chains_.empty() && chains_.front().number < this_round_) {
      drop_front();
    }
    this_round_ = passed_;
  }
}

const std::vector<std::uint64_t>* DeferredChains::find(const Key& key) {
  for (;;) {
    if (const auto found = by_key_.find(key); found != by_key_.end()) {
      return &found->second->addresses;
    }
    if (!read_next()) {
      return nullptr;
    }
  }
}

// Reads up to the next chain and holds it. False: the end of the file, or no room.
bool DeferredChains::read_next() {
  while (!pending_) {
    const auto record = ahead_.next_head();
    if (!record) {
      return false;
    }
    const auto number = read_++;
    auto chain = perfdata::parse_deferred_chain(*record);
    const auto tid = chain ? ahead_.thread_of(*record) : std::nullopt;
    if (tid) {
      pending_ = Chain{.key = {.tid = *tid, .cookie = chain->cookie},
                       .number = number,
                       .addresses = std::move(chain->addresses)};
    }
  }
  return hold_pending();
}

bool DeferredChains::hold_pending() {
  if (by_key_.contains(pending_->key)) {  // recorded for several events
    pending_.reset();
    return true;
  }
  while (bytes_ + cost(*pending_) > most_bytes_) {
    if (chains_.empty() || chains_.front().number >= passed_) {
      return false;
    }
    drop_front();
  }
  bytes_ += cost(*pending_);
  chains_.push_back(std::move(*pending_));
  by_key_.emplace(chains_.back().key, &chains_.back());
  pending_.reset();
  return true;
}

void DeferredChains::drop_front() {
  bytes_ -= cost(chains_.front());
  by_key_.erase(chains_.front().key);
  chains_.pop_front();
}

}  // namespace pyinject::weave
