// Static probes (SystemTap's <sys/sdt.h>, "USDT"): places in a program that it describes in notes,
// .note.stapsdt. They cost nothing until the kernel puts a breakpoint there. Layout of the notes:
// https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation
#pragma once

#include "elf/elf_file.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::elf {

struct UsdtProbe {
  std::string provider;
  std::string name;
  base::ElfAddress location;
  // A 16-bit counter: the program passes LOCATION only while it is not 0. Null: none.
  base::ElfAddress semaphore;
  std::string arguments;  // their locations in assembler syntax: "8@%rbx -4@%eax"
};

// NOTES: the section's bytes. BASE: the address of .stapsdt.base; addresses in a note are relative
// to its value when the note was written (prelink moves it). Skips damaged notes, and everything
// after a note with an invalid size.
[[nodiscard]] std::vector<UsdtProbe> parse_usdt_notes(std::span<const std::byte> notes,
                                                      std::optional<base::ElfAddress> base);

[[nodiscard]] std::vector<UsdtProbe> read_usdt_probes(const ElfFile& file);

// An item of UsdtProbe::arguments.
struct UsdtArgument {
  int bytes = 0;  // 1, 2, 4, 8
  bool is_signed = false;
  std::string fetch;  // in the syntax of uprobe events: "%bx", "-24(%bp)"
};

// "8@%rbx", "-4@-24(%rbp)"; nullopt: constants, symbols, indexed addresses, and everything else
// that a kernel event cannot fetch.
[[nodiscard]] std::optional<UsdtArgument> parse_usdt_argument(std::string_view text);

// The file offset of ADDRESS, if one PT_LOAD has SIZE bytes there.
[[nodiscard]] std::optional<std::uint64_t> file_offset(std::span<const Segment> segments,
                                                       base::ElfAddress address,
                                                       std::uint64_t size);

}  // namespace pyinject::elf
