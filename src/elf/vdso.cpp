#include "elf/vdso.hpp"

#include <bit>
#include <cstddef>

#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

namespace pyinject::elf {

base::UniqueFd copy_of_vdso() {
  const auto* const begin = std::bit_cast<const std::byte*>(::getauxval(AT_SYSINFO_EHDR));
  base::UniqueFd file{::memfd_create("vdso", MFD_CLOEXEC)};
  constexpr std::size_t kVdsoPage = 4096;
  constexpr std::size_t kMostPages = 4;
  if (begin == nullptr || !file.valid()) {
    return {};
  }
  // Its size is unknown: write() fails beyond its end, without a signal.
  for (std::size_t page = 0; page < kMostPages; ++page) {
    if (::write(file.get(), begin + page * kVdsoPage, kVdsoPage) !=
        static_cast<ssize_t>(kVdsoPage)) {
      break;
    }
  }
  return file;
}

}  // namespace pyinject::elf
