#include "python/examine/file_verdicts.hpp"

#include "procfs/maps.hpp"

namespace pyinject::python {

namespace {

// A file may be overwritten in place without a change of its identity.
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

std::optional<bool> FileVerdicts::known(const procfs::FileIdentity& file) {
  if (file.inode == 0) {
    return false;  // anonymous memory, the vDSO
  }
  const std::scoped_lock lock{mutex_};
  const auto found = known_.find(file);
  if (found == known_.end()) {
    return std::nullopt;
  }
  // A positive answer never expires: detection then checks the process.
  const bool believed = found->second.interpreter || Clock::now() - found->second.since < kBelieved;
  return believed ? std::optional{found->second.interpreter} : std::nullopt;
}

bool FileVerdicts::look(MappedFiles& files, base::Pid pid, const procfs::FileIdentity& file,
                        const std::string& path, const base::Cancellation& cancellation) {
  if (const auto verdict = known(file)) {
    return *verdict;
  }
  procfs::Mapping mapping;
  mapping.device_major = file.device_major;
  mapping.device_minor = file.device_minor;
  mapping.inode = file.inode;
  mapping.path = path;
  FileBudget budget;
  const auto now = Clock::now();
  const auto look = files.look(pid, mapping, budget, cancellation);
  if (!look.opened) {
    return true;
  }
  const bool interpreter = look.file != nullptr && look.file->is_interpreter();
  const std::scoped_lock lock{mutex_};
  if (known_.size() >= kMostKnown) {
    known_.clear();
  }
  known_.insert_or_assign(file, Verdict{.interpreter = interpreter, .since = now});
  return interpreter;
}

}  // namespace pyinject::python
