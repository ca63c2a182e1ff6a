#include "pyinject/python/detector.hpp"

#include "examination.hpp"
#include "pyinject/procfs/maps.hpp"

#include <algorithm>
#include <utility>

namespace pyinject::python {

namespace {

// What also comes of looking at the mappings of one program image and the memory of the next.
bool may_be_of_two_images(Reason reason) {
  return reason == Reason::kLayoutMismatch || reason == Reason::kNoMailboxSpace ||
         reason == Reason::kNoLibpythonSymbols || reason == Reason::kForeignEvaluator;
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

// Code that was there before has gone, which happens to a program that loads and unloads, too, but
// hardly just now.
bool Examination::executes_another() const {
  const auto now = places_of_code(procfs::read_maps(pid_).value_or(std::vector<procfs::Mapping>{}));
  return std::ranges::any_of(places_of_code(maps_), [&now](const Place& place) {
    return std::ranges::count(now, place) == 0;
  });
}

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
    if (may_be_of_two_images(refuse.reason) && executes_another()) {
      refuse = {.reason = Reason::kNotInitialized,
                .found = "it has just executed another program",
                .remedy = "try again when that has started"};
    }
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
