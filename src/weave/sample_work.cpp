#include "weave/sample_work.hpp"

namespace pyinject::weave {

bool is_of_interpreter(const unwind::AddressSpaces& spaces, const SampleWork& work,
                       std::uint64_t address) {
  const auto file_of = [&](std::uint64_t each) {
    return spaces.find(work.sample.pid, work.sample.time, each);
  };
  const auto* const file = file_of(address);
  const auto* const own = work.interpreter == nullptr || work.interpreter->evaluator.empty()
                              ? nullptr
                              : file_of(work.interpreter->evaluator.front().begin);
  return file != nullptr && own != nullptr && file->path == own->path;
}

StackQuery query_of(const unwind::AddressSpaces& spaces, const SampleWork& work) {
  return {.pid = work.sample.pid,
          .tid = work.sample.tid,
          .time = work.sample.time,
          .traced = work.sample.event->attr.type == PERF_TYPE_TRACEPOINT,
          .program_since = spaces.began(work.sample.pid, work.sample.time)};
}

}  // namespace pyinject::weave
