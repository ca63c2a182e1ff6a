// Reads the stacks of off-CPU threads for `top`.
#pragma once

#include "live/function_numbers.hpp"
#include "live/wait_judge.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/stack_reader.hpp"
#include "pyinject/python/target.hpp"
#include "sample/stack.hpp"
#include "sample/use.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

namespace pyinject::live {

// Reads the stacks of threads that do not run, from outside and without a stop: in turns, and so
// rarely that it takes no more than one part in 300 of a processor. Until it is read again, a
// thread is taken to do what it did when it was read.
class WaitReader {
 public:
  // CODE is told the names of functions. Their numbers are not those of the BPF program.
  explicit WaitReader(std::function<void(sample::Code)> code);

  // Reads nothing of processes whose stacks cannot be read from outside.
  void add(const python::Target& target);
  void remove(base::Pid pid) { processes_.erase(pid); }

  // Called for a thread that has waited so long for what USE says.
  using Receiver =
      std::function<void(const sample::Stack&, sample::Use use, std::chrono::nanoseconds length)>;
  // Reads some processes, if it is time to. Call it at least every kMostOften.
  static constexpr std::chrono::milliseconds kMostOften{50};
  void collect(const Receiver& receiver);
  // Tells RECEIVER about all waits up to now.
  void end_interval(const Receiver& receiver);

 private:
  struct Waiting {
    sample::Stack stack;
    sample::Use use = sample::Use::kUnknown;
    std::uint64_t arrivals = 0;  // how often the thread had got a CPU; 0: not known
    bool settled = true;         // STACK is what it did then
  };
  struct Process {
    python::StackReader reader;
    std::unique_ptr<WaitJudge> judge;  // nullptr: what its threads wait for is not known
    std::chrono::nanoseconds told;     // up to then, on the monotonic clock
    NumberedFrames frames = {};
    std::map<base::Tid, Waiting> waiting = {};
  };
  static void tell(Process& process, const Receiver& receiver);
  void read(base::Pid pid, Process& process);

  FunctionNumbers functions_;
  std::map<base::Pid, Process> processes_;
  base::Pid latest_;                 // the process that was read last
  std::chrono::nanoseconds next_{};  // on the monotonic clock
};

}  // namespace pyinject::live
