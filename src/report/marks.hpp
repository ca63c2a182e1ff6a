// Marks are entries at the root of a stack that name a state instead of a function.
#pragma once

#include "base/greenlet_name.hpp"
#include "pyinject/report/profile.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::report {

// What the marks of a stack say; empty: nothing.
struct Marks {
  std::string task;                            // the asyncio task that ran
  std::string gil;                             // "held", "waiting"
  std::string wait;                            // "preempted"
  std::optional<base::GreenletName> greenlet;  // that ran; its mark stays in the stack
  // The task, or else the greenlet: "[greenlet] handle".
  [[nodiscard]] std::string task_or_greenlet() const;
  auto operator<=>(const Marks&) const = default;
};

// The frames of STACK, innermost first, as indices in Profile::frames.
[[nodiscard]] std::vector<std::uint32_t> frames_of(const Profile& profile, std::uint32_t stack);
[[nodiscard]] const Function& function_of(const Profile& profile, std::uint32_t frame);
// Removes from FRAMES the marks that Marks can hold, except that of a greenlet, and returns them.
[[nodiscard]] Marks take_marks(const Profile& profile, std::vector<std::uint32_t>& frames);

// Whether FUNCTION is such a mark.
[[nodiscard]] bool is_state_mark(const Function& function);

// All stacks of a profile without the marks that take_marks() removes: a tree in which stacks of
// the same frames are one node.
class UnmarkedStacks {
 public:
  explicit UnmarkedStacks(const Profile& profile);

  // The node of STACK, one of the profile's, among nodes(). 0: no frames.
  [[nodiscard]] std::uint32_t node(std::uint32_t stack) const { return node_[stack]; }
  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  // Whether STACK has the frame of the garbage collector.
  [[nodiscard]] bool collects(std::uint32_t stack) const { return collects_[stack]; }
  // The same number for the same marks, less than all_marks().size().
  [[nodiscard]] std::uint32_t marks(std::uint32_t stack) const { return marks_[stack]; }
  [[nodiscard]] const std::vector<Marks>& all_marks() const { return all_marks_; }

 private:
  std::vector<std::uint32_t> node_;   // by the profile's node
  std::vector<std::uint32_t> marks_;  // likewise
  std::vector<bool> collects_;        // likewise
  std::vector<Node> nodes_{Node{}};
  std::vector<Marks> all_marks_{Marks{}};
};

}  // namespace pyinject::report
