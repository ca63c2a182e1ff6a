// One activation, from the first stop to the confirmed effect; see docs/architecture.md, "One
// activation".
#pragma once

#include "pyinject/base/deadline.hpp"
#include "pyinject/python/injector.hpp"
#include "python/activate/activation_request.hpp"
#include "python/activate/attached_target.hpp"
#include "python/activate/open_map.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace pyinject::python {

// Run it once. A refusal leaves nothing changed, except that the once-per-process call may have
// been used up.
class Activate {
 public:
  // ONLY: the mechanism of its request; nullopt: the one that fits.
  Activate(const AttachContext& context, const ActivateOptions& options,
           std::optional<Mechanism> only)
      : context_{context},
        options_{options},
        only_{only},
        deadline_{base::Deadline::after(options.deadline)} {}

  std::variant<Activation, Refusal> run();

 private:
  [[nodiscard]] bool attempt(const AttachedTarget& attached);
  [[nodiscard]] bool attempt_when_on(const AttachedTarget& attached, TrampolineState state);
  [[nodiscard]] bool attempt_when_off(const AttachedTarget& attached);
  [[nodiscard]] bool main_thread_sleeps() const;
  [[nodiscard]] std::optional<Refusal> request_again();
  [[nodiscard]] std::optional<Refusal> wait_for_effect();
  [[nodiscard]] std::optional<Refusal> verify();
  [[nodiscard]] Refusal withdraw();
  [[nodiscard]] Refusal undo(const Refusal& refusal);
  void take(OpenMap map);
  void pin_arenas(const std::vector<procfs::Mapping>& maps);
  void pin_new_arenas();
  [[nodiscard]] bool ran() const;
  [[nodiscard]] bool cancelled() const {
    return options_.cancelled != nullptr && *options_.cancelled;
  }

  const AttachContext& context_;
  const ActivateOptions& options_;
  const std::optional<Mechanism> only_;
  base::Deadline deadline_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::uint64_t code_before_ = 0;
  Activation result_;
  std::optional<Refusal> refusal_;
  std::optional<Requested> requested_;
  std::string last_obstacle_;
};

}  // namespace pyinject::python
