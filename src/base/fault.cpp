#include "base/fault.hpp"

#include <atomic>

namespace pyinject::base {

namespace {
std::atomic<FaultHandler> g_handler{nullptr};
}  // namespace

void set_fault_handler(FaultHandler handler) { g_handler.store(handler); }

void reached(Step step) {
  if (const auto handler = g_handler.load(std::memory_order_relaxed)) {
    handler(step);
  }
}

}  // namespace pyinject::base
