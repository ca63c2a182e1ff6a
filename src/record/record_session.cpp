#include "pyinject/record/record_session.hpp"

#include "record/choose_engine.hpp"

namespace pyinject::record {

int record(const RecordPlan& plan, python::Detector& detector, python::Injector& injector,
           base::Logger& logger, RecordObserver& observer) {
  int signal = 0;
  return record_once(plan, detector, injector, logger, observer, signal);
}

}  // namespace pyinject::record
