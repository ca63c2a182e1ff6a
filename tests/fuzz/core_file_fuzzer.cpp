// A core file, and the process in it as the readers of processes see it.
#include "elf/core_file.hpp"
#include "fuzz/fuzz.hpp"
#include "inspect/core_arguments.hpp"
#include "inspect/core_image.hpp"
#include "inspect/core_signal.hpp"
#include "inspect/core_snapshot.hpp"
#include "procfs/blocked_task.hpp"

#include <array>
#include <utility>

namespace pyinject::fuzz {
namespace {

void segments(const elf::CoreFile& core) {
  std::uint64_t behind = 0;
  std::array<std::byte, 16> bytes{};
  for (const auto& segment : core.segments()) {
    const auto begin = segment.address.value();
    require(begin >= behind && segment.memory_size != 0, "segments do not overlap");
    behind = begin + segment.memory_size;
    require(core.find(base::RemoteAddress{begin}) == &segment, "its first byte is in it");
    require(core.find(base::RemoteAddress{behind - 1}) == &segment, "its last byte is in it");
    const bool read = core.read(segment, base::RemoteAddress{begin}, bytes);
    require(!read || segment.file_size >= bytes.size(), "what is read is in the core");
  }
}

void mappings(const inspect::CoreImage& image) {
  const auto maps = image.mappings().value_or(std::vector<procfs::Mapping>{});
  const auto memory = image.memory();
  base::RemoteAddress behind;
  for (const auto& mapping : maps) {
    require(mapping.begin >= behind && mapping.begin < mapping.end, "mappings do not overlap");
    behind = mapping.end;
    if (mapping.inode == 0) {  // reads no files of this machine
      (void)memory->read_value<std::uint64_t>(mapping.begin);
      (void)memory->read_value<std::uint64_t>(mapping.end - 4);
    }
  }
}

void threads(const inspect::CoreImage& image) {
  for (const auto& thread : image.core().notes().threads) {
    const auto call = image.system_call(thread.tid);
    require(!call || procfs::parse_blocked_call(*call).has_value(), "a call has its six arguments");
  }
}

}  // namespace

void run(Input input) {
  auto opened = elf::CoreFile::open(file_with(input.rest()));
  if (const auto* const failure = std::get_if<elf::NotCore>(&opened)) {
    require(is_printable(failure->why), "the reason is plain text");
    return;
  }
  const inspect::CoreImage image{std::get<elf::CoreFile>(std::move(opened))};
  const auto& notes = image.core().notes();
  require(!notes.threads.empty(), "a core has a thread");
  (void)inspect::pid_of(image.core());
  if (notes.signal) {
    require(is_printable(inspect::cause_of(*notes.signal)), "the cause is plain text");
  }
  segments(image.core());
  mappings(image);
  threads(image);
  // The arguments, from memory in which every address leads somewhere.
  const HostileMemory hostile{input.rest()};
  (void)inspect::core_arguments(hostile, notes.auxiliary);
}

}  // namespace pyinject::fuzz
