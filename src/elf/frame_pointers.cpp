#include "pyinject/elf/frame_pointers.hpp"

#include "elf/elf_impl.hpp"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include <elf.h>

namespace pyinject::elf {

namespace {

constexpr std::uint64_t kLargeFunction = 256;
constexpr std::size_t kMostEntries = 1'000'000;
constexpr std::size_t kMostSamples = 2000;
constexpr unsigned kRbp = 6;  // its DWARF number, System V ABI x86-64 figure 3.36

struct EndCfi {
  void operator()(Dwarf_CFI* cfi) const { dwarf_cfi_end(cfi); }
};
// A Dwarf_Frame is freed by free(3) (elfutils/libdw.h).
struct Free {
  // NOLINTNEXTLINE(cppcoreguidelines-no-malloc): libdw allocates it
  void operator()(void* memory) const { std::free(memory); }
};

// "zR" with pointers as every x86-64 compiler writes them: 4 bytes, relative to themselves.
bool usual_pointers(const Dwarf_CIE& cie) {
  return std::string_view{cie.augmentation} == "zR" && cie.augmentation_data_size >= 1 &&
         cie.augmentation_data[0] == (DW_EH_PE_pcrel | DW_EH_PE_sdata4);
}

// The middles of the larger functions that .eh_frame describes.
std::vector<std::uint64_t> large_functions(const Elf_Data& frames, std::uint64_t address,
                                           const char* ident) {
  std::vector<std::uint64_t> middles;
  std::set<Dwarf_Off> usual;
  auto data = frames;
  const auto* const begin = static_cast<const std::uint8_t*>(frames.d_buf);
  const auto* const end = begin + frames.d_size;
  Dwarf_Off offset = 0;
  for (std::size_t i = 0; i < kMostEntries; ++i) {
    Dwarf_Off next = 0;
    Dwarf_CFI_Entry entry{};
    const int result = dwarf_next_cfi(reinterpret_cast<const unsigned char*>(ident), &data, true,
                                      offset, &next, &entry);
    if (result > 0 || next <= offset || next == static_cast<Dwarf_Off>(-1)) {
      break;  // the end, or damage that cannot be skipped
    }
    if (result == 0 && dwarf_cfi_cie_p(&entry)) {
      if (usual_pointers(entry.cie)) {
        usual.insert(offset);
      }
    } else if (result == 0 && usual.contains(entry.fde.CIE_pointer)) {
      const std::uint8_t* const at = entry.fde.start;
      if (at >= begin && end - at >= 8) {
        std::int32_t relative = 0;
        std::uint32_t size = 0;
        std::memcpy(&relative, at, sizeof relative);
        std::memcpy(&size, at + sizeof relative, sizeof size);
        const auto place = address + static_cast<std::uint64_t>(at - begin);
        if (size >= kLargeFunction) {
          middles.push_back(place + static_cast<std::uint64_t>(std::int64_t{relative}) + size / 2);
        }
      }
    }
    offset = next;
  }
  return middles;
}

bool frame_is_at_rbp(Dwarf_CFI* cfi, std::uint64_t address) {
  Dwarf_Frame* raw = nullptr;
  if (dwarf_cfi_addrframe(cfi, address, &raw) != 0) {
    return false;
  }
  const std::unique_ptr<Dwarf_Frame, Free> frame{raw};
  Dwarf_Op* operations = nullptr;
  std::size_t count = 0;
  return dwarf_frame_cfa(frame.get(), &operations, &count) == 0 && count > 0 &&
         (operations[0].atom == DW_OP_breg0 + kRbp ||
          (operations[0].atom == DW_OP_bregx && operations[0].number == kRbp));
}

}  // namespace

std::optional<double> frame_pointer_share(const ElfFile& file) {
  Elf* const elf = file.impl().elf();
  const auto section = file.section(".eh_frame");
  const Elf_Data* const frames = section_data(find_section(elf, ".eh_frame"));
  const char* const ident = elf_getident(elf, nullptr);
  if (!section || frames == nullptr || frames->d_buf == nullptr || ident == nullptr) {
    return std::nullopt;
  }
  const auto middles = large_functions(*frames, section->address.value(), ident);
  const std::unique_ptr<Dwarf_CFI, EndCfi> cfi{dwarf_getcfi_elf(elf)};
  if (middles.empty() || !cfi) {
    return std::nullopt;
  }
  const std::size_t step = (middles.size() + kMostSamples - 1) / kMostSamples;
  std::size_t samples = 0;
  std::size_t with_rbp = 0;
  for (std::size_t i = 0; i < middles.size(); i += step) {
    ++samples;
    with_rbp += frame_is_at_rbp(cfi.get(), middles[i]) ? 1 : 0;
  }
  return static_cast<double>(with_rbp) / static_cast<double>(samples);
}

}  // namespace pyinject::elf
