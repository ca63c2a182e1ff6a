// Whose code a thread runs in user space: the interpreter's or that of a C library.
#pragma once

#include "procfs/maps.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/python/target.hpp"
#include "why/recording.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pyinject::why {

class CodeFiles {
 public:
  explicit CodeFiles(const python::Target& target) : target_{target} {}

  struct Place {
    Mode mode = Mode::kPython;
    std::string file;  // kC
  };
  // Code without a file (a JIT's, a trampoline's) counts as Python.
  [[nodiscard]] Place find(std::uint64_t address);

 private:
  const python::Target& target_;
  std::vector<procfs::Mapping> maps_;
  base::Deadline again_ = base::Deadline::after(std::chrono::nanoseconds{0});
};

}  // namespace pyinject::why
