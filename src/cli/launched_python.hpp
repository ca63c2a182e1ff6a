// The command that `why -- COMMAND` starts, and the Python process that it runs.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/target.hpp"
#include "pyinject/targets/stop_signals.hpp"
#include "record/workload.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pyinject::cli {

class LaunchedPython {
 public:
  // COMMAND must outlive this object.
  LaunchedPython(const std::vector<std::string>& command, targets::StopSignals& signals,
                 base::Logger& logger);

  // Starts the command with standard error as its standard output, and waits until it, or one of
  // its descendants, is a Python that can be recorded. nullopt: none; status() says what to exit
  // with, and LOGGER has been told why.
  [[nodiscard]] std::optional<python::Target> start(python::Detector& detector);
  [[nodiscard]] int status() const { return status_; }
  // A stop signal has come: it is passed on in finish().
  [[nodiscard]] bool stopped();
  // Waits until the command has ended; ends it with SIGTERM if a signal came that it has not got
  // from the terminal itself. Tells LOGGER if it failed.
  void finish();

 private:
  [[nodiscard]] std::optional<python::Target> find(python::Detector& detector) const;

  targets::StopSignals& signals_;
  base::Logger& logger_;
  record::Workload workload_;
  int status_ = 0;
  std::optional<targets::StopSignal> signal_;
};

}  // namespace pyinject::cli
