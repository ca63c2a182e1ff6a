// What a thread waits for, by the kernel's functions, the state of the GIL and what snapshots saw.
// Pure.
#pragma once

#include "pyinject/sample/states.hpp"
#include "why/accounting.hpp"
#include "why/recording.hpp"

#include <cstdint>
#include <unordered_map>

namespace pyinject::why {

struct WaitFacts {
  Use work = Use::kUnknown;
  sample::Gil gil = sample::Gil::kUnknown;
  std::uint32_t stack = 0;
  const Sighting* sighting = nullptr;  // during this wait; nullptr: none
};

class WaitUses {
 public:
  // A wait that no snapshot saw is of the same kind as a wait with the same Python stack that one
  // saw.
  explicit WaitUses(const Recording& recording);

  struct Found {
    Use use = Use::kUnknown;
    const Sighting* sighting = nullptr;  // of this wait, or of one with the same Python stack
  };
  [[nodiscard]] Found of(const WaitFacts& facts) const;

 private:
  std::unordered_map<std::uint32_t, const Sighting*> by_stack_;
};

}  // namespace pyinject::why
