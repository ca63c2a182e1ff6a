#include "pyinject/fake/injector.hpp"

namespace pyinject::fake {

namespace {

python::Refusal refusal(python::Reason reason) {
  return {.reason = reason, .found = "the test says so", .remedy = {}};
}

}  // namespace

std::variant<python::Activation, python::Refusal> Injector::activate(
    const python::Target& target, const python::ActivateOptions& options) {
  const std::scoped_lock lock{mutex_};
  const auto pid = target.id.pid;
  calls.push_back("activate " + std::to_string(pid.value()));
  owner = options.owner;
  if (const auto refused = activate_refusals.find(pid); refused != activate_refusals.end()) {
    return refusal(refused->second);
  }
  python::Activation activation;
  activation.mechanism = python::Mechanism::kPendingQueue;
  activation.before = target.state;
  on.insert(pid);
  if (after_activation) {
    after_activation(pid);
  }
  return activation;
}

std::variant<python::Deactivation, python::Refusal> Injector::deactivate(
    const python::Target& target, const python::DeactivateOptions& options) {
  const std::scoped_lock lock{mutex_};
  const auto pid = target.id.pid;
  calls.push_back("deactivate " + std::to_string(pid.value()));
  shares.push_back(options.deadline);
  if (const auto refused = deactivate_refusals.find(pid); refused != deactivate_refusals.end()) {
    return refusal(refused->second);
  }
  on.erase(pid);
  if (after_deactivation) {
    after_deactivation(pid);
  }
  return python::Deactivation{};
}

std::variant<python::StackUse, python::Refusal> Injector::stack_use(
    const python::Target& target, std::chrono::nanoseconds /*deadline*/) {
  const std::scoped_lock lock{mutex_};
  calls.push_back("stack_use " + std::to_string(target.id.pid.value()));
  return python::StackUse{.bytes = 20000, .thread = base::Tid{target.id.pid.value()}};
}

}  // namespace pyinject::fake
