#include "support/made_elf.hpp"

#include "support/made_perf_data.hpp"

#include <algorithm>
#include <stdexcept>

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

namespace pyinject::test {

namespace {

std::string entry(std::string body) {
  body.resize((body.size() + 7) / 8 * 8 + 4, '\0');  // pad with DW_CFA_nop
  return packed(static_cast<std::uint32_t>(body.size())) + body;
}

}  // namespace

std::string made_unwind_table(const std::string& program, std::uint32_t size) {
  using namespace std::string_literals;
  // Version 1, "zR", factors 1 and -8, return address 16, pointers of 4 bytes; DW_CFA_def_cfa 7 8,
  // DW_CFA_offset 16 1.
  const auto common =
      entry(packed(std::uint32_t{0}) + "\x01zR\0\x01\x78\x10\x01\x03\x0c\x07\x08\x90\x01"s);
  const auto back = static_cast<std::uint32_t>(common.size() + sizeof(std::uint32_t));
  const auto function =
      entry(packed(back, std::uint32_t{0}, size) + std::string(1, '\0') + program);
  return common + function + packed(std::uint32_t{0});
}

std::string slow_unwind_program() {
  using namespace std::string_literals;
  constexpr char kNoOperation = '\x96';
  const std::string expression(499, kNoOperation);
  std::string program;
  constexpr char kStackPointer = 7;
  for (char number = 0; number < 16; ++number) {
    if (number != kStackPointer) {
      program += "\x16"s + number + "\xf3\x03"s + expression;  // DW_CFA_val_expression
    }
  }
  return program;
}

std::string long_unwind_program() {
  std::string program;
  while (program.size() < 60'000) {
    program += "\x0a\x0b";  // DW_CFA_remember_state, DW_CFA_restore_state
  }
  return program;
}

base::UniqueFd made_elf(const std::string& table, std::uint64_t said) {
  using namespace std::string_literals;
  const auto names = "\0.eh_frame\0.shstrtab\0"s;
  const auto size = std::max<std::uint64_t>(said, table.size());
  constexpr std::uint64_t kNames = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
  constexpr std::uint64_t kSections = 0x200;
  Elf64_Ehdr header{.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                    .e_type = ET_DYN,
                    .e_machine = EM_X86_64,
                    .e_version = EV_CURRENT,
                    .e_entry = 0,
                    .e_phoff = sizeof(Elf64_Ehdr),
                    .e_shoff = kSections,
                    .e_flags = 0,
                    .e_ehsize = sizeof(Elf64_Ehdr),
                    .e_phentsize = sizeof(Elf64_Phdr),
                    .e_phnum = 1,
                    .e_shentsize = sizeof(Elf64_Shdr),
                    .e_shnum = 3,
                    .e_shstrndx = 2};
  const Elf64_Phdr segment{.p_type = PT_LOAD,
                           .p_flags = PF_R | PF_X,
                           .p_offset = 0,
                           .p_vaddr = 0,
                           .p_paddr = 0,
                           .p_filesz = kTableAt + size,
                           .p_memsz = kTableAt + size,
                           .p_align = 0x1000};
  Elf64_Shdr unwind{};
  unwind.sh_name = 1;
  unwind.sh_type = SHT_PROGBITS;
  unwind.sh_flags = SHF_ALLOC;
  unwind.sh_addr = unwind.sh_offset = kTableAt;
  unwind.sh_size = size;
  Elf64_Shdr strings{};
  strings.sh_name = 11;
  strings.sh_type = SHT_STRTAB;
  strings.sh_offset = kNames;
  strings.sh_size = names.size();
  std::string bytes = packed(header, segment) + names;
  bytes.resize(kSections, '\0');
  bytes += packed(Elf64_Shdr{}, unwind, strings);
  bytes.resize(kTableAt, '\0');
  bytes += table;
  auto file = memory_file(bytes);
  if (::ftruncate(file.get(), static_cast<off_t>(kTableAt + size)) != 0) {
    throw std::runtime_error{"a file in memory cannot be made longer"};
  }
  return file;
}

}  // namespace pyinject::test
