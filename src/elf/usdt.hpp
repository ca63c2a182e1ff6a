// Static probes (SystemTap's <sys/sdt.h>, "USDT"): places in a program that it describes in notes,
// .note.stapsdt, and that cost nothing until the kernel puts a breakpoint there. The notes' layout:
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
  // A counter, 16 bits: the program comes by LOCATION only while it is not 0. Null: none.
  base::ElfAddress semaphore;
  std::string arguments;  // where they are, in the assembler's words: "8@%rbx -4@%eax"
};

// NOTES: the section's bytes. BASE: where .stapsdt.base is; the addresses in a note were right for
// where that was when the note was written (prelink moves it). Damaged notes are left out; what is
// behind one whose size makes no sense, too.
[[nodiscard]] std::vector<UsdtProbe> parse_usdt_notes(std::span<const std::byte> notes,
                                                      std::optional<base::ElfAddress> base);

[[nodiscard]] std::vector<UsdtProbe> read_usdt_probes(const ElfFile& file);

// One of UsdtProbe::arguments.
struct UsdtArgument {
  int bytes = 0;  // 1, 2, 4, 8
  bool is_signed = false;
  std::string fetch;  // as uprobe events have it: "%bx", "-24(%bp)"
};

// "8@%rbx", "-4@-24(%rbp)"; nullopt: constants, symbols, addresses with an index, and whatever else
// no event of the kernel can fetch.
[[nodiscard]] std::optional<UsdtArgument> parse_usdt_argument(std::string_view text);

// Where in the file what is at ADDRESS is, if SIZE bytes of one PT_LOAD are there.
[[nodiscard]] std::optional<std::uint64_t> file_offset(std::span<const Segment> segments,
                                                       base::ElfAddress address,
                                                       std::uint64_t size);

}  // namespace pyinject::elf
