#include "record/malloc_probes.hpp"

#include "base/format.hpp"
#include "base/text.hpp"
#include "procfs/maps.hpp"
#include "procfs/open_mapped.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

namespace pyinject::record {

namespace {

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

std::vector<ProbePlace> functions_in(const elf::ElfFile& file,
                                     const base::Cancellation& cancellation) {
  std::vector<ProbePlace> found;
  for (const auto& [name, symbol] : file.find_symbols(kAllocators, cancellation)) {
    if (const auto offset = offset_of(file, symbol.address); offset && symbol.size > 0) {
      found.push_back({.name = name, .offset = *offset});
    }
  }
  return found;
}

constexpr std::string_view kAllocate = "heap_alloc";
constexpr std::string_view kFree = "heap_free";
// Compilers copy the code around a probe.
constexpr std::size_t kMostPlaces = 64;

// "ptr=%di:u64 size=%si:u64 weight=%dx:u64": as MemoryCall needs them.
std::optional<std::string> fetched(const elf::UsdtProbe& probe, std::size_t count) {
  constexpr auto kNames = std::to_array<std::string_view>({"ptr", "size", "weight"});
  const auto texts = base::split(probe.arguments, ' ');
  if (texts.size() < count) {
    return std::nullopt;
  }
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    const auto argument = elf::parse_usdt_argument(texts[i]);
    if (!argument || argument->bytes != 8) {
      return std::nullopt;
    }
    all += fmt::format("{}{}={}:u64", i == 0 ? "" : " ", kNames.at(i), argument->fetch);
  }
  return all;
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

struct ProbedFile {
  base::UniqueFd file;
  std::string path;  // as its process sees it
  std::vector<ProbePlace> places;
};

// Looks for files with places for probes, each file once: two events at one address would count
// each call twice.
class Search {
 public:
  using PlacesOf = std::function<std::vector<ProbePlace>(const elf::ElfFile&, const std::string&)>;
  Search(const base::Cancellation& cancellation, PlacesOf places_of)
      : cancellation_{cancellation}, places_of_{std::move(places_of)} {}

  void look_at(base::Pid pid, bool c_library);
  [[nodiscard]] const std::vector<ProbedFile>& found() const { return found_; }
  [[nodiscard]] std::size_t left_out() const { return left_out_; }  // more than kMostFiles

 private:
  const base::Cancellation& cancellation_;
  PlacesOf places_of_;
  std::set<std::pair<dev_t, ino_t>> known_;
  std::vector<ProbedFile> found_;
  std::size_t left_out_ = 0;
};

void Search::look_at(base::Pid pid, bool c_library) {
  for (const auto& mapping : procfs::read_maps(pid).value_or(std::vector<procfs::Mapping>{})) {
    if (cancellation_.stopped()) {
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
        !known_.emplace(facts.st_dev, facts.st_ino).second) {
      continue;
    }
    const auto elf = elf::ElfFile::open(base::UniqueFd{::dup(fd->get())});
    const auto path = base::printable(mapping.path);
    auto places = std::holds_alternative<elf::ElfFile>(elf)
                      ? places_of_(std::get<elf::ElfFile>(elf), path)
                      : std::vector<ProbePlace>{};
    if (!places.empty() && found_.size() < kMostFiles) {
      found_.push_back({.file = std::move(*fd), .path = path, .places = std::move(places)});
    } else if (!places.empty()) {
      ++left_out_;
    }
  }
}

}  // namespace

AllocatorPlaces allocator_places(const std::vector<elf::UsdtProbe>& probes,
                                 std::span<const elf::Segment> segments) {
  AllocatorPlaces found;
  bool allocates = false;
  bool frees = false;
  for (const auto& probe : probes) {
    const bool is_free = probe.name == "free";
    if ((probe.provider != "otel_memory" && probe.provider != "ddheap") ||
        (!is_free && probe.name != "alloc")) {
      continue;
    }
    const auto place = elf::file_offset(segments, probe.location, 1);
    const auto counter = probe.semaphore.value() == 0
                             ? std::optional<std::uint64_t>{0}
                             : elf::file_offset(segments, probe.semaphore, 2);
    const auto arguments = fetched(probe, is_free ? 1 : 3);
    if (!place || !counter || !arguments) {
      return {.places = {},
              .lack = fmt::format("the kernel cannot fetch the arguments of its probe {}: '{}'",
                                  probe.name, base::printable(probe.arguments, 100))};
    }
    (is_free ? frees : allocates) = true;
    const bool known = std::ranges::any_of(
        found.places, [&](const ProbePlace& other) { return other.offset == *place; });
    if (!known) {
      found.places.push_back({.name = std::string{is_free ? kFree : kAllocate},
                              .offset = *place,
                              .counter_offset = *counter,
                              .arguments = *arguments});
    }
  }
  if (allocates != frees) {
    return {.places = {}, .lack = "it tells what is allocated or freed, not both"};
  }
  if (found.places.size() > kMostPlaces) {
    return {.places = {}, .lack = fmt::format("it claims {} probes", found.places.size())};
  }
  return found;
}

std::variant<MallocProbes, std::string> MallocProbes::open(base::Logger& logger) {
  auto opened = perf::UprobeEvents::open(perf::this_owner());
  if (const auto* const missing = std::get_if<perf::NoTracefs>(&opened)) {
    return missing->why;
  }
  MallocProbes probes{std::get<perf::UprobeEvents>(std::move(opened))};
  if (const auto count = probes.events_.remove_abandoned(perf::is_alive); count > 0) {
    logger.info("removed {} left in tracefs by killed sessions", base::counted(count, "event"));
  }
  return probes;
}

std::variant<MallocProbes, std::string> MallocProbes::of(std::span<const base::Pid> pids,
                                                         const base::Cancellation& cancellation,
                                                         base::Logger& logger) {
  auto opened = open(logger);
  auto* const probes = std::get_if<MallocProbes>(&opened);
  if (probes == nullptr) {
    return opened;
  }
  Search search{cancellation, [&](const elf::ElfFile& file, const std::string&) {
                  return functions_in(file, cancellation);
                }};
  for (const bool c_library : {true, false}) {
    for (const auto pid : pids) {
      search.look_at(pid, c_library);
    }
  }
  if (search.left_out() != 0) {
    logger.warning("--what malloc: {} that define malloc are not probed: at most {} are",
                   base::counted(search.left_out(), "more file", "more files"), kMostFiles);
  }
  if (search.found().empty()) {
    return "no file of the processes defines malloc, or none is readable: run as root";
  }
  for (const auto& [file, path, places] : search.found()) {
    probes->add(file.get(), path, places);
  }
  return opened;
}

std::optional<MallocProbes> MallocProbes::that_tell(std::span<const base::Pid> pids,
                                                    const base::Cancellation& cancellation,
                                                    base::Logger& logger) {
  const auto leave_out = [&logger](const std::string& path, const std::string& why) {
    logger.warning("--what memory: what the allocator in {} samples is left out: {}", path, why);
  };
  Search search{cancellation, [&](const elf::ElfFile& file, const std::string& path) {
                  auto found = allocator_places(elf::read_usdt_probes(file), file.segments());
                  if (!found.lack.empty()) {
                    leave_out(path, found.lack);
                  }
                  return std::move(found.places);
                }};
  for (const auto pid : pids) {
    search.look_at(pid, false);
  }
  if (search.left_out() != 0) {
    logger.warning("--what memory: {} that tell allocations are not probed: at most {} are",
                   base::counted(search.left_out(), "more file", "more files"), kMostFiles);
  }
  if (search.found().empty() || cancellation.stopped()) {
    return std::nullopt;
  }
  auto opened = open(logger);
  if (const auto* const why = std::get_if<std::string>(&opened)) {
    leave_out(search.found().front().path, *why);
    return std::nullopt;
  }
  auto& probes = std::get<MallocProbes>(opened);
  for (const auto& [file, path, places] : search.found()) {
    try {
      probes.add(file.get(), path, places);
    } catch (const base::Error& error) {
      leave_out(path, error.what());
      return std::nullopt;
    }
  }
  return std::move(probes);
}

void MallocProbes::add(int file, const std::string& path, const std::vector<ProbePlace>& places) {
  for (const auto& place : places) {
    const auto number = ++names_[place.name];
    events_.add(number == 1 ? place.name : fmt::format("{}_{}", place.name, number), file,
                place.offset, place.counter_offset, place.arguments);
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
