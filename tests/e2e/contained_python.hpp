// A Python program as containers have it: the first process of its pid namespace, with a root and a
// /tmp of its own.
#pragma once

#include "support/interpreters.hpp"
#include "support/python_process.hpp"

#include <array>
#include <chrono>
#include <string>

namespace pyinject::test {

enum class Container {
  kPrivateTmp,
  kReadOnlyRoot,  // but for /tmp
  kNoExecTmp,
  kOtherUser,
  kUserNamespace,  // where it is root
};
inline constexpr std::array kAllContainers{Container::kPrivateTmp, Container::kReadOnlyRoot,
                                           Container::kNoExecTmp, Container::kOtherUser,
                                           Container::kUserNamespace};

// Whether this machine lets us make them.
[[nodiscard]] bool user_namespaces_work();

// Its functions are burn_NAME below work_NAME below main_NAME; in a child below born_NAME.
class ContainedPython {
 public:
  // PYTHON is one that has a root of its own.
  ContainedPython(const Interpreter& python, Container kind);
  ~ContainedPython();  // ends it and removes the copies of its maps
  ContainedPython(const ContainedPython&) = delete;
  ContainedPython& operator=(const ContainedPython&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& pid() const { return pid_; }  // here
  [[nodiscard]] const std::string& inner_pid() const { return inner_pid_; }
  // For so much processor time.
  void work(std::chrono::milliseconds span);
  // The same in a child, which ends then.
  void fork(std::chrono::milliseconds span);
  // Returns when its first process is gone, and with it the namespaces.
  void kill();

 private:
  void ask(const std::string& what);

  std::string name_;
  PythonProcess process_;  // its parent, in our pid namespace
  std::string inner_pid_;
  std::string pid_;
};

}  // namespace pyinject::test
