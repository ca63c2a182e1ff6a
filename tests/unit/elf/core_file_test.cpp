#include "elf/core_file.hpp"

#include "base/file.hpp"
#include "pyinject/base/error.hpp"
#include "support/made_core.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <elf.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>

namespace pyinject::elf {
namespace {

using base::RemoteAddress;
using test::MadeCore;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint64_t kHere = 0x7f0000001000;

std::variant<CoreFile, NotCore> open_core_bytes(std::string_view bytes) {
  base::UniqueFd file{::memfd_create("core", MFD_CLOEXEC)};
  base::write_all(file.get(), bytes, "a memfd");
  return CoreFile::open(std::move(file));
}

CoreFile core_of(std::string_view bytes) {
  auto result = open_core_bytes(bytes);
  if (const auto* const failure = std::get_if<NotCore>(&result)) {
    throw base::Error{failure->why};
  }
  return std::get<CoreFile>(std::move(result));
}

std::string why_no_core(std::string_view bytes) {
  const auto result = open_core_bytes(bytes);
  const auto* const failure = std::get_if<NotCore>(&result);
  return failure == nullptr ? "it was opened" : failure->why;
}

MadeCore small_core() {
  MadeCore core;
  core.process(40, "python3", "python3 app.py ")
      .thread({.tid = 41, .signal = SIGSEGV, .thread_pointer = 0x1234})
      .signal(SIGSEGV, SEGV_MAPERR, 0x10)
      .thread({.tid = 40,
               .signal = SIGSEGV,
               .number = SYS_futex,
               .result = -512,
               .first_argument = 0xabc0})
      .memory(kHere, 0x3000, PF_R | PF_W, std::string(0x1000, 'a') + std::string(0x1000, 'b'));
  return core;
}

template <typename Header, typename Change>
std::string changed_core(std::string bytes, std::size_t at, Change change) {
  Header header{};
  std::memcpy(&header, bytes.data() + at, sizeof header);
  change(header);
  std::memcpy(bytes.data() + at, &header, sizeof header);
  return bytes;
}

template <typename Change>
std::string core_with_header(Change change) {
  return changed_core<Elf64_Ehdr>(small_core().bytes(), 0, change);
}

TEST(CoreFile, HasTheProcessItsThreadsAndTheSignal) {
  const auto core = core_of(small_core().bytes());
  const auto& notes = core.notes();
  ASSERT_TRUE(notes.process);
  EXPECT_EQ(notes.process->pid, base::Pid{40});
  EXPECT_EQ(notes.process->name, "python3");
  EXPECT_EQ(notes.process->arguments, "python3 app.py");
  EXPECT_FALSE(notes.process->cut);
  ASSERT_THAT(notes.threads, SizeIs(2));
  EXPECT_EQ(notes.threads[0].tid, base::Tid{41});
  EXPECT_EQ(notes.threads[0].signal, SIGSEGV);
  EXPECT_EQ(notes.threads[0].thread_pointer, 0x1234U);
  EXPECT_FALSE(notes.threads[0].call);
  ASSERT_TRUE(notes.threads[1].call);
  EXPECT_EQ(notes.threads[1].call->number, SYS_futex);
  EXPECT_EQ(notes.threads[1].call->arguments[0], 0xabc0U);
  ASSERT_TRUE(notes.signal);
  EXPECT_EQ(notes.signal->code, SEGV_MAPERR);
  EXPECT_EQ(notes.signal->address, 0x10U);
  EXPECT_FALSE(core.truncated());
}

TEST(CoreFile, NamesTheSenderOfASignal) {
  const auto core =
      core_of(MadeCore{}.thread({.tid = 7, .signal = SIGABRT}).sent_signal(SIGABRT, 99).bytes());
  ASSERT_TRUE(core.notes().signal);
  EXPECT_EQ(core.notes().signal->sender, base::Pid{99});
  EXPECT_EQ(core.notes().signal->sender_uid, 1000U);
  EXPECT_EQ(core.notes().signal->address, 0U);
}

// A system call that has returned a value or an error is over.
TEST(CoreFile, HasOnlyTheCallsThatItInterrupted) {
  for (const auto& [result, interrupted] :
       std::to_array<std::pair<std::int64_t, bool>>({{-512, true},
                                                     {-513, true},
                                                     {-514, true},
                                                     {-516, true},
                                                     {-4, true},
                                                     {-515, false},
                                                     {-517, false},
                                                     {-11, false},
                                                     {0, false},
                                                     {17, false}})) {
    const auto core =
        core_of(MadeCore{}.thread({.tid = 7, .number = SYS_read, .result = result}).bytes());
    EXPECT_EQ(core.notes().threads.at(0).call.has_value(), interrupted) << result;
  }
}

TEST(CoreFile, SaysThatArgumentsAreCut) {
  const auto core =
      core_of(MadeCore{}.process(1, "python3", std::string(200, 'x')).thread({.tid = 1}).bytes());
  EXPECT_TRUE(core.notes().process->cut);
  EXPECT_THAT(core.notes().process->arguments, SizeIs(79));
}

TEST(CoreFile, ListsTheMappedFiles) {
  const auto core = core_of(MadeCore{}
                                .thread({.tid = 1})
                                .file(0x1000, 0x3000, 2, "/usr/bin/python3")
                                .file(0x5000, 0x6000, 0, "/tmp/a b (deleted)")
                                .bytes());
  const auto& files = core.notes().files;
  ASSERT_THAT(files, SizeIs(2));
  EXPECT_EQ(files[0], (CoreMappedFile{.begin = RemoteAddress{0x1000},
                                      .end = RemoteAddress{0x3000},
                                      .offset = 0x2000,
                                      .path = "/usr/bin/python3"}));
  EXPECT_EQ(files[1].path, "/tmp/a b (deleted)");
}

TEST(CoreFile, ReadsWhatItHolds) {
  const auto core = core_of(small_core().bytes());
  const auto* const segment = core.find(RemoteAddress{kHere + 0x2fff});
  ASSERT_NE(segment, nullptr);
  EXPECT_TRUE(segment->writable());
  EXPECT_EQ(core.find(RemoteAddress{kHere - 1}), nullptr);
  EXPECT_EQ(core.find(RemoteAddress{kHere + 0x3000}), nullptr);
  std::array<std::byte, 4> four{};
  EXPECT_TRUE(core.read(*segment, RemoteAddress{kHere + 0xffe}, four));
  EXPECT_EQ(four, (std::array{std::byte{'a'}, std::byte{'a'}, std::byte{'b'}, std::byte{'b'}}));
  EXPECT_TRUE(core.read(*segment, RemoteAddress{kHere + 0x1ffc}, four));
  // The third page is not in the core.
  EXPECT_FALSE(core.read(*segment, RemoteAddress{kHere + 0x1ffd}, four));
  EXPECT_FALSE(core.read(*segment, RemoteAddress{kHere + 0x2000}, four));
  EXPECT_FALSE(core.read(*segment, RemoteAddress{kHere - 4}, four));
}

TEST(CoreFile, IsOpenedIfOnlyItsMemoryIsCutOff) {
  auto bytes = small_core().bytes();
  const auto whole = bytes.size();
  bytes.resize(whole - 0x1800);
  const auto core = core_of(bytes);
  EXPECT_TRUE(core.truncated());
  EXPECT_EQ(core.size(), whole - 0x1800);
  EXPECT_EQ(core.expected_size(), whole);
  const auto* const segment = core.find(RemoteAddress{kHere});
  ASSERT_NE(segment, nullptr);
  std::array<std::byte, 4> four{};
  EXPECT_TRUE(core.read(*segment, RemoteAddress{kHere}, four));
  EXPECT_FALSE(core.read(*segment, RemoteAddress{kHere + 0x1000}, four));
}

TEST(CoreFile, IsRefusedIfItsHeadersOrNotesAreCutOff) {
  const auto bytes = small_core().bytes();
  EXPECT_THAT(why_no_core(std::string_view{bytes}.substr(0, 100)),
              HasSubstr("it is truncated: its program headers are missing behind its 100 bytes"));
  EXPECT_THAT(why_no_core(std::string_view{bytes}.substr(0, 600)),
              HasSubstr("it is truncated: its notes about the threads are missing"));
}

TEST(CoreFile, SaysWhyAFileIsNoCore) {
  EXPECT_EQ(why_no_core(""), "it is not a core file");
  EXPECT_EQ(why_no_core("#!/bin/sh\nexit 1\n"), "it is not a core file");
  EXPECT_THAT(why_no_core("\x28\xb5\x2f\xfd rest of a compressed file"), HasSubstr("zstd -d"));
  EXPECT_THAT(why_no_core(core_with_header([](auto& header) { header.e_type = ET_DYN; })),
              HasSubstr("a program or library"));
  EXPECT_THAT(why_no_core(core_with_header([](auto& header) { header.e_machine = EM_AARCH64; })),
              HasSubstr("another architecture (ELF machine 183)"));
  EXPECT_THAT(
      why_no_core(core_with_header([](auto& header) { header.e_ident[EI_CLASS] = ELFCLASS32; })),
      HasSubstr("32-bit"));
  EXPECT_THAT(why_no_core(core_with_header([](auto& header) { header.e_phentsize = 32; })),
              HasSubstr("32 bytes each"));
  EXPECT_THAT(why_no_core(MadeCore{}.process(1, "a", "a").bytes()),
              HasSubstr("no notes about the threads"));
}

TEST(CoreFile, RefusesWhatIsNoRegularFile) {
  const auto result = CoreFile::open(base::UniqueFd{::epoll_create1(EPOLL_CLOEXEC)});
  ASSERT_TRUE(std::holds_alternative<NotCore>(result));
  EXPECT_EQ(std::get<NotCore>(result).why, "it is not a regular file");
}

// More segments than a 16-bit number can count.
TEST(CoreFile, CountsItsHeadersInTheFirstSectionIfNeeded) {
  auto bytes = core_with_header([](auto& header) {
    header.e_phnum = PN_XNUM;
    header.e_shoff = 0;
  });
  Elf64_Shdr section{};
  section.sh_info = 2;
  const auto at = bytes.size();
  bytes.append(sizeof section, '\0');
  std::memcpy(bytes.data() + at, &section, sizeof section);
  bytes = changed_core<Elf64_Ehdr>(bytes, 0, [at](auto& header) { header.e_shoff = at; });
  EXPECT_THAT(core_of(bytes).segments(), SizeIs(1));
}

TEST(CoreFile, IgnoresNotesOfOthersAndDamagedOnes) {
  const auto core = core_of(MadeCore{}
                                .note("LINUX", NT_PRSTATUS, std::string(400, 'x'))
                                .note("CORE", NT_PRSTATUS, "short")
                                .note("CORE", NT_FILE, std::string(16, '\xff'))
                                .note("CORE", NT_SIGINFO, "short")
                                .thread({.tid = 5})
                                .bytes());
  EXPECT_THAT(core.notes().threads, SizeIs(1));
  EXPECT_THAT(core.notes().files, IsEmpty());
  EXPECT_FALSE(core.notes().signal);
}

TEST(CoreFile, LeavesOutSegmentsThatOverlapOrWrapAround) {
  const auto core = core_of(MadeCore{}
                                .thread({.tid = 5})
                                .memory(0x2000, 0x2000, PF_R, "two")
                                .memory(0x1000, 0x1800, PF_R, "one")
                                .memory(0xfffffffffffff000, 0x2000, PF_R, "end")
                                .memory(0x9000, 0, PF_R, "")
                                .bytes());
  ASSERT_THAT(core.segments(), SizeIs(1));
  EXPECT_EQ(core.segments()[0].address.value(), 0x1000U);
}

TEST(CoreNotes, HaveNoFilesIfTheTableIsDamaged) {
  const auto table = [](std::uint64_t count, std::uint64_t page, std::uint64_t begin,
                        std::uint64_t end, std::string_view name) {
    std::string text;
    for (const auto value : {count, page, begin, end, std::uint64_t{0}}) {
      text.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    text += name;
    return text;
  };
  const auto files = [](const std::string& text) {
    return parse_core_files(std::as_bytes(std::span{text}));
  };
  EXPECT_THAT(files(table(1, 4096, 0x1000, 0x2000, {"/a\0", 3})), SizeIs(1));
  EXPECT_THAT(files(table(1, 4096, 0x1000, 0x2000, "/a")), IsEmpty());
  EXPECT_THAT(files(table(2, 4096, 0x1000, 0x2000, {"/a\0", 3})), IsEmpty());
  EXPECT_THAT(files(table(1, 0, 0x1000, 0x2000, {"/a\0", 3})), IsEmpty());
  EXPECT_THAT(files(table(1, 4096, 0x2000, 0x1000, {"/a\0", 3})), IsEmpty());
  EXPECT_THAT(files(table(~std::uint64_t{0}, 4096, 0x1000, 0x2000, {"/a\0", 3})), IsEmpty());
}

}  // namespace
}  // namespace pyinject::elf
