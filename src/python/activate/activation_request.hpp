// The one call of sys.activate_stack_trampoline() in a process's life: how it is asked for, while
// all threads stand still. Nothing of Python runs inside the stop.
#pragma once

#include "pyinject/python/injector.hpp"
#include "python/activate/attached_target.hpp"
#include "python/activate/open_request.hpp"

#include <optional>
#include <string>
#include <variant>

namespace pyinject::python {

// The request is made; it will run when the threads go on.
struct Requested {
  Mechanism mechanism = Mechanism::kNone;
  std::uint32_t serial = 0;  // Mailbox::done reaches it when the request has run
  base::Tid main_thread;
  bool filters_unread = false;  // it has seccomp filters, which this tool may not read
  std::string waiting_for;      // where the main thread is, for the message at the deadline
};
// Chooses the rung by what the main thread does (docs/architecture.md, "The ladder"). There is
// never more than one request: one that is queued and has not run is taken back and made anew, by
// the rung that fits now; one that is on its way is made valid again if it had been withdrawn.
[[nodiscard]] std::variant<Requested, NotNow, Refusal> request_activation(
    const AttachedTarget& attached, const ActivateOptions& options);

}  // namespace pyinject::python
