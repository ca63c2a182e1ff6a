#include "integration/elf_image.hpp"

#include "base/file.hpp"
#include "pyinject/base/error.hpp"

#include <cstring>

#include <elf.h>

namespace pyinject::test {

namespace {

template <typename T>
T& at(std::string& bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) {
    throw base::Error{"an ELF file that ends too early"};
  }
  return *reinterpret_cast<T*>(bytes.data() + offset);
}

}  // namespace

ElfImage::ElfImage(const std::string& path)
    : bytes_{base::read_file(path, std::size_t{512} << 20U).value_or("")} {
  if (!bytes_.starts_with(ELFMAG)) {
    throw base::Error{"not an ELF file: " + path};
  }
}

template <typename Visit>
void ElfImage::for_each_symbol(std::string_view name, Visit visit) {
  bool any = false;
  const auto header = at<Elf64_Ehdr>(bytes_, 0);
  const auto section = [&](std::uint64_t index) {
    return at<Elf64_Shdr>(bytes_, header.e_shoff + index * sizeof(Elf64_Shdr));
  };
  for (std::uint64_t index = 0; index < header.e_shnum; ++index) {
    const auto table = section(index);
    if (table.sh_type != SHT_DYNSYM && table.sh_type != SHT_SYMTAB) {
      continue;
    }
    const auto names = section(table.sh_link).sh_offset;
    for (std::uint64_t offset = 0; offset < table.sh_size; offset += sizeof(Elf64_Sym)) {
      auto& symbol = at<Elf64_Sym>(bytes_, table.sh_offset + offset);
      if (name == &at<char>(bytes_, names + symbol.st_name)) {
        any = true;
        visit(symbol);
      }
    }
  }
  if (!any) {
    throw base::Error{"no symbol " + std::string{name}};
  }
}

std::span<char> ElfImage::code(std::string_view name) {
  std::span<char> result;
  for_each_symbol(name, [&](const Elf64_Sym& symbol) {
    const auto header = at<Elf64_Ehdr>(bytes_, 0);
    for (std::uint64_t index = 0; index < header.e_phnum; ++index) {
      const auto segment = at<Elf64_Phdr>(bytes_, header.e_phoff + index * sizeof(Elf64_Phdr));
      if (segment.p_type == PT_LOAD && symbol.st_value >= segment.p_vaddr &&
          symbol.st_value - segment.p_vaddr < segment.p_filesz) {
        result = {&at<char>(bytes_, segment.p_offset + (symbol.st_value - segment.p_vaddr)),
                  symbol.st_size};
      }
    }
  });
  return result;
}

void ElfImage::move_symbol(std::string_view name, std::int64_t delta) {
  for_each_symbol(
      name, [delta](Elf64_Sym& symbol) { symbol.st_value += static_cast<std::uint64_t>(delta); });
}

void ElfImage::fill_last_page() {
  constexpr std::uint64_t kPage = 4096;
  const auto header = at<Elf64_Ehdr>(bytes_, 0);
  Elf64_Phdr* last = nullptr;
  for (std::uint64_t index = 0; index < header.e_phnum; ++index) {
    auto& segment = at<Elf64_Phdr>(bytes_, header.e_phoff + index * sizeof(Elf64_Phdr));
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) != 0) {
      last = &segment;
    }
  }
  if (last == nullptr) {
    throw base::Error{"no writable segment"};
  }
  last->p_memsz += (kPage - (last->p_vaddr + last->p_memsz) % kPage) % kPage;
}

void ElfImage::rename_symbol(const std::string& name, std::string now) {
  for_each_symbol(name, [](const Elf64_Sym&) {});
  if (now.empty()) {
    now = name;
    now.back() = '%';
  }
  const std::string whole = name + '\0';
  for (auto found = bytes_.find(whole); found != std::string::npos;
       found = bytes_.find(whole, found + 1)) {
    bytes_.replace(found, name.size(), now, 0, name.size());
  }
}

}  // namespace pyinject::test
