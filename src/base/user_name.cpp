#include "base/user_name.hpp"

#include <array>

#include <pwd.h>

namespace pyinject::base {

std::string user_name(uid_t uid) {
  std::array<char, 16384> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return std::to_string(uid);
  }
  return found->pw_name;
}

}  // namespace pyinject::base
