#include "pyinject/python/detector.hpp"

#include "procfs/maps.hpp"
#include "python/examine/examination.hpp"
#include "python/examine/file_verdicts.hpp"
#include "python/examine/image_examination.hpp"

#include <algorithm>
#include <utility>

namespace pyinject::python {

namespace {

// Reasons that can also result from combining the mappings of one program image with the memory of
// the next, or from an image that is half mapped, where one segment has another's bytes.
bool may_be_of_memory_that_changes(Reason reason) {
  return reason == Reason::kLayoutMismatch || reason == Reason::kNoMailboxSpace ||
         reason == Reason::kNoLibpythonSymbols || reason == Reason::kForeignEvaluator ||
         reason == Reason::kFinalizing || reason == Reason::kFreeThreaded;
}

using Place = std::pair<base::RemoteAddress, std::uint64_t>;

std::vector<Place> places_of_code(const std::vector<procfs::Mapping>& maps) {
  std::vector<Place> places;
  for (const auto& mapping : maps) {
    if (mapping.executable && mapping.inode != 0) {
      places.emplace_back(mapping.begin, mapping.inode);
    }
  }
  return places;
}

}  // namespace

// Whether its code has moved: the process has exec'ed.
bool Examination::executes_another() const {
  const auto now = procfs::read_maps(pid_).value_or(std::vector<procfs::Mapping>{});
  return places_of_code(now) != places_of_code(maps_);
}

// True while the dynamic loader has not mapped the libraries yet.
bool Examination::is_being_loaded() {
  bool loaded = true;
  for (const auto& mapping : maps_) {
    const auto module =
        mapping.executable && mapping.inode != 0 ? module_of(mapping) : std::nullopt;
    if (given_up()) {
      return false;
    }
    if (module && module->file->defines("sem_post")) {
      return false;
    }
    loaded = loaded && !(module && module->file->has_program_interpreter);
  }
  return !loaded;
}

Detection Examination::run() {
  try {
    image_ != nullptr ? look_at_image() : look_at_process();
    find_interpreter();
    check_loaded();
    read_version();
    check_symbols();
    find_runtime();
    if (purpose_ == Purpose::kObserve) {
      return std::move(target_);
    }
    check_code();
    find_libc();
    find_mailbox();
    read_state();
    look_at_surroundings();
    return std::move(target_);
  } catch (Refuse& refuse) {
    if (image_ == nullptr && may_be_of_memory_that_changes(refuse.reason) && !given_up() &&
        (is_being_loaded() || executes_another())) {
      refuse = {.reason = Reason::kNotInitialized,
                .found = "it has just exec'ed its program",
                .remedy = "try again when the program has started"};
    }
    return Refused{.refusal = {.reason = refuse.reason,
                               .found = std::move(refuse.found),
                               .remedy = std::move(refuse.remedy)},
                   .version = target_.version,
                   .interpreter = target_.interpreter,
                   .frame_pointers = frame_pointers_,
                   .initialized = initialized_};
  }
}

std::variant<Module, Refusal> Examination::interpreter() {
  try {
    look_at_process();
    find_interpreter();
    return interpreter_;
  } catch (Refuse& refuse) {
    return Refusal{.reason = refuse.reason,
                   .found = std::move(refuse.found),
                   .remedy = std::move(refuse.remedy)};
  }
}

namespace {

class ProcessDetector : public Detector {
 public:
  explicit ProcessDetector(Purpose purpose) : purpose_{purpose} {}

  using Detector::detect;

  Detection detect(base::Pid pid, const base::Cancellation& cancellation) override {
    return Examination{files_, pid, purpose_, cancellation}.run();
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
  return Examination{files, pid, image}.run();
}

std::unique_ptr<Detector> make_detector(Purpose purpose) {
  return std::make_unique<ProcessDetector>(purpose);
}

}  // namespace pyinject::python
