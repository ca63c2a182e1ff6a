// The files that a target has mapped, read as ELF.
#include "elf/call_frame_info.hpp"
#include "elf/elf_file.hpp"
#include "elf/frame_pointers.hpp"
#include "elf/function_names.hpp"
#include "elf/load_bias.hpp"
#include "fuzz/fuzz.hpp"
#include "python/examine/mapped_file.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace pyinject::fuzz {
namespace {

constexpr std::array<std::string_view, 3> kNames{"Py_Initialize", "sem_post", "_PyRuntime"};

void segments(const elf::ElfFile& file, std::span<const std::byte> bytes) {
  for (const auto& segment : file.segments()) {
    const auto first = file.read_at(segment.address, 16);
    require(!first || first->size() == 16, "what is read has the size that was asked for");
    require(!first || !segment.is_load() || bytes.size() >= 16, "what is read is in the file");
    constexpr std::uint64_t kBegin = 0x7f0000000000;
    const auto offset = segment.offset / 4096 * 4096;
    const auto bias = elf::load_bias(file.segments(), base::RemoteAddress{kBegin}, offset, true);
    require(!bias || (bias->value() - kBegin) % 4096 == 0 || segment.address.value() % 4096 != 0,
            "files are mapped by pages");
  }
}

void symbols(const elf::ElfFile& file) {
  // Repeated so often that a lookup of names times bytes takes too long even in a small file.
  for (int i = 0; i < 64; ++i) {
    (void)file.find_symbols(kNames);
  }
  for (const auto& [name, symbol] : file.find_symbols(kNames)) {
    require(std::ranges::find(kNames, name) != kNames.end(), "only what was asked for is found");
    (void)file.read_at(symbol.address, 64);
  }
  const auto text = file.section(".text");
  std::vector<base::ElfAddress> addresses;
  for (std::uint64_t at = 0; text && at < std::min<std::uint64_t>(text->size, 64); ++at) {
    addresses.emplace_back(text->address.value() + at);
  }
  require(elf::function_names(file, addresses).size() == addresses.size(),
          "each address has a name, which may be empty");
}

void unwinding(const elf::ElfFile& file) {
  const auto share = elf::frame_pointer_share(file).value_or(0);
  require(share >= 0 && share <= 1, "a share is one");
  const auto info = elf::CallFrameInfo::of(file);
  const auto text = file.section(".text");
  for (std::uint64_t at = 0; info && text && at < std::min<std::uint64_t>(text->size, 64); ++at) {
    (void)info->rule_at(base::ElfAddress{text->address.value() + at});
  }
}

}  // namespace

void run(Input input) {
  const auto bytes = input.rest();
  std::uint64_t read = 0;
  const auto inspected = python::inspect_file(file_with(bytes), read);
  const auto opened = elf::ElfFile::open(file_with(bytes));
  const auto* file = std::get_if<elf::ElfFile>(&opened);
  require(inspected == nullptr || file != nullptr, "only in an ELF file is an interpreter found");
  if (file == nullptr) {
    require(is_printable(std::get<elf::NotElf>(opened).why), "the reason is plain text");
    return;
  }
  const auto id = file->build_id();
  require(!id || id->find_first_not_of("0123456789abcdef") == std::string::npos, "it is in hex");
  segments(*file, bytes);
  symbols(*file);
  unwinding(*file);
}

}  // namespace pyinject::fuzz
