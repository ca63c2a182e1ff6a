#include "pyinject/record/record_session.hpp"

#include "record/choose_engine.hpp"

namespace pyinject::record {

int record(const RecordOptions& options, python::Detector& detector, python::Injector& injector,
           base::Logger& logger, RecordObserver& observer) {
  int signal = 0;
  return record_once(options, detector, injector, logger, observer, signal);
}

}  // namespace pyinject::record
