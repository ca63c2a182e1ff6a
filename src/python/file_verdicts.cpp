#include "file_verdicts.hpp"

#include "pyinject/procfs/maps.hpp"

namespace pyinject::python {

namespace {

// A file may be overwritten in place, which its identity does not show.
constexpr auto kBelieved = std::chrono::seconds{10};
constexpr std::size_t kMostKnown = 16384;

}  // namespace

std::size_t FileVerdicts::Hash::operator()(const procfs::FileIdentity& file) const {
  constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;  // 2^64 / the golden ratio
  std::uint64_t hash = file.inode;
  hash = (hash ^ file.generation) * kSpread;
  hash = (hash ^ std::uint64_t{file.device_major} << 32U ^ file.device_minor) * kSpread;
  return static_cast<std::size_t>(hash ^ hash >> 32U);
}

bool FileVerdicts::may_hold_interpreter(MappedFiles& files, base::Pid pid,
                                        const procfs::FileIdentity& file, const std::string& path) {
  if (file.inode == 0) {
    return false;  // anonymous memory, the vDSO
  }
  const auto now = Clock::now();
  const auto found = known_.find(file);
  if (found != known_.end() && now - found->second.since < kBelieved) {
    return found->second.interpreter;
  }
  procfs::Mapping mapping;
  mapping.device_major = file.device_major;
  mapping.device_minor = file.device_minor;
  mapping.inode = file.inode;
  mapping.path = path;
  const auto interpreter = files.is_interpreter(pid, mapping);
  if (!interpreter) {
    return true;
  }
  if (known_.size() >= kMostKnown) {
    known_.clear();
  }
  known_.insert_or_assign(file, Verdict{.interpreter = *interpreter, .since = now});
  return *interpreter;
}

}  // namespace pyinject::python
