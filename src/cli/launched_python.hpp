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
  // Waits for such a Python again, as after the last one has executed another program. nullopt: the
  // command has ended, or a stop signal has come.
  [[nodiscard]] std::optional<python::Target> next(python::Detector& detector);
  // A stop signal has come: it is passed on in finish().
  [[nodiscard]] bool stopped();
  // Waits until the command has ended. After a signal, which is passed on as SIGTERM unless the
  // command has got it from the terminal itself, a second one ends only the waiting: the command
  // may be saving its work. Tells LOGGER if it failed, or goes on.
  void finish();

 private:
  [[nodiscard]] std::optional<python::Target> find(python::Detector& detector) const;
  // Until the command has ended, or a signal comes.
  void wait();

  targets::StopSignals& signals_;
  base::Logger& logger_;
  record::Workload workload_;
  int status_ = 0;
  std::optional<targets::StopSignal> signal_;
};

}  // namespace pyinject::cli
