// A core file: the memory and the threads of a process at one moment, core(5). Its bytes are not
// trusted: no contents crash the reader or make it use unbounded memory.
#pragma once

#include "elf/core_notes.hpp"
#include "elf/elf_file.hpp"
#include "pyinject/base/remote_address.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::elf {

// "it is not a core file"
struct NotCore {
  std::string why;
};

class CoreFile {
 public:
  // FILE: a regular file with a core of an x86-64 Linux process. A core whose memory is cut off is
  // opened; one whose headers or notes are cut off is not.
  [[nodiscard]] static std::variant<CoreFile, NotCore> open(base::UniqueFd file);

  // The PT_LOADs in ascending order, without overlaps: the process's mappings. file_size: how many
  // of its first bytes are in the core; the writer leaves out what the mapped file has.
  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  [[nodiscard]] const CoreNotes& notes() const { return notes_; }

  // How large the file is, and how large its headers say it is.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] std::uint64_t expected_size() const { return expected_size_; }
  [[nodiscard]] bool truncated() const { return size_ < expected_size_; }

  // The segment that contains ADDRESS; nullptr: none.
  [[nodiscard]] const Segment* find(base::RemoteAddress address) const;
  // Fills INTO from SEGMENT with the memory at ADDRESS. False: not all of it is in the core.
  [[nodiscard]] bool read(const Segment& segment, base::RemoteAddress address,
                          std::span<std::byte> into) const;

 private:
  CoreFile() = default;

  base::UniqueFd file_;
  std::vector<Segment> segments_;
  CoreNotes notes_;
  std::uint64_t size_ = 0;
  std::uint64_t expected_size_ = 0;
};

}  // namespace pyinject::elf
