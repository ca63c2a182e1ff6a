#include "why/wait_use.hpp"

#include "inspect/connection.hpp"

namespace pyinject::why {

namespace {

Use of_futex(const Sighting* sighting) {
  if (sighting == nullptr) {
    return Use::kFutex;
  }
  switch (sighting->object) {
    case Sighting::Object::kLock:
      return Use::kLock;
    case Sighting::Object::kThread:
      return Use::kThread;
    case Sighting::Object::kNone:
      break;
  }
  return Use::kFutex;
}

// WORK, but for what only snapshots tell.
Use of_work(Use work, const Sighting* sighting) {
  switch (work) {
    case Use::kFutex:
      return of_futex(sighting);
    case Use::kSignal:
      return Use::kSleep;
    default:
      return sighting == nullptr
                 ? work
                 : inspect::use_of_connection(work, sighting->connected, sighting->by_client);
  }
}

}  // namespace

WaitUses::WaitUses(const Recording& recording) {
  for (const auto& sighting : recording.sightings) {
    if (sighting.stack != 0 && sighting.gil != sample::Gil::kWaitedFor) {
      auto& known = by_stack_[sighting.stack];
      if (known == nullptr || known->object == Sighting::Object::kNone) {
        known = &sighting;
      }
    }
  }
}

WaitUses::Found WaitUses::of(const WaitFacts& facts) const {
  const auto* sighting = facts.sighting;
  if (facts.gil == sample::Gil::kWaitedFor ||
      (sighting != nullptr && sighting->gil == sample::Gil::kWaitedFor)) {
    return {.use = Use::kGil};
  }
  const auto work = facts.work != Use::kUnknown ? facts.work
                    : sighting != nullptr       ? sighting->work
                                                : Use::kUnknown;
  if (sighting == nullptr || (work == Use::kFutex && sighting->object == Sighting::Object::kNone)) {
    const auto known = by_stack_.find(facts.stack);
    sighting = known != by_stack_.end() && known->second->work == work ? known->second : sighting;
  }
  return {.use = of_work(work, sighting), .sighting = sighting};
}

}  // namespace pyinject::why
