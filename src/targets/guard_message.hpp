// What the tool tells its guard. Both are the same program (a fork), so structures go as they are.
#pragma once

#include "pyinject/base/unique_fd.hpp"
#include "pyinject/python/target.hpp"
#include "pyinject/targets/target_selection.hpp"

#include <optional>

namespace pyinject::session {

struct GuardMessage {
  // kStops: targets that are not being activated yet will be stopped.
  enum class Kind { kWatch, kMap, kForget, kStops, kDismiss, kToolEnded };
  Kind kind = Kind::kToolEnded;
  python::Target target;  // kWatch: what an injector needs of it; kMap, kForget: its id
  Ancestor ancestor;      // kWatch
  base::UniqueFd map;     // kMap
};

// False: nobody is there to receive it.
[[nodiscard]] bool send(int socket, const GuardMessage& message);
// Waits for the next one. What cannot be understood is taken for the tool's end.
[[nodiscard]] GuardMessage receive(int socket);

}  // namespace pyinject::session
