#include "pyinject/base/pid.hpp"
