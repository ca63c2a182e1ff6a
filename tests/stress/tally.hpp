// The results for the targets of one kind.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace pyinject::test {

enum class Harm { kCrash, kHang, kWrong, kToolError, kLeftover };

struct Tally {
  int lives = 0;
  int injections = 0;
  int recordings = 0;
  int exit_crashes = 0;                // crashes of CPython itself: -X perf, without the tool
  std::map<std::string, int> refused;  // by reason, if the kind permits it
  std::map<Harm, int> harms;
  std::vector<std::string> notes;  // on the harms

  void add(Harm harm, std::string what) {
    ++harms[harm];
    notes.push_back(std::move(what));
  }
  [[nodiscard]] int count(Harm harm) const {
    const auto found = harms.find(harm);
    return found == harms.end() ? 0 : found->second;
  }
  [[nodiscard]] int attempts() const {
    int sum = injections;
    for (const auto& [reason, count] : refused) {
      sum += count;
    }
    return sum;
  }
};

}  // namespace pyinject::test
