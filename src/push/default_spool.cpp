#include "push/spool.hpp"
#include "pyinject/base/error.hpp"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::push {

namespace {

// "": not set.
std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string state_directory() {
  if (::geteuid() == 0) {
    return "/var/lib";
  }
  if (auto state = variable("XDG_STATE_HOME"); state.starts_with('/')) {
    return state;
  }
  const auto home = variable("HOME");
  if (!home.starts_with('/')) {
    throw base::Error{"neither XDG_STATE_HOME nor HOME is set: where is the spool? --spool DIR"};
  }
  return home + "/.local/state";
}

}  // namespace

std::string default_spool() {
  const auto state = state_directory();
  std::error_code error;
  std::filesystem::create_directories(state, error);
  if (error) {
    throw base::Error{"cannot create " + state + ": " + error.message() + "; or --spool DIR"};
  }
  const auto own = base::Directory{state}.make("perf-pyinject", S_IRWXU, ::geteuid());
  return own.path_of("spool");
}

}  // namespace pyinject::push
