// Prints what could be done with processes and changes nothing: list_processes [PID...]. Without a
// PID: all processes.
//   g++ -std=c++20 list_processes.cpp $(pkg-config --cflags --libs --static pyinject)
#include "pyinject/pyinject.hpp"

#include <cstdlib>
#include <iostream>

int main(int argc, char** argv) {
  std::vector<pyinject::base::Pid> pids;
  for (int i = 1; i < argc; ++i) {
    pids.emplace_back(std::atoi(argv[i]));
  }
  const auto detector = pyinject::python::make_detector();
  std::cout << pyinject::targets::to_table(pyinject::targets::report_status(*detector, pids));
}
