// One sample while it is rewritten.
#pragma once

#include "perfdata/sample.hpp"
#include "unwind/registers.hpp"
#include "unwind/unwinder.hpp"
#include "weave/merge.hpp"
#include "weave/weave.hpp"

#include <cstdint>
#include <vector>

namespace pyinject::weave {

struct SampleWork {
  perfdata::Sample sample;
  std::vector<std::uint64_t> chain;             // the user's part, innermost first
  std::vector<std::uint64_t> result;            // all of it
  std::vector<AddressKind> kinds;               // of CHAIN
  const Interpreter* interpreter = nullptr;     // of the sample's process
  unwind::StackDump stack;                      // that CHAIN was unwound from
  std::vector<unwind::Registers> registers;     // for each of CHAIN; empty: it was not unwound
  std::uint64_t* incomplete_counter = nullptr;  // of the reason why CHAIN has no outer end

  // Before the next sample; the memory is kept.
  void clear_stack() {
    chain.clear();
    result.clear();
    registers.clear();
    incomplete_counter = nullptr;
  }
};

}  // namespace pyinject::weave
