#include "why/code_files.hpp"

#include <chrono>

namespace pyinject::why {

CodeFiles::Place CodeFiles::find(std::uint64_t address) {
  constexpr std::chrono::milliseconds kPause{500};
  const base::RemoteAddress at{address};
  const auto* mapping = procfs::find_mapping(maps_, at);
  if (mapping == nullptr && again_.expired()) {
    maps_ = procfs::read_maps(target_.id.pid).value_or(std::vector<procfs::Mapping>{});
    again_ = base::Deadline::after(kPause);
    mapping = procfs::find_mapping(maps_, at);
  }
  const bool interpreter = target_.text_begin <= at && at < target_.text_end;
  if (mapping == nullptr || interpreter || mapping->path.empty() ||
      mapping->path == target_.interpreter) {
    return {};
  }
  return {.mode = Mode::kC, .file = mapping->path};
}

}  // namespace pyinject::why
