#include "elf/elf_file.hpp"

#include "base/file.hpp"
#include "elf/function_names.hpp"
#include "elf/load_bias.hpp"
#include "procfs/maps.hpp"
#include "procfs/open_mapped.hpp"
#include "pyinject/base/pid.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <elf.h>
#include <fcntl.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <unistd.h>

namespace pyinject::elf {
namespace {

using base::ElfAddress;
using base::RemoteAddress;
using base::UniqueFd;

// A symbol with known content, looked up through the file.
extern "C" const std::array<char, 16> pyinject_test_marker{"elf file test"};

// A function, found by an address inside it.
extern "C" [[gnu::noinline]] int pyinject_test_function(int value) { return value * 7 + 3; }

constexpr std::string_view kMarker = "pyinject_test_marker";

UniqueFd own_executable() { return UniqueFd{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)}; }

UniqueFd file_with(std::string_view bytes) {
  UniqueFd file{::memfd_create("elf", MFD_CLOEXEC)};
  base::write_all(file.get(), bytes, "a memfd");
  return file;
}

std::string why_not(UniqueFd file) {
  const auto result = ElfFile::open(std::move(file));
  const auto* const failure = std::get_if<NotElf>(&result);
  return failure == nullptr ? "it was opened" : failure->why;
}

TEST(FunctionNames, AreThoseOfTheFunctionsAtTheAddresses) {
  EXPECT_EQ(pyinject_test_function(1), 10);
  auto opened = ElfFile::open(own_executable());
  auto* const elf = std::get_if<ElfFile>(&opened);
  ASSERT_NE(elf, nullptr);
  constexpr std::string_view kFunction = "pyinject_test_function";
  const auto found = elf->find_symbols(std::array{kFunction, kMarker});
  ASSERT_EQ(found.size(), 2U);
  const auto& function = found.at(std::string{kFunction});
  const ElfAddress inside{function.address.value() + 1};
  const ElfAddress last{function.address.value() + function.size - 1};
  EXPECT_THAT(function_names(*elf, std::array{last, ElfAddress{1}, inside, inside,
                                              found.at(std::string{kMarker}).address}),
              testing::ElementsAre(kFunction, "", kFunction, kFunction, ""));
}

TEST(ElfFile, ReadsTheTestsOwnExecutable) {
  auto opened = ElfFile::open(own_executable());
  auto* const elf = std::get_if<ElfFile>(&opened);
  ASSERT_NE(elf, nullptr);
  const auto found = elf->find_symbols(std::array{kMarker, std::string_view{"no_such_symbol"}});
  ASSERT_EQ(found.size(), 1U);
  const Symbol& marker = found.at(std::string{kMarker});
  // Not equal: clang's AddressSanitizer includes the red zone after a variable in its size.
  EXPECT_GE(marker.size, sizeof pyinject_test_marker);
  const auto bytes = elf->read_at(marker.address, sizeof pyinject_test_marker);
  ASSERT_TRUE(bytes.has_value());
  EXPECT_EQ(std::memcmp(bytes->data(), pyinject_test_marker.data(), bytes->size()), 0);
  EXPECT_TRUE(elf->section(".text").has_value());
  EXPECT_TRUE(elf->section(".text")->in_file);
  EXPECT_FALSE(elf->section(".bss")->in_file);
  EXPECT_FALSE(elf->section(".nonsense").has_value());
  if (const auto id = elf->build_id()) {
    EXPECT_THAT(*id, testing::SizeIs(testing::Ge(16U)));
  }
}

// A sparse file that claims 60 million sections: libelf would allocate a table for all of them.
TEST(ElfFile, RefusesSectionsWithoutANumber) {
  std::array<char, sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr) + sizeof(Elf64_Shdr)> bytes{};
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  header.e_phoff = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shoff = sizeof header + sizeof(Elf64_Phdr);
  Elf64_Phdr segment{};
  segment.p_type = PT_LOAD;
  Elf64_Shdr count{};
  count.sh_size = 60'000'000;
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + header.e_phoff, &segment, sizeof segment);
  std::memcpy(bytes.data() + header.e_shoff, &count, sizeof count);
  const auto why = [&bytes] {
    auto file = file_with({bytes.data(), bytes.size()});
    EXPECT_EQ(::ftruncate(file.get(), std::int64_t{1} << 32), 0);
    return why_not(std::move(file));
  };
  EXPECT_THAT(why(), testing::HasSubstr("the number of sections is missing"));
  // Nor does libelf get to see the tables of a 32-bit file.
  Elf32_Ehdr small{};
  std::memcpy(small.e_ident, header.e_ident, sizeof small.e_ident);
  small.e_ident[EI_CLASS] = ELFCLASS32;
  small.e_type = ET_DYN;
  small.e_machine = EM_386;
  small.e_shoff = sizeof header;
  std::memcpy(bytes.data(), &small, sizeof small);
  EXPECT_THAT(why(), testing::StartsWith("not a 64-bit x86-64 ELF file (class 1"));
  header.e_shnum = 1;
  header.e_phnum = PN_XNUM;
  std::memcpy(bytes.data(), &header, sizeof header);
  EXPECT_THAT(why(), testing::HasSubstr("the number of segments is missing"));
}

TEST(ElfFile, LeadsFromAMappingToAnAddressInTheProcess) {
  // The steps of the detection: an address, its mapping, its file, its symbol, the address.
  const auto maps = procfs::read_maps(base::Pid{::getpid()});
  ASSERT_TRUE(maps.has_value());
  const RemoteAddress here{reinterpret_cast<std::uintptr_t>(&::sem_post)};
  const auto* const mapping = procfs::find_mapping(*maps, here);
  ASSERT_NE(mapping, nullptr);
  auto file = procfs::open_mapped_file(base::Pid{::getpid()}, *mapping);
  ASSERT_TRUE(std::holds_alternative<UniqueFd>(file)) << std::get<procfs::NotOpened>(file).why;
  auto opened = ElfFile::open(std::get<UniqueFd>(std::move(file)));
  auto* const elf = std::get_if<ElfFile>(&opened);
  ASSERT_NE(elf, nullptr);
  EXPECT_EQ(elf->type(), ElfType::kDynamic);
  EXPECT_TRUE(elf->build_id().has_value()) << mapping->path;
  const auto bias =
      load_bias(elf->segments(), mapping->begin, mapping->offset, mapping->executable);
  ASSERT_TRUE(bias.has_value());
  const auto found = elf->find_symbols(std::array{std::string_view{"sem_post"}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(bias->apply(found.at("sem_post").address), here);
}

TEST(ElfFile, RefusesWhatIsNoSuchFile) {
  EXPECT_EQ(why_not(file_with("")), "not an ELF file");
  EXPECT_EQ(why_not(file_with("#!/bin/sh\n")), "not an ELF file");
  EXPECT_EQ(why_not(UniqueFd{::open("/dev/null", O_RDONLY | O_CLOEXEC)}), "not a regular file");
  UniqueFd huge{::memfd_create("huge", MFD_CLOEXEC)};
  ASSERT_EQ(::ftruncate(huge.get(), (off_t{4} << 30) + 1), 0);
  EXPECT_THAT(why_not(std::move(huge)), testing::HasSubstr("too large"));
}

TEST(ElfFile, RefusesOtherMachinesAndObjectFiles) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_type = ET_DYN;
  header.e_machine = EM_AARCH64;
  const auto file = [&] {
    return file_with({reinterpret_cast<const char*>(&header), sizeof header});
  };
  EXPECT_EQ(why_not(file()), "not a 64-bit x86-64 ELF file (class 2, data 1, machine 183)");
  header.e_machine = EM_X86_64;
  header.e_type = ET_REL;
  EXPECT_EQ(why_not(file()), "neither an executable nor a library (type 1)");
  header.e_type = ET_DYN;
  EXPECT_EQ(why_not(file()), "damaged ELF file: no loadable segment");
}

void exercise(const std::string& bytes) {
  auto opened = ElfFile::open(file_with(bytes));
  if (auto* const elf = std::get_if<ElfFile>(&opened)) {
    (void)elf->build_id();
    (void)elf->section(".text");
    const auto found = elf->find_symbols(std::array{kMarker, std::string_view{"sem_post"}});
    for (const auto& [name, symbol] : found) {
      (void)elf->read_at(symbol.address, static_cast<std::size_t>(symbol.size));
    }
    for (const Segment& segment : elf->segments()) {
      (void)load_bias(elf->segments(), RemoteAddress{0x10000}, segment.offset, true);
      (void)elf->read_at(segment.address, 64);
    }
  }
}

// A complete small ELF file: the loader is the smallest one that is always mapped.
std::string small_elf() {
  const auto maps = procfs::read_maps(base::Pid{::getpid()});
  for (const auto& mapping : *maps) {
    if (mapping.path.find("/ld-linux") != std::string::npos) {
      return base::read_file(mapping.path).value_or("");
    }
  }
  return "";
}

TEST(ElfFile, SurvivesTruncation) {
  const auto whole = small_elf();
  ASSERT_FALSE(whole.empty());
  for (std::size_t length = 0; length < whole.size(); length += length < 2048 ? 61 : 20011) {
    exercise(whole.substr(0, length));
  }
}

TEST(ElfFile, SurvivesDamagedHeaders) {
  const auto whole = small_elf();
  ASSERT_GE(whole.size(), sizeof(Elf64_Ehdr));
  Elf64_Ehdr header{};
  std::memcpy(&header, whole.data(), sizeof header);
  const auto damage_all = [&](std::size_t from, std::size_t size) {
    for (std::size_t at = from; at < std::min(from + size, whole.size()); at += 3) {
      for (const char value : {'\x00', '\x7f', '\xff'}) {
        auto damaged = whole;
        damaged[at] = value;
        exercise(damaged);
      }
    }
  };
  damage_all(0, sizeof header);
  damage_all(header.e_phoff, std::size_t{4} * sizeof(Elf64_Phdr));
  damage_all(header.e_shoff, std::size_t{8} * sizeof(Elf64_Shdr));
}

TEST(ElfFile, ReadsOnlyWhatOneSegmentHolds) {
  auto opened = ElfFile::open(own_executable());
  auto* const elf = std::get_if<ElfFile>(&opened);
  ASSERT_NE(elf, nullptr);
  // The smallest one: others may be larger than what is read at once.
  const Segment* load = nullptr;
  for (const auto& segment : elf->segments()) {
    if (segment.is_load() && segment.file_size != 0 &&
        (load == nullptr || segment.file_size < load->file_size)) {
      load = &segment;
    }
  }
  ASSERT_NE(load, nullptr);
  const auto size = static_cast<std::size_t>(load->file_size);
  EXPECT_TRUE(elf->read_at(load->address, size).has_value());
  EXPECT_FALSE(elf->read_at(load->address, size + 1).has_value());
  EXPECT_FALSE(elf->read_at(load->address, ~std::size_t{0}).has_value());
  EXPECT_FALSE(elf->read_at(ElfAddress{~std::uint64_t{0}}, 8).has_value());
  EXPECT_FALSE(elf->read_at(ElfAddress{std::uint64_t{1} << 40}, 1).has_value());
}

}  // namespace
}  // namespace pyinject::elf
