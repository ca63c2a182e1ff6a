#include "support/made_core.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <span>

#include <elf.h>
#include <sys/procfs.h>
#include <sys/user.h>

namespace pyinject::test {

namespace {

template <typename Value>
std::string text_of(const Value& value) {
  std::string text(sizeof value, '\0');
  std::memcpy(text.data(), &value, sizeof value);
  return text;
}

std::string note_of(std::string_view owner, std::uint32_t type, std::string_view bytes) {
  const Elf64_Nhdr header{.n_namesz = static_cast<Elf64_Word>(owner.size() + 1),
                          .n_descsz = static_cast<Elf64_Word>(bytes.size()),
                          .n_type = type};
  constexpr std::size_t kAlign = 4;
  auto text = text_of(header);
  text += owner;
  text.append(kAlign - owner.size() % kAlign, '\0');
  text += bytes;
  text.resize((text.size() + kAlign - 1) / kAlign * kAlign, '\0');
  return text;
}

// TEXT with the NUL and padding of FIELD.
void fill(std::span<char> field, std::string_view text) {
  std::ranges::copy(text.substr(0, field.size() - 1), field.begin());
}

}  // namespace

MadeCore& MadeCore::note(std::string_view owner, std::uint32_t type, std::string_view bytes) {
  notes_ += note_of(owner, type, bytes);
  return *this;
}

MadeCore& MadeCore::thread(const Thread& thread) {
  user_regs_struct registers{};
  registers.orig_rax = static_cast<std::uint64_t>(thread.number);
  registers.rax = static_cast<std::uint64_t>(thread.result);
  registers.rdi = thread.first_argument;
  registers.fs_base = thread.thread_pointer;
  elf_prstatus status{};
  status.pr_pid = thread.tid;
  status.pr_cursig = static_cast<short>(thread.signal);
  std::memcpy(&status.pr_reg, &registers, sizeof registers);
  return note("CORE", NT_PRSTATUS, text_of(status));
}

MadeCore& MadeCore::process(int pid, std::string_view name, std::string_view arguments) {
  elf_prpsinfo info{};
  info.pr_pid = pid;
  fill(info.pr_fname, name);
  fill(info.pr_psargs, arguments);
  return note("CORE", NT_PRPSINFO, text_of(info));
}

MadeCore& MadeCore::signal(int number, int code, std::uint64_t address) {
  siginfo_t info{};
  info.si_signo = number;
  info.si_code = code;
  std::memcpy(&info.si_addr, &address, sizeof address);
  return note("CORE", NT_SIGINFO, text_of(info));
}

MadeCore& MadeCore::sent_signal(int number, int sender) {
  siginfo_t info{};
  info.si_signo = number;
  info.si_code = SI_USER;
  info.si_pid = sender;
  info.si_uid = 1000;
  return note("CORE", NT_SIGINFO, text_of(info));
}

MadeCore& MadeCore::file(std::uint64_t begin, std::uint64_t end, std::uint64_t offset,
                         std::string_view path) {
  files_.push_back({.begin = begin, .end = end, .offset = offset, .path = std::string{path}});
  return *this;
}

MadeCore& MadeCore::memory(std::uint64_t begin, std::uint64_t size, std::uint32_t flags,
                           std::string_view bytes) {
  memory_.push_back({.begin = begin, .size = size, .flags = flags, .bytes = std::string{bytes}});
  return *this;
}

std::string MadeCore::all_notes() const {
  if (files_.empty()) {
    return notes_;
  }
  auto table = text_of(std::uint64_t{files_.size()}) + text_of(std::uint64_t{4096});
  for (const auto& file : files_) {
    table += text_of(file.begin) + text_of(file.end) + text_of(file.offset);
  }
  for (const auto& file : files_) {
    table += file.path + '\0';
  }
  return notes_ + note_of("CORE", NT_FILE, table);
}

std::string MadeCore::bytes() const {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_CORE;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof header;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = static_cast<Elf64_Half>(memory_.size() + 1);
  const auto notes = all_notes();
  auto at = sizeof header + header.e_phnum * sizeof(Elf64_Phdr);
  Elf64_Phdr note{};
  note.p_type = PT_NOTE;
  note.p_offset = at;
  note.p_filesz = notes.size();
  auto text = text_of(header) + text_of(note);
  at += notes.size();
  for (const auto& memory : memory_) {
    Elf64_Phdr load{};
    load.p_type = PT_LOAD;
    load.p_flags = memory.flags;
    load.p_offset = at;
    load.p_vaddr = memory.begin;
    load.p_filesz = memory.bytes.size();
    load.p_memsz = memory.size;
    text += text_of(load);
    at += memory.bytes.size();
  }
  text += notes;
  for (const auto& memory : memory_) {
    text += memory.bytes;
  }
  return text;
}

}  // namespace pyinject::test
