#include "pyinject/session/record_session.hpp"

#include "session/recorder.hpp"

namespace pyinject::session {

int record(const RecordOptions& options, python::Detector& detector, python::Injector& injector,
           base::Logger& logger, RecordObserver& observer) {
  return Recorder{options, detector, injector, logger, observer}.run();
}

}  // namespace pyinject::session
