// Shows what each thread of a Python process does and waits for: dump_process PID. The process is
// neither changed nor stopped.
#include "pyinject/pyinject.hpp"

#include <cstdlib>
#include <iostream>

using namespace pyinject;

int main(int argc, char** argv) try {
  const base::Pid pid{argc == 2 ? std::atoi(argv[1]) : 0};
  const auto detector = python::make_detector(python::Purpose::kObserve);
  const auto found = detector->detect(pid);
  const auto* const target = std::get_if<python::Target>(&found);
  if (target == nullptr) {
    std::cerr << "dump_process: " << python::describe(std::get<python::Refused>(found).refusal)
              << '\n';
  }
  const auto snapshot = inspect::take_snapshot(pid, target);
  if (!snapshot) {
    return 1;
  }
  std::cout << inspect::to_text(*snapshot);
  return target == nullptr ? 1 : 0;
} catch (const std::exception& error) {
  std::cerr << "dump_process: " << error.what() << '\n';
  return 1;
}
