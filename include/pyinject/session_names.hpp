// The former name of two namespaces. Goes in the release after 0.3.
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
