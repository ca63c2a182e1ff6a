// Reduces callchains to their Python functions.
#include "weave/weaver.hpp"

#include <algorithm>
#include <string_view>

namespace pyinject::weave {

namespace {

constexpr std::string_view kPython = "py::";

}  // namespace

Weaver::NameKind Weaver::name_kind(const SampleWork& work, std::uint64_t address) {
  if (synthetic_->range().begin <= address && address < synthetic_->range().end) {
    return marks_.contains(address) ? NameKind::kMark : NameKind::kPython;
  }
  if (const auto* const symbol = maps_.symbol(work.sample.pid, address);
      symbol != nullptr && symbol->name.starts_with(kPython)) {
    return NameKind::kPython;
  }
  const auto& name = earlier_->name(work.sample.pid, work.sample.time, address);
  return name.starts_with(kPython) ? NameKind::kPython
         : name.starts_with('[')   ? NameKind::kMark
                                   : NameKind::kOther;
}

// Keeps the Python functions and the marks of RESULT, of which the user part starts at FROM. The
// innermost Python function then is where the thread was. A stack without Python functions stays.
void Weaver::keep_python(SampleWork& work, std::size_t from) {
  work.sample.replaced_ip.reset();
  std::vector<std::uint64_t> kept{PERF_CONTEXT_USER};
  bool python = false;
  for (auto at = from; at < work.result.size(); ++at) {
    const auto kind = name_kind(work, work.result[at]);
    if (kind == NameKind::kPython || (kind == NameKind::kMark && python)) {
      kept.push_back(work.result[at]);
    }
    python = python || kind == NameKind::kPython;
  }
  if (python) {
    work.result = std::move(kept);
    work.sample.replaced_ip = work.result[1];
    ++summary_.reduced;
  }
}

}  // namespace pyinject::weave
