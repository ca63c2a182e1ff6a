// Detection and injection for tests: a failure is thrown as a base::Error.
#pragma once

#include "pyinject/base/error.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/injector.hpp"
#include "support/patience.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace pyinject::test {

// Of any interpreter whose frames can be read.
[[nodiscard]] inline python::Target observe(base::Pid pid) {
  auto detection = python::make_detector(python::Purpose::kObserve)->detect(pid);
  if (const auto* refused = std::get_if<python::Refused>(&detection)) {
    throw base::Error{"refused: " + python::describe(refused->refusal)};
  }
  return std::get<python::Target>(std::move(detection));
}

class Attach {
 public:
  explicit Attach(std::unique_ptr<python::Injector> injector = python::make_injector())
      : injector_{std::move(injector)} {}

  [[nodiscard]] python::Target detect(base::Pid pid) {
    auto detection = detector_->detect(pid);
    if (const auto* refused = std::get_if<python::Refused>(&detection)) {
      throw base::Error{"refused: " + python::describe(refused->refusal)};
    }
    return std::get<python::Target>(std::move(detection));
  }
  // Returns why PID is refused; throws if it is not.
  [[nodiscard]] python::Refusal refusal(base::Pid pid) {
    auto detection = detector_->detect(pid);
    if (const auto* refused = std::get_if<python::Refused>(&detection)) {
      return refused->refusal;
    }
    throw base::Error{"not refused"};
  }
  [[nodiscard]] std::variant<python::Activation, python::Refusal> try_activate(
      base::Pid pid, const python::ActivateOptions& options) {
    return injector_->activate(detect(pid), options);
  }
  python::Activation activate(base::Pid pid, const python::ActivateOptions& options = patient()) {
    auto result = try_activate(pid, options);
    if (const auto* refusal = std::get_if<python::Refusal>(&result)) {
      throw base::Error{"activate: " + python::describe(*refusal)};
    }
    return std::get<python::Activation>(std::move(result));
  }
  python::Deactivation deactivate(base::Pid pid) {
    auto result = injector_->deactivate(detect(pid), {.deadline = kPatience});
    if (const auto* refusal = std::get_if<python::Refusal>(&result)) {
      throw base::Error{"deactivate: " + python::describe(*refusal)};
    }
    return std::get<python::Deactivation>(result);
  }
  [[nodiscard]] python::Injector& injector() { return *injector_; }

  // For machines under load: only a defect exceeds this deadline.
  [[nodiscard]] static python::ActivateOptions patient() {
    return {.owner = {}, .deadline = kPatience};
  }

 private:
  std::unique_ptr<python::Detector> detector_ = python::make_detector();
  std::unique_ptr<python::Injector> injector_;
};

}  // namespace pyinject::test
