#include "e2e/both_engines.hpp"

#include <fmt/format.h>

#include <ostream>

namespace pyinject::test {

void PrintTo(const Recorded& recorded, std::ostream* stream) {
  *stream << recorded.python.name << " " << recorded.engine;
}

std::string recorded_name(const testing::TestParamInfo<Recorded>& each) {
  return fmt::format("{}_{}", each.param.python.name, each.param.engine);
}

std::vector<Recorded> recordings() {
  std::vector<Recorded> all;
  for (const auto& python : interpreters({.trampoline = true})) {
    all.push_back({.python = python, .engine = "trampoline"});
    all.push_back({.python = python, .engine = "bpf"});
  }
  return all;
}

}  // namespace pyinject::test
