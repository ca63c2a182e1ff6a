// Names of users, from the system's user database.
#pragma once

#include <string>

#include <sys/types.h>

namespace pyinject::base {

// The number as text if the user has no name.
[[nodiscard]] std::string user_name(uid_t uid);

}  // namespace pyinject::base
