// Reduces callchains to their Python functions.
#pragma once

#include "weave/earlier_names.hpp"
#include "weave/function_names.hpp"
#include "weave/recorded_processes.hpp"
#include "weave/sample_work.hpp"

#include <cstddef>
#include <cstdint>

namespace pyinject::weave {

class PythonOnly {
 public:
  PythonOnly(const RecordedProcesses& processes, const FunctionNames& names,
             unwind::FileFinder& files, const perfdata::Input& input)
      : processes_{processes}, names_{names}, earlier_{processes.spaces(), files, input} {}

  // Keeps the Python functions and the marks of WORK's result, of which the user part starts at
  // FROM. The innermost Python function then is where the thread was. False: there is none, and the
  // stack stays.
  [[nodiscard]] bool reduce(SampleWork& work, std::size_t from);

 private:
  enum class Kind : std::uint8_t { kOther, kPython, kMark };
  [[nodiscard]] Kind kind_of(const SampleWork& work, std::uint64_t address);

  const RecordedProcesses& processes_;
  const FunctionNames& names_;
  EarlierNames earlier_;
};

}  // namespace pyinject::weave
