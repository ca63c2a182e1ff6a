#include "pyinject/version.hpp"

namespace pyinject {

const char PYINJECT_VERSION_SYMBOL = 0;

}  // namespace pyinject
