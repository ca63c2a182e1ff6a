// The two kinds of failure. Ordinary outcomes (the target exited, is no Python, ...) are values of
// result types and not exceptions.
#pragma once

#include <stdexcept>
#include <string>

namespace pyinject::base {

// A failure whose text is complete: who, which step, with which values, why, remedy.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A failed system call: "STEP: strerror(CODE)". errno is captured by the caller at once.
class SystemError : public Error {
 public:
  SystemError(const std::string& step, int code);
  [[nodiscard]] int code() const { return code_; }

 private:
  int code_;
};

// The text of an errno value, without the caller having to care about thread safety.
[[nodiscard]] std::string errno_text(int code);

}  // namespace pyinject::base
