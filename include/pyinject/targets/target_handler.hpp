// What a manager does to each of its targets.
#pragma once

#include "pyinject/python/injector.hpp"

#include <chrono>
#include <optional>
#include <variant>

namespace pyinject::session {

// Its functions are called by several threads at a time, for different targets. They throw
// base::Error when they cannot tell whether TARGET is taken.
class TargetHandler {
 public:
  virtual ~TargetHandler() = default;
  TargetHandler() = default;
  TargetHandler(const TargetHandler&) = delete;
  TargetHandler& operator=(const TargetHandler&) = delete;

  // Called before the first take(), so that no shortage of threads comes between take() and
  // release(). Throws base::SystemError.
  virtual void prepare() {}

  // From now on samples of TARGET have its Python functions. On a refusal nothing is left changed.
  // Undone by release().
  [[nodiscard]] virtual std::variant<python::Activation, python::Refusal> take(
      const python::Target& target, const python::ActivateOptions& options) = 0;

  // TARGET is as it was before take(). Reason::kExited: it has ended.
  [[nodiscard]] virtual std::variant<python::Deactivation, python::Refusal> release(
      const python::Target& target, const python::DeactivateOptions& options) = 0;

  // Now and then while TARGET is taken: python::Injector::keep_trampolines().
  [[nodiscard]] virtual std::optional<python::Refusal> keep_trampolines(
      const python::Target& /*target*/, std::chrono::nanoseconds /*deadline*/) {
    return std::nullopt;
  }
};

// Switches the trampoline on and off by an injector, which has to outlive it.
class TrampolineHandler : public TargetHandler {
 public:
  explicit TrampolineHandler(python::Injector& injector) : injector_{injector} {}

  void prepare() override { injector_.prepare(); }
  [[nodiscard]] std::variant<python::Activation, python::Refusal> take(
      const python::Target& target, const python::ActivateOptions& options) override {
    return injector_.activate(target, options);
  }
  [[nodiscard]] std::variant<python::Deactivation, python::Refusal> release(
      const python::Target& target, const python::DeactivateOptions& options) override {
    return injector_.deactivate(target, options);
  }
  [[nodiscard]] std::optional<python::Refusal> keep_trampolines(
      const python::Target& target, std::chrono::nanoseconds deadline) override {
    return injector_.keep_trampolines(target, deadline);
  }

 private:
  python::Injector& injector_;
};

}  // namespace pyinject::session
