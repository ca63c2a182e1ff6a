// Cores that name files of this machine.
#include "inspect/core_image.hpp"

#include "base/file.hpp"
#include "inspect/core_snapshot.hpp"
#include "pyinject/base/error.hpp"
#include "support/made_core.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <string>
#include <utility>
#include <variant>

#include <elf.h>
#include <sys/mman.h>
#include <sys/syscall.h>

namespace pyinject::inspect {
namespace {

using base::RemoteAddress;
using test::MadeCore;
using testing::HasSubstr;
using testing::SizeIs;

constexpr std::uint64_t kLibrary = 0x7f0000000000;
constexpr std::uint64_t kPage = 4096;

std::string pages_of(char letter, std::size_t count) { return std::string(count * kPage, letter); }

// An ELF file with a segment of code and constants (two pages), and one of data (a page).
std::string made_library() {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof header;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  Elf64_Phdr code{};
  code.p_type = PT_LOAD;
  code.p_flags = PF_R | PF_X;
  code.p_filesz = 2 * kPage - 100;
  code.p_memsz = code.p_filesz;
  code.p_align = kPage;
  Elf64_Phdr data{};
  data.p_type = PT_LOAD;
  data.p_flags = PF_R | PF_W;
  data.p_offset = 2 * kPage;
  data.p_vaddr = 2 * kPage;
  data.p_filesz = kPage;
  data.p_memsz = kPage;
  data.p_align = kPage;
  std::string text = pages_of('c', 2) + pages_of('d', 1);
  std::memcpy(text.data(), &header, sizeof header);
  std::memcpy(text.data() + sizeof header, &code, sizeof code);
  std::memcpy(text.data() + sizeof header + sizeof code, &data, sizeof data);
  return text;
}

std::shared_ptr<CoreImage> image_of(const MadeCore& core) {
  base::UniqueFd file{::memfd_create("core", MFD_CLOEXEC)};
  base::write_all(file.get(), core.bytes(), "a memfd");
  auto opened = elf::CoreFile::open(std::move(file));
  if (const auto* const failure = std::get_if<elf::NotCore>(&opened)) {
    throw base::Error{failure->why};
  }
  return std::make_shared<CoreImage>(std::get<elf::CoreFile>(std::move(opened)));
}

char letter_at(const CoreImage& image, std::uint64_t address) {
  return image.memory()->read_value<char>(RemoteAddress{address}).value_or('-');
}

class CoreImageTest : public testing::Test {
 protected:
  // As the kernel writes it: the first page and the data that the process wrote to.
  [[nodiscard]] MadeCore kernels_core(const std::string& library) const {
    MadeCore core;
    core.thread({.tid = 1})
        .file(kLibrary, kLibrary + 2 * kPage, 0, path_)
        .file(kLibrary + 2 * kPage, kLibrary + 3 * kPage, 2, path_)
        .memory(kLibrary, 2 * kPage, PF_R | PF_X, library.substr(0, kPage))
        .memory(kLibrary + 2 * kPage, kPage, PF_R | PF_W, pages_of('w', 1))
        .memory(kLibrary + 4 * kPage, kPage, PF_R | PF_W, "");
    return core;
  }

  test::TempDir directory_;
  std::string library_ = made_library();
  std::string path_ = directory_.file("library.so", library_);
};

TEST_F(CoreImageTest, ReadsConstantsFromTheFileAndDataFromTheCore) {
  const auto image = image_of(kernels_core(library_));
  EXPECT_EQ(letter_at(*image, kLibrary + 1000), 'c');
  EXPECT_EQ(letter_at(*image, kLibrary + kPage), 'c');
  EXPECT_EQ(letter_at(*image, kLibrary + 2 * kPage), 'w');
  EXPECT_EQ(letter_at(*image, kLibrary + 3 * kPage), '-') << "not mapped";
  EXPECT_EQ(letter_at(*image, kLibrary + 4 * kPage), '-') << "not in the core";
  // Across mappings.
  EXPECT_TRUE(image->memory()->read_value<std::uint64_t>(RemoteAddress{kLibrary + 2 * kPage - 4}));
}

TEST_F(CoreImageTest, ReadsTheCodeOfWhichADebuggerWritesNoSegment) {
  MadeCore core;
  core.thread({.tid = 1})
      .file(kLibrary, kLibrary + 2 * kPage, 0, path_)
      .file(kLibrary + 2 * kPage, kLibrary + 3 * kPage, 2, path_)
      .memory(kLibrary + 2 * kPage, kPage, PF_R | PF_W, pages_of('w', 1));
  const auto image = image_of(core);
  const auto maps = image->mappings().value();
  ASSERT_THAT(maps, SizeIs(2));
  EXPECT_EQ(maps[0].inode, maps[1].inode);
  EXPECT_TRUE(maps[0].executable);
  EXPECT_FALSE(maps[0].writable);
  EXPECT_TRUE(maps[1].writable);
  EXPECT_EQ(maps[1].offset, 2 * kPage);
  EXPECT_EQ(letter_at(*image, kLibrary + kPage), 'c');
}

// What the process wrote may differ from the file.
TEST_F(CoreImageTest, ReadsNoDataFromTheFile) {
  MadeCore core;
  core.thread({.tid = 1})
      .file(kLibrary, kLibrary + 2 * kPage, 0, path_)
      .file(kLibrary + 2 * kPage, kLibrary + 3 * kPage, 2, path_);
  EXPECT_EQ(letter_at(*image_of(core), kLibrary + 2 * kPage), '-');
  core.memory(kLibrary + 2 * kPage, kPage, PF_R | PF_W, "");
  EXPECT_EQ(letter_at(*image_of(core), kLibrary + 2 * kPage), '-');
}

TEST_F(CoreImageTest, RefusesAnotherFile) {
  auto other = library_;
  other[900] = 'x';
  const auto image = image_of(kernels_core(other));
  const auto opened = image->open(image->mappings().value().at(0));
  ASSERT_TRUE(std::holds_alternative<procfs::NotOpened>(opened));
  EXPECT_THAT(std::get<procfs::NotOpened>(opened).why, HasSubstr("another file"));
  EXPECT_EQ(letter_at(*image, kLibrary + kPage), '-');
  EXPECT_EQ(letter_at(*image, kLibrary + 900), 'x') << "which the core itself has";
}

TEST_F(CoreImageTest, SaysThatAFileIsMissing) {
  const auto image = image_of(
      MadeCore{}.thread({.tid = 1}).file(kLibrary, kLibrary + kPage, 0, directory_ / "missing"));
  const auto opened = image->open(image->mappings().value().at(0));
  ASSERT_TRUE(std::holds_alternative<procfs::NotOpened>(opened));
  EXPECT_EQ(std::get<procfs::NotOpened>(opened).why, "No such file or directory");
}

TEST_F(CoreImageTest, HasTheSystemCallsInTheFormOfProc) {
  const auto image =
      image_of(MadeCore{}
                   .thread({.tid = 1, .number = SYS_futex, .result = -512, .first_argument = 0xabc})
                   .thread({.tid = 2}));
  EXPECT_EQ(image->system_call(base::Tid{1}), "202 0xabc 0x0 0x0 0x0 0x0 0x0 0x0 0x0");
  EXPECT_EQ(image->system_call(base::Tid{2}), std::nullopt);
  EXPECT_EQ(image->system_call(base::Tid{3}), std::nullopt);
}

TEST_F(CoreImageTest, IsASnapshotOfWhatTheCoreHolds) {
  const auto image = image_of(MadeCore{}
                                  .process(1, "name", "program argument")
                                  .thread({.tid = 2, .signal = SIGABRT})
                                  .sent_signal(SIGABRT, 1)
                                  .thread({.tid = 1, .number = SYS_pause, .result = -514}));
  const auto process = take_core_snapshot(image, "core.1", nullptr, false);
  EXPECT_EQ(process.pid, base::Pid{1});
  EXPECT_EQ(process.command, "program argument");
  ASSERT_TRUE(process.core);
  EXPECT_EQ(process.core->signal_name, "SIGABRT");
  EXPECT_EQ(process.core->cause, "sent by pid 1 (uid 1000)");
  EXPECT_EQ(process.core->thread, base::Tid{2});
  ASSERT_THAT(process.threads, SizeIs(2));
  EXPECT_EQ(process.threads[0].name, "name");
  EXPECT_EQ(process.threads[0].activity, Activity::kSleeping);
  EXPECT_EQ(process.threads[0].call->name, "pause");
  EXPECT_EQ(process.threads[1].name, "");
  EXPECT_EQ(process.threads[1].activity, Activity::kUnknown);
}

}  // namespace
}  // namespace pyinject::inspect
