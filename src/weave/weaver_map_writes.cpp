// Samples of CPython's writes to the perf map, which it does not write without this tool.
#include "base/text.hpp"
#include "weave/weaver.hpp"

#include <algorithm>

namespace pyinject::weave {

// The writer of PID at TIME, or of its nearest ancestor by forks.
const MapWriter* Weaver::map_writer_of(std::uint32_t pid, std::uint64_t time) const {
  for (int depth = 0; depth < kMostAncestors; ++depth) {
    if (const auto found = context_.map_writers.find(pid); found != context_.map_writers.end()) {
      return &found->second;
    }
    const auto origin = spaces_.origin(pid, time);
    if (!origin) {
      return nullptr;
    }
    pid = origin->parent;
    time = origin->time;
  }
  return nullptr;
}

// Whether one of the functions that write the map is in the callchain, called by the interpreter
// itself: extension modules may write names of their own. Only events that the write causes: the
// processor time that it takes is the process's.
bool Weaver::writes_map(const SampleWork& work) {
  const auto& sample = work.sample;
  const auto* const writer = context_.map_writers.empty() || !sample.event->is_caused_by_code()
                                 ? nullptr
                                 : map_writer_of(sample.pid, sample.time);
  if (writer == nullptr) {
    return false;
  }
  const auto in = [](std::uint64_t address) {
    return [address](const AddressRange& range) {
      return range.begin <= address && address < range.end;
    };
  };
  for (std::size_t i = 0; i + 1 < work.chain.size(); ++i) {
    const auto address = work.chain[i] - (i == 0 ? 0 : 1);  // for callers a return address
    if (!std::ranges::any_of(writer->functions, in(address)) ||
        !in(work.chain[i + 1] - 1)(writer->text)) {
      continue;
    }
    // The process may have exec'ed another program.
    const auto* const file = spaces_.find(sample.pid, sample.time, address);
    if (file != nullptr &&
        base::printable(file->path.substr(file->path.rfind('/') + 1)) == writer->file) {
      return true;
    }
  }
  summary_.map_writes_hidden = summary_.map_writes_hidden ||
                               (!sample.event->has_user_stacks() && context_.native == nullptr);
  return false;
}

}  // namespace pyinject::weave
