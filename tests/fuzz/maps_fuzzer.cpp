// /proc/PID/maps: a target chooses the names of its files and, with prctl, those of its memory.
#include "fuzz/fuzz.hpp"
#include "procfs/maps.hpp"

#include <fmt/format.h>

#include <string>

namespace pyinject::fuzz {
namespace {

using procfs::Mapping;

// As in show_map_vma() of the kernel's fs/proc/task_mmu.c.
std::string line_of(const Mapping& mapping) {
  std::string path;
  for (const char c : mapping.path) {
    path += c == '\n' ? "\\012" : std::string{c};
  }
  return fmt::format("{:x}-{:x} {}{}{}{} {:08x} {:02x}:{:02x} {} {}{}{}\n", mapping.begin.value(),
                     mapping.end.value(), mapping.readable ? 'r' : '-',
                     mapping.writable ? 'w' : '-', mapping.executable ? 'x' : '-',
                     mapping.shared ? 's' : 'p', mapping.offset, mapping.device_major,
                     mapping.device_minor, mapping.inode, path.empty() ? "" : "                  ",
                     path, mapping.deleted ? " (deleted)" : "");
}

void any_text(std::string_view text) {
  const auto maps = procfs::parse_maps(text);
  std::string again;
  for (const auto& mapping : maps) {
    require(mapping.begin < mapping.end, "a mapping ends behind its begin");
    require(mapping.inode != 0 || !mapping.deleted, "only a file can be deleted");
    again += line_of(mapping);
    for (const auto address : {mapping.begin, mapping.end}) {
      const auto* found = procfs::find_mapping(maps, address);
      require(found == nullptr || found->contains(address), "what is found holds the address");
    }
  }
  require(procfs::parse_maps(again) == maps, "what was read is read the same again");
}

// The kernel accepts names with any byte but NUL and newline: a name must not extend beyond its
// field.
void any_name(std::string_view bytes) {
  const std::string path = "/" + std::string{bytes.substr(0, bytes.find('\0'))};
  Mapping before{.begin = base::RemoteAddress{0x1000},
                 .end = base::RemoteAddress{0x2000},
                 .readable = true,
                 .path = "[heap]"};
  Mapping hostile{.begin = base::RemoteAddress{0x3000},
                  .end = base::RemoteAddress{0x5000},
                  .executable = true,
                  .offset = 0x1000,
                  .device_major = 8,
                  .device_minor = 1,
                  .inode = 77,
                  .path = path};
  const Mapping behind{.begin = base::RemoteAddress{0x6000}, .end = base::RemoteAddress{0x7000}};
  const auto maps = procfs::parse_maps(line_of(before) + line_of(hostile) + line_of(behind));
  require(maps.size() == 3, "one line is one mapping, whatever it is called");
  require(maps[0] == before && maps[2] == behind, "a name does not change its neighbours");
  auto read = maps[1];
  require(!path.ends_with(" (deleted)") == !read.deleted, "deleted is what ends so");
  require(read.path.size() <= path.size(), "the name is its own");
  read.path = path;
  read.deleted = false;
  require(read == hostile, "a name does not change the other fields");
}

}  // namespace

void run(Input input) {
  any_text(input.text());
  any_name(input.text());
}

}  // namespace pyinject::fuzz
