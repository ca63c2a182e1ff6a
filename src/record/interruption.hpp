// The requests to stop during one recording.
#pragma once

#include "pyinject/base/cancellation.hpp"
#include "pyinject/targets/stop_requests.hpp"

namespace pyinject::record {

class Interruption {
 public:
  // Listens to REQUESTS, which must outlive this object. REPEATED: other recordings follow
  // (RecordPlan::duration); SIGHUP ends only this one.
  Interruption(targets::StopRequests& requests, bool repeated);
  ~Interruption() { requests_.listen({}); }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

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
  [[nodiscard]] int fd() const { return requests_.fd(); }
  [[nodiscard]] targets::StopRequests& requests() { return requests_; }

 private:
  targets::StopRequests& requests_;
  bool repeated_;
  base::Cancellation cancellation_;
  int signal_ = 0;  // the first one
  bool completing_ = false;
};

}  // namespace pyinject::record
