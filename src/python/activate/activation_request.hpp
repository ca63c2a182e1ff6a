// Requests the one call of sys.activate_stack_trampoline() in a process's life while all threads
// are stopped. No Python code runs during the stop.
#pragma once

#include "pyinject/python/injector.hpp"
#include "python/activate/attached_target.hpp"
#include "python/activate/open_request.hpp"

#include <optional>
#include <string>
#include <variant>

namespace pyinject::python {

// A request that will run when the threads continue.
struct Requested {
  Mechanism mechanism = Mechanism::kNone;
  std::uint32_t serial = 0;  // the request has run when Mailbox::done reaches this
  base::Tid main_thread;
  bool filters_unread = false;  // the target has seccomp filters that this tool may not read
  std::string waiting_for;      // where the main thread is, for the message if the deadline passes
};
// Chooses the rung by the state of the main thread (docs/architecture.md, "The ladder"). There is
// never more than one request: one that is queued and has not run is removed and made again with
// the rung that fits now; one that may be running is revalidated if it had been withdrawn. ONLY:
// the rung to use in any case.
[[nodiscard]] std::variant<Requested, NotNow, Refusal> request_activation(
    const AttachedTarget& attached, const Owner& owner, std::optional<Mechanism> only);

}  // namespace pyinject::python
