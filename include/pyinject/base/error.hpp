// The two kinds of failure. Ordinary outcomes (the target exited, is no Python, ...) are values of
// result types, not exceptions.
//
// For example:
//   try {
//     (void)report::read_profile("perf.data");
//   } catch (const base::SystemError& error) {
//     std::cerr << error.what() << '\n';  // error.code(): the errno
//   }
#pragma once

#include "pyinject/version.hpp"

#include <stdexcept>
#include <string>

namespace pyinject::base {

// A failure with a complete text: who, which step, values, cause, remedy.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A failed system call: "STEP: strerror(CODE)". The caller captures errno immediately.
class SystemError : public Error {
 public:
  SystemError(const std::string& step, int code);
  [[nodiscard]] int code() const { return code_; }

 private:
  int code_;
};

// The text of an errno value. Thread-safe.
[[nodiscard]] std::string errno_text(int code);

}  // namespace pyinject::base
