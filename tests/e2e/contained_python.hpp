// A Python program in a container: the first process of its pid namespace, with its own root and
// /tmp.
#pragma once

#include "support/interpreters.hpp"
#include "support/python_process.hpp"

#include <array>
#include <chrono>
#include <string>

namespace pyinject::test {

enum class Container {
  kPrivateTmp,
  kReadOnlyRoot,  // except /tmp
  kNoExecTmp,
  kOtherUser,
  kUserNamespace,  // in which it is root
};
inline constexpr std::array kAllContainers{Container::kPrivateTmp, Container::kReadOnlyRoot,
                                           Container::kNoExecTmp, Container::kOtherUser,
                                           Container::kUserNamespace};

// Whether this machine permits creating them.
[[nodiscard]] bool user_namespaces_work();

// Its functions are burn_NAME below work_NAME below main_NAME, in a child below born_NAME.
class ContainedPython {
 public:
  // PYTHON must have its own root.
  ContainedPython(const Interpreter& python, Container kind);
  ~ContainedPython();  // kills it and removes the copies of its maps
  ContainedPython(const ContainedPython&) = delete;
  ContainedPython& operator=(const ContainedPython&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& pid() const { return pid_; }  // in our pid namespace
  [[nodiscard]] const std::string& inner_pid() const { return inner_pid_; }
  // Makes it work for SPAN of CPU time.
  void work(std::chrono::milliseconds span);
  // The same in a child, which then exits.
  void fork(std::chrono::milliseconds span);
  // Returns when its first process, and with it the namespaces, are gone.
  void kill();

 private:
  void ask(const std::string& what);

  std::string name_;
  PythonProcess process_;  // its parent, in our pid namespace
  std::string inner_pid_;
  std::string pid_;
};

}  // namespace pyinject::test
