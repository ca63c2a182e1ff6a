// The operations of a manager on each of its targets.
//
// For example:
//   targets::TrampolineHandler handler{injector};
//   const auto processes = targets::make_manager(detector, handler, logger, {});
#pragma once

#include "pyinject/python/injector.hpp"
#include "pyinject/session_names.hpp"

#include <chrono>
#include <optional>
#include <variant>

namespace pyinject::targets {

// Several threads call these functions, for different targets. They throw base::Error if they
// cannot determine whether TARGET is taken.
class TargetHandler {
 public:
  virtual ~TargetHandler() = default;
  TargetHandler() = default;
  TargetHandler(const TargetHandler&) = delete;
  TargetHandler& operator=(const TargetHandler&) = delete;

  // Called before the first attach(), so that a shortage of threads cannot occur between attach()
  // and release(). Throws base::SystemError.
  virtual void prepare() {}

  // From now on samples of TARGET have its Python functions. On a refusal nothing is left changed.
  // Undone by release().
  [[nodiscard]] virtual std::variant<python::Activation, python::Refusal> attach(
      const python::Target& target, const python::ActivateOptions& options) = 0;

  // Restores TARGET to its state before attach(). Reason::kExited: it has exited.
  [[nodiscard]] virtual std::variant<python::Deactivation, python::Refusal> release(
      const python::Target& target, const python::DeactivateOptions& options) = 0;

  // Called periodically while TARGET is taken: python::Injector::keep_trampolines().
  [[nodiscard]] virtual std::optional<python::Refusal> keep_trampolines(
      const python::Target& /*target*/, std::chrono::nanoseconds /*deadline*/) {
    return std::nullopt;
  }
};

// Switches the trampoline on and off with an injector, which must outlive this object.
class TrampolineHandler : public TargetHandler {
 public:
  explicit TrampolineHandler(python::Injector& injector) : injector_{injector} {}

  void prepare() override { injector_.prepare(); }
  [[nodiscard]] std::variant<python::Activation, python::Refusal> attach(
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

}  // namespace pyinject::targets
