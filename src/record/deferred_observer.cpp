#include "record/deferred_observer.hpp"

#include <utility>

namespace pyinject::record {

void DeferredObserver::release(const targets::ActiveTargets& active) {
  if (std::exchange(released_, true)) {
    return;
  }
  for (const auto& event : std::exchange(events_, {})) {
    observer_.on_event(event);
  }
  for (const auto& target : active) {
    observer_.observed(*target);
  }
  if (stats_ != nullptr) {
    observer_.counted(*stats_);
  }
}

void DeferredObserver::on_event(const targets::Event& event) {
  if (released_) {
    observer_.on_event(event);
  } else {
    events_.push_back(event);
  }
}

void DeferredObserver::counted(const targets::Stats& stats) {
  if (released_) {
    observer_.counted(stats);
  } else {
    stats_ = &stats;
  }
}

}  // namespace pyinject::record
