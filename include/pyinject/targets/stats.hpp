// Counts the outcomes of all processes. Any thread may read the counters at any time.
//
// For example:
//   for (const auto& [name, count] : manager.stats().counters()) {
//     std::cout << name << ' ' << count << '\n';
//   }
#pragma once

#include "pyinject/python/reason.hpp"
#include "pyinject/session_names.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

namespace pyinject::targets {

class Stats {
 public:
  using Counter = std::atomic<std::uint64_t>;

  // The names of the field's reference package.
  // NOLINTBEGIN(cppcoreguidelines-non-private-member-variables-in-classes): each stands alone
  Counter activated = 0;    // on now or earlier, switched on by us
  Counter deactivated = 0;  // off again, switched off by us
  Counter skipped_not_python = 0;
  Counter skipped_too_old = 0;
  Counter skipped_no_tramp = 0;
  Counter skipped_no_symbols = 0;
  Counter activate_failed = 0;  // any other reason
  Counter deactivate_failed = 0;
  // NOLINTEND(cppcoreguidelines-non-private-member-variables-in-classes)

  // Counts a process that was not activated, in one of the counters above and under its reason.
  void count_refusal(python::Reason reason);
  void count_deactivation_failure(python::Reason reason);
  [[nodiscard]] std::uint64_t of(python::Reason reason) const;

  // The counters above with the names of the reference package: {"Activated", 2}, ... in that
  // order.
  using Counts = std::array<std::pair<const char*, std::uint64_t>, 8>;
  [[nodiscard]] Counts counters() const;

  // "2 processes recorded, 1 skipped (1 not_python)".
  [[nodiscard]] std::string summary() const;

 private:
  [[nodiscard]] Counter& counter(python::Reason reason);

  std::array<Counter, python::kReasonCount> reasons_ = {};
};

}  // namespace pyinject::targets
