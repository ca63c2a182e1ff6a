#include "pyinject/python/detector.hpp"

#include "examination.hpp"

namespace pyinject::python {

Detection Examination::run() {
  try {
    look_at_process();
    find_interpreter();
    read_version();
    check_symbols();
    find_runtime();
    check_code();
    find_libc();
    find_mailbox();
    read_state();
    look_at_surroundings();
    return std::move(target_);
  } catch (Refuse& refuse) {
    return Refused{.refusal = {.reason = refuse.reason,
                               .found = std::move(refuse.found),
                               .remedy = std::move(refuse.remedy)},
                   .version = target_.version,
                   .interpreter = target_.interpreter,
                   .frame_pointers = frame_pointers_};
  }
}

namespace {

class ProcessDetector : public Detector {
 public:
  Detection detect(base::Pid pid) override { return Examination{files_, pid}.run(); }

 private:
  MappedFiles files_;
};

}  // namespace

std::unique_ptr<Detector> make_detector() { return std::make_unique<ProcessDetector>(); }

}  // namespace pyinject::python
