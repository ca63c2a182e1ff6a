#include "record/malloc_probes.hpp"

#include "base/format.hpp"
#include "base/text.hpp"
#include "elf/elf_file.hpp"
#include "procfs/maps.hpp"
#include "procfs/open_mapped.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::record {

namespace {

using Functions = std::vector<std::pair<std::string, std::uint64_t>>;  // name, offset in the file

constexpr auto kAllocators = std::to_array<std::string_view>({"malloc", "calloc", "realloc"});

std::optional<std::uint64_t> offset_of(const elf::ElfFile& file, base::ElfAddress address) {
  for (const auto& segment : file.segments()) {
    const auto place = address.value() - segment.address.value();
    if (segment.is_load() && segment.executable() && place < segment.file_size) {
      return segment.offset + place;
    }
  }
  return std::nullopt;
}

Functions allocators_in(base::UniqueFd file, const base::Cancellation& cancellation) {
  Functions found;
  auto opened = elf::ElfFile::open(std::move(file));
  if (const auto* const elf = std::get_if<elf::ElfFile>(&opened)) {
    for (const auto& [name, symbol] : elf->find_symbols(kAllocators, cancellation)) {
      if (const auto offset = offset_of(*elf, symbol.address); offset && symbol.size > 0) {
        found.emplace_back(name, *offset);
      }
    }
  }
  return found;
}

// The dynamic loader has an allocator of its own, which programs do not use.
bool is_loader(std::string_view path) {
  return path.substr(path.rfind('/') + 1).starts_with("ld-linux");
}

// What most programs use: it must not lose its place to others.
bool is_c_library(std::string_view path) {
  const auto name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libc.") || name.starts_with("libc-") || name.starts_with("ld-musl");
}

// A process has one or two files with an allocator. perf opens each event for each thread and
// processor, which takes up to 100 ms each; a process can map thousands.
constexpr std::size_t kMostFiles = 16;

}  // namespace

std::variant<MallocProbes, std::string> MallocProbes::of(std::span<const base::Pid> pids,
                                                         const base::Cancellation& cancellation,
                                                         base::Logger& logger) {
  auto opened = perf::UprobeEvents::open(perf::this_owner());
  if (const auto* const missing = std::get_if<perf::NoTracefs>(&opened)) {
    return missing->why;
  }
  MallocProbes probes{std::get<perf::UprobeEvents>(std::move(opened))};
  if (const auto count = probes.events_.remove_abandoned(perf::is_alive); count > 0) {
    logger.info("removed {} left in tracefs by killed sessions", base::counted(count, "event"));
  }
  // Two events at one address would count each call twice.
  std::set<std::pair<dev_t, ino_t>> known;
  std::size_t left_out = 0;
  const auto probe = [&](base::Pid pid, bool c_library) {
    for (const auto& mapping : procfs::read_maps(pid).value_or(std::vector<procfs::Mapping>{})) {
      if (cancellation.stopped()) {
        return;
      }
      if (!mapping.executable || mapping.inode == 0 || is_loader(mapping.path) ||
          is_c_library(mapping.path) != c_library) {
        continue;
      }
      auto file = procfs::open_mapped_file(pid, mapping);
      auto* const fd = std::get_if<base::UniqueFd>(&file);
      struct stat facts {};
      if (fd == nullptr || ::fstat(fd->get(), &facts) != 0 ||
          !known.emplace(facts.st_dev, facts.st_ino).second) {
        continue;
      }
      if (const auto functions = allocators_in(base::UniqueFd{::dup(fd->get())}, cancellation);
          !functions.empty() && probes.files_.size() < kMostFiles) {
        probes.add(fd->get(), base::printable(mapping.path), functions);
      } else if (!functions.empty()) {
        ++left_out;
      }
    }
  };
  for (const bool c_library : {true, false}) {
    for (const auto pid : pids) {
      probe(pid, c_library);
    }
  }
  if (left_out != 0) {
    logger.warning("--what malloc: {} that define malloc are not probed: at most {} are",
                   base::counted(left_out, "more file", "more files"), kMostFiles);
  }
  if (probes.events().empty()) {
    return "no file of the processes defines malloc, or none is readable: run as root";
  }
  return probes;
}

void MallocProbes::add(int file, const std::string& path, const Functions& functions) {
  for (const auto& [name, offset] : functions) {
    events_.add(files_.empty() ? name : fmt::format("{}_{}", name, files_.size() + 1), file, offset,
                0, "");
  }
  files_.push_back(path);
}

void MallocProbes::remove(base::Logger& logger) {
  if (const auto left = events_.remove(); !left.empty()) {
    logger.warning(
        "{} in tracefs still in use: the guard removes {} once no perf uses {}, within a minute",
        base::counted(left.size(), "event is", "events are"), left.size() == 1 ? "it" : "them",
        left.size() == 1 ? "it" : "them");
  }
}

}  // namespace pyinject::record
