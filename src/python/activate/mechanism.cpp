#include "pyinject/python/injector.hpp"

namespace pyinject::python {

std::string_view name(Mechanism mechanism) {
  switch (mechanism) {
    case Mechanism::kNone:
      return "none";
    case Mechanism::kStore:
      return "store";
    case Mechanism::kPendingQueue:
      return "pending queue";
    case Mechanism::kPendingQueueWakeup:
      return "pending queue + EINTR";
    case Mechanism::kPendingCallFrames:
      return "signal frames, pending call";
    case Mechanism::kGilFrames:
      return "signal frames, GIL";
  }
  return "unknown";
}

}  // namespace pyinject::python
