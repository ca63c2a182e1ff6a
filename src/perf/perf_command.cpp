#include "perf/perf_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pyinject::perf {

std::vector<std::string> record_argv(const RecordCommand& command) {
  std::vector<std::string> argv = {
      command.perf, command.own_recorder ? "perf-record" : "record",
      "-D",         "-1",
      "--control",  fmt::format("fd:{},{}", command.control_fd, command.ack_fd),
  };
  argv.insert(argv.end(), command.own.begin(), command.own.end());
  const auto& options = command.options.words();
  argv.insert(argv.end(), options.begin(), options.end());
  if (command.pids.empty()) {
    argv.emplace_back("-a");
    if (command.cgroup) {  // applies to the preceding events: perf requires one
      if (!command.options->event) {
        argv.insert(argv.end(), {"-e", "cycles"});
      }
      argv.insert(argv.end(), {"-G", "/" + *command.cgroup});
    }
    return argv;
  }
  std::vector<pid_t> numbers;
  for (const auto pid : command.pids) {
    numbers.push_back(pid.value());
  }
  argv.emplace_back("-p");
  argv.push_back(fmt::format("{}", fmt::join(numbers, ",")));
  return argv;
}

}  // namespace pyinject::perf
