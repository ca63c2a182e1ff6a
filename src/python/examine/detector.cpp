#include "pyinject/python/detector.hpp"

#include "python/examine/examination.hpp"
#include "python/examine/file_verdicts.hpp"
#include "python/examine/image_examination.hpp"

#include <utility>

namespace pyinject::python {

namespace {

class ProcessDetector : public Detector {
 public:
  explicit ProcessDetector(Purpose purpose) : purpose_{purpose} {}

  using Detector::detect;

  Detection detect(base::Pid pid, const base::Cancellation& cancellation) override {
    Examined process{files_, pid, purpose_, cancellation};
    return examine(process);
  }

  std::optional<bool> known_verdict(const procfs::FileIdentity& file) override {
    return verdicts_.known(file);
  }

  bool may_hold_interpreter(base::Pid pid, const procfs::FileIdentity& file,
                            const std::string& path,
                            const base::Cancellation& cancellation) override {
    return verdicts_.look(files_, pid, file, path, cancellation);
  }

 private:
  Purpose purpose_;
  MappedFiles files_;
  FileVerdicts verdicts_;
};

}  // namespace

Detection detect_in(const ProcessImage& image, base::Pid pid) {
  MappedFiles files;
  Examined process{files, pid, image};
  return examine(process);
}

std::unique_ptr<Detector> make_detector(Purpose purpose) {
  return std::make_unique<ProcessDetector>(purpose);
}

}  // namespace pyinject::python
