// Switches off what is on, and cancels requests that have not run.
#pragma once

#include "pyinject/base/deadline.hpp"
#include "pyinject/python/injector.hpp"
#include "python/activate/attached_target.hpp"

#include <optional>
#include <variant>

namespace pyinject::python {

// Run it once.
class Deactivate {
 public:
  Deactivate(const AttachContext& context, const DeactivateOptions& options)
      : context_{context}, options_{options}, deadline_{base::Deadline::after(options.deadline)} {}

  std::variant<Deactivation, Refusal> run();

 private:
  // False: not settled, try again.
  [[nodiscard]] bool attempt(const AttachedTarget& attached);
  [[nodiscard]] bool settle(const AttachedTarget& attached, Mailbox mailbox);
  [[nodiscard]] bool concerns_us(const Mailbox& mailbox);
  [[nodiscard]] bool nothing_to_do() const;
  [[nodiscard]] bool switched_off_by_itself() const;
  [[nodiscard]] bool others_session();
  void blank_open_request();
  void blank_payload() const;

  const AttachContext& context_;
  const DeactivateOptions& options_;
  base::Deadline deadline_;
  Deactivation result_;
  std::optional<Refusal> refusal_;
};

}  // namespace pyinject::python
