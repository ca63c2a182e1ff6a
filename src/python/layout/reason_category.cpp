#include "pyinject/python/reason.hpp"

#include <string>

namespace pyinject::python {

namespace {

class Category : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "pyinject"; }

  [[nodiscard]] std::string message(int value) const override {
    const auto reason = static_cast<Reason>(value);
    return std::string{meaning(reason)} + " (" + std::string{python::name(reason)} + ")";
  }

  [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override {
    switch (static_cast<Reason>(value)) {
      case Reason::kNoSuchProcess:
      case Reason::kZombie:
      case Reason::kExited:
        return std::errc::no_such_process;
      case Reason::kNoPermission:
      case Reason::kSeccomp:
      case Reason::kMapDirectory:
      case Reason::kMapForeign:
      case Reason::kMapNotRegular:
        return std::errc::permission_denied;
      case Reason::kOwnProcess:
      case Reason::kKernelThread:
        return std::errc::operation_not_permitted;
      case Reason::kTraced:
      case Reason::kOtherSession:
        return std::errc::device_or_resource_busy;
      case Reason::kNotInitialized:
        return std::errc::resource_unavailable_try_again;
      case Reason::kStopDeadline:
      case Reason::kDeadline:
      case Reason::kNotExamined:
        return std::errc::timed_out;
      case Reason::kActivationFailed:
      case Reason::kMapNotWritten:
        return std::errc::io_error;
      default:  // it cannot be done with this interpreter, now or ever
        return std::errc::not_supported;
    }
  }
};

}  // namespace

const std::error_category& pyinject_category() noexcept {
  static const Category category;
  return category;
}

std::error_code make_error_code(Reason reason) noexcept {
  return {static_cast<int>(reason), pyinject_category()};
}

}  // namespace pyinject::python
