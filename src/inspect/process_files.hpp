// Describes the open files of a process.
#pragma once

#include "procfs/sockets.hpp"
#include "pyinject/base/pid.hpp"

#include <map>
#include <optional>
#include <string>

namespace pyinject::inspect {

class ProcessFiles {
 public:
  explicit ProcessFiles(base::Pid pid) : pid_{pid} {}

  // A path, "TCP 127.0.0.1:40000 -> 127.0.0.1:5432", or the kernel's name, such as "pipe:[17]".
  // Empty: unreadable. Reads the tables of sockets once.
  [[nodiscard]] std::string describe(int descriptor);
  // Notes which file DESCRIPTOR is now. describe() tells what a socket is connected to, which takes
  // longer.
  void note(int descriptor);
  // Of its network namespace, when they were first asked for.
  [[nodiscard]] const procfs::Sockets& sockets();

 private:
  base::Pid pid_;
  std::optional<procfs::Sockets> sockets_;
  std::map<int, std::string> links_;
  std::map<int, std::string> known_;
};

}  // namespace pyinject::inspect
