// A test double: attaches to nothing, and logs the calls.
//
// For example:
//   fake::Injector injections;
//   injections.activate_refusals[base::Pid{12}] = python::Reason::kDeadline;
//   const auto result = injections.activate(target, {});
//   if (injections.calls.empty()) {
//     std::cerr << "nobody has tried\n";
//   }
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/python/reason.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::fake {

// Several threads may call its functions; read the log afterwards.
class Injector : public python::Injector {
 public:
  std::variant<python::Activation, python::Refusal> activate(
      const python::Target& target, const python::ActivateOptions& options) override;
  std::variant<python::Deactivation, python::Refusal> deactivate(
      const python::Target& target, const python::DeactivateOptions& options) override;
  std::variant<python::StackUse, python::Refusal> stack_use(
      const python::Target& target, std::chrono::nanoseconds deadline) override;

  // NOLINTBEGIN(cppcoreguidelines-non-private-member-variables-in-classes): a script and a book
  // The script; without it every call succeeds.
  std::map<base::Pid, python::Reason> activate_refusals;
  std::map<base::Pid, python::Reason> deactivate_refusals;
  std::function<void(base::Pid)> after_activation;    // called before activate() returns
  std::function<void(base::Pid)> after_deactivation;  // called before deactivate() returns

  // The log.
  std::set<base::Pid> on;                        // on now
  std::vector<std::string> calls;                // "activate 12", "deactivate 12", "stack_use 12"
  std::vector<std::chrono::nanoseconds> shares;  // time that each deactivate() was given
  python::Owner owner;                           // of the latest activate()
  // NOLINTEND(cppcoreguidelines-non-private-member-variables-in-classes)

 private:
  std::mutex mutex_;
};

}  // namespace pyinject::fake
