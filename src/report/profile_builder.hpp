// Makes a profile of stacks whose functions have names already.
#pragma once

#include "pyinject/report/profile.hpp"
#include "report/pair_numbers.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace pyinject::report {

// Equal functions, frames and stacks are stored once.
class ProfileBuilder {
 public:
  // The index of a file in Profile::objects.
  std::uint32_t object(const std::string& path);
  // The index of an event or a thread, each a new one.
  std::uint32_t event(Event event);
  std::uint32_t thread(Thread thread);
  // The stack in which CALLER, another one or 0, has called FUNCTION; LINE: 0: unknown.
  std::uint32_t call(std::uint32_t caller, const Function& function, std::uint32_t line = 0);
  void add(const Sample& sample) { profile_.samples.push_back(sample); }
  // Samples in order of time.
  [[nodiscard]] Profile finish() &&;

 private:
  Profile profile_;
  std::map<std::string, std::uint32_t> objects_;
  std::map<std::tuple<Kind, std::string, std::string, std::uint32_t>, std::uint32_t> functions_;
  PairNumbers frames_;
  PairNumbers nodes_;
};

}  // namespace pyinject::report
