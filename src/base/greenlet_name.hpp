// What a greenlet is called, which seldom has a name of its own.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace pyinject::base {

// "[greenlet] handle": the outermost function of its stack that does not belong to a package that
// starts greenlets, or, if all do, the outermost one. Greenlets that begin in the same way have the
// same name. Pure.
class GreenletName {
 public:
  // Whether further functions can change the name.
  [[nodiscard]] bool open() const { return state_ == State::kOpen; }
  // Call it for the Python functions of the stack, outermost first.
  void add(std::string_view function, std::string_view file);
  // The next functions are missing.
  void add_unknown();
  // Without a function: "[greenlet]".
  [[nodiscard]] std::string text() const;

  auto operator<=>(const GreenletName&) const = default;

 private:
  enum class State : std::uint8_t { kOpen, kKnown };
  std::string function_;
  State state_ = State::kOpen;
};

}  // namespace pyinject::base
