// The former name of two namespaces. Goes in the release after 0.3.
//
// For example:
//   session::StopSwitch stop;  // in new code: targets::StopSwitch
#pragma once

#include "pyinject/version.hpp"

namespace pyinject {

namespace targets {}
namespace record {}

namespace session {
using namespace targets;
using namespace record;
}  // namespace session

}  // namespace pyinject
