// A detector and an injector that touch nothing, and a logger that stores its messages.
#pragma once

#include "pyinject/fake/detector.hpp"
#include "pyinject/fake/injector.hpp"
#include "pyinject/fake/logger.hpp"

namespace pyinject::test {

using FakeDetector = fake::Detector;
using FakeInjector = fake::Injector;
using RecordingLogger = fake::Logger;

}  // namespace pyinject::test
