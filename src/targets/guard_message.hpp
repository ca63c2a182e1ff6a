// Messages from the tool to its guard. Both are the same program (a fork), so structures are sent
// as they are.
#pragma once

#include "pyinject/base/unique_fd.hpp"
#include "pyinject/python/target.hpp"
#include "pyinject/targets/target_selection.hpp"

#include <optional>

namespace pyinject::targets {

struct GuardMessage {
  // kStops: targets will be stopped that are not being activated yet.
  enum class Kind { kWatch, kMap, kForget, kStops, kDismiss, kToolEnded };
  Kind kind = Kind::kToolEnded;
  python::Target target;  // kWatch: the part that an injector needs; kMap, kForget: its id
  Ancestor ancestor;      // kWatch
  base::UniqueFd map;     // kMap
};

// False: no receiver.
[[nodiscard]] bool send(int socket, const GuardMessage& message);
// Waits for the next message. Returns kToolEnded for an invalid one.
[[nodiscard]] GuardMessage receive(int socket);

}  // namespace pyinject::targets
