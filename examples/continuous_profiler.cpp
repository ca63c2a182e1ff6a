// Continuous profiling: every PERIOD seconds, switches the trampolines of the processes on while
// COMMAND runs, and off again afterwards. SIGTERM, SIGINT or SIGHUP ends it cleanly.
//   continuous_profiler 300 4711,4712 perf record -g -p 4711,4712 -o now.data -- sleep 30
#include "pyinject/pyinject.hpp"

#include <csignal>
#include <iostream>
#include <sstream>

#include <poll.h>

using namespace pyinject;
// Waits until FD (-1: none) is readable, DEADLINE expires or a signal arrives. True: a signal.
bool wait_for(int fd, base::Deadline deadline, targets::StopSignals& signals) {
  pollfd fds[] = {{signals.fd(), POLLIN, 0}, {fd, POLLIN, 0}};
  ::poll(fds, 2, deadline.remaining_ms());
  return signals.next().has_value();
}

int main(int argc, char** argv) try {
  if (argc < 4) {
    std::cerr << "usage: continuous_profiler PERIOD PID[,PID...] COMMAND [ARGUMENT...]\n";
    return 2;
  }
  std::vector<base::Pid> pids;
  std::istringstream list{argv[2]};
  for (std::string pid; std::getline(list, pid, ',');) {
    pids.emplace_back(std::stoi(pid));
  }
  base::StderrLogger logger{base::LogLevel::kInfo, false};
  const auto detector = python::make_detector();
  const auto injector = python::make_injector();
  const auto owner = targets::this_session();
  targets::StopSignals signals;
  for (bool ends = false; !ends;) {
    const auto next = base::Deadline::after(std::chrono::seconds{std::stoi(argv[1])});
    // If this process is killed, the guard switches off the targets that it watches.
    targets::Guard guard{*detector, *injector, logger, {.session = owner.session}};
    targets::ManagerOptions options{.strict = false, .owner = owner};
    options.before_activation = [&](const auto& target) { guard.watch(target); };
    const auto manager = targets::make_manager(*detector, *injector, logger, options);
    if (manager->activate_all(manager->select(pids).targets)) {
      base::Child command{{.argv = {argv + 3, argv + argc}}};
      ends = wait_for(command.pidfd(), next, signals);
      if (ends) {
        command.send_signal(SIGTERM);
      }
      (void)command.wait(base::Deadline::after(std::chrono::seconds{10}));
    }
    if (manager->deactivate_all()) {
      guard.dismiss();
    }
    std::cout << manager->stats().summary() << std::endl;
    ends = ends || wait_for(-1, next, signals);
  }
} catch (const std::exception& error) {
  std::cerr << "continuous_profiler: " << error.what() << '\n';
  return 1;
}
