#include "weave/python_only.hpp"

#include <string_view>
#include <utility>
#include <vector>

namespace pyinject::weave {

namespace {

constexpr std::string_view kPython = "py::";

}  // namespace

PythonOnly::Kind PythonOnly::kind_of(const SampleWork& work, std::uint64_t address) {
  if (names_.is_own(address)) {
    return names_.is_mark(address) ? Kind::kMark : Kind::kPython;
  }
  if (const auto* const symbol = processes_.maps().symbol(work.sample.pid, address);
      symbol != nullptr && symbol->name.starts_with(kPython)) {
    return Kind::kPython;
  }
  const auto& name = earlier_.name(work.sample.pid, work.sample.time, address);
  return name.starts_with(kPython) ? Kind::kPython
         : name.starts_with('[')   ? Kind::kMark
                                   : Kind::kOther;
}

bool PythonOnly::reduce(SampleWork& work, std::size_t from) {
  work.sample.replaced_ip.reset();
  std::vector<std::uint64_t> kept{PERF_CONTEXT_USER};
  bool python = false;
  for (auto at = from; at < work.result.size(); ++at) {
    const auto kind = kind_of(work, work.result[at]);
    if (kind == Kind::kPython || (kind == Kind::kMark && python)) {
      kept.push_back(work.result[at]);
    }
    python = python || kind == Kind::kPython;
  }
  if (python) {
    work.result = std::move(kept);
    work.sample.replaced_ip = work.result[1];
  }
  return python;
}

}  // namespace pyinject::weave
