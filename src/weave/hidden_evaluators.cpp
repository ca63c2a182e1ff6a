#include "weave/hidden_evaluators.hpp"

namespace pyinject::weave {

// Whether frame pointers lead from a function of CHAIN to its caller. The interpreter's own
// functions have frames; for others this is unknown without their unwind tables.
bool HiddenEvaluators::keeps_frame(const SampleWork& work, std::size_t index) {
  const auto address =
      work.chain[index] - (index == 0 ? 0 : 1);  // for callers this is a return address
  const auto keeps = unwinder_.keeps_frame(work.sample.pid, work.sample.time, address);
  return keeps ? *keeps : index != 0 && is_of_interpreter(spaces_, work, address);
}

HiddenEvaluators::PlaceInFile HiddenEvaluators::place_in_file(const SampleWork& work,
                                                              std::uint64_t address) const {
  const auto* const file = spaces_.find(work.sample.pid, work.sample.time, address);
  return file == nullptr ? PlaceInFile{{}, address}
                         : PlaceInFile{file->path, address - file->begin + file->offset};
}

void HiddenEvaluators::learn_callers(const SampleWork& work) {
  for (std::size_t i = 1; i + 1 < work.chain.size(); ++i) {
    if (work.kinds[i] == AddressKind::kEvaluator && work.kinds[i + 1] == AddressKind::kOther) {
      callers_.insert(place_in_file(work, work.chain[i + 1]));
    }
  }
}

bool HiddenEvaluators::hides_one(const SampleWork& work, std::size_t index) {
  if (work.kinds[index] != AddressKind::kOther || keeps_frame(work, index)) {
    return false;
  }
  if (index + 1 == work.chain.size()) {
    return !begins_thread(work, index);
  }
  return work.kinds[index + 1] == AddressKind::kOther &&
         callers_.contains(place_in_file(work, work.chain[index + 1]));
}

// Whether the function is the C library's first function of a thread, which calls the interpreter,
// or one that is known to have no evaluator outside of it.
bool HiddenEvaluators::begins_thread(const SampleWork& work, std::size_t index) const {
  const auto place = place_in_file(work, work.chain[index]);
  const auto name = place.first.substr(place.first.rfind('/') + 1);
  return roots_.contains(place) ||
         (index > 0 &&
          (name.starts_with("libc.so") || name.starts_with("libpthread.so.") ||
           name.starts_with("ld-musl-")) &&
          is_of_interpreter(spaces_, work, work.chain[index - 1]));
}

std::vector<std::size_t> HiddenEvaluators::hiding(const SampleWork& work) {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < work.chain.size(); ++i) {
    if (hides_one(work, i)) {
      result.push_back(i);
    }
  }
  return result;
}

std::vector<EvaluatorFrame> HiddenEvaluators::with_missing(const SampleWork& work,
                                                           std::vector<EvaluatorFrame> evaluators,
                                                           std::size_t count) {
  const auto all = hiding(work);
  if (all.size() != 1 || (count > 1 && all.front() + 1 != work.chain.size())) {
    return {};
  }
  for (std::size_t i = 0; i < count; ++i) {
    evaluators = insert_sorted(std::move(evaluators), {.behind = all.front() + 1});
  }
  return evaluators;
}

void HiddenEvaluators::learn_root(const SampleWork& work) {
  if (work.kinds.back() == AddressKind::kOther && !keeps_frame(work, work.chain.size() - 1)) {
    roots_.insert(place_in_file(work, work.chain.back()));
  }
}

}  // namespace pyinject::weave
