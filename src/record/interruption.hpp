// The signals to this tool during one recording.
#pragma once

#include "pyinject/base/cancellation.hpp"
#include "pyinject/targets/stop_signals.hpp"

namespace pyinject::record {

class Interruption {
 public:
  // REPEATED: other recordings follow (RecordPlan::duration); SIGHUP ends only this one.
  explicit Interruption(bool repeated);

  // Stopped by the first signal: for work done before the recording begins.
  [[nodiscard]] const base::Cancellation& cancellation() const { return cancellation_; }
  // Takes the next signal. True: there is one, and whatever goes on must be cut short.
  [[nodiscard]] bool take();
  // The recording has ended by SIGNAL, which another function took.
  void ended_by(int signal) { signal_ = signal; }
  // From now on the recording is completed: one of several is not cut short by SIGHUP and the first
  // other signal.
  void completes() { completing_ = true; }
  // Drops signals that were meant for the command.
  void drop_all();

  // The signal that ended the recording; 0: none.
  [[nodiscard]] int signal() const { return signal_; }
  // The exit status after signal().
  [[nodiscard]] int status() const { return 128 + signal_; }
  // Readable when there is a signal to take.
  [[nodiscard]] int fd() const { return signals_.fd(); }
  [[nodiscard]] targets::StopSignals& signals() { return signals_; }

 private:
  bool repeated_;
  base::Cancellation cancellation_;
  targets::StopSignals signals_;
  int signal_ = 0;  // the first one
  bool completing_ = false;
};

}  // namespace pyinject::record
