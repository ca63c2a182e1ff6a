#include "weave/symbol_files.hpp"

#include "elf/vdso.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace pyinject::weave {

namespace {

bool has_symbols(const elf::ElfFile& file) {
  return file.section(".symtab").has_value() || file.section(".gnu_debugdata").has_value();
}

// The first of CANDIDATES with BUILD_ID (empty: any) that is GOOD.
std::optional<elf::ElfFile> first_of(std::vector<base::UniqueFd> candidates,
                                     const std::string& build_id,
                                     const std::function<bool(const elf::ElfFile&)>& good) {
  for (auto& candidate : candidates) {
    if (!candidate.valid()) {
      continue;
    }
    auto opened = elf::ElfFile::open(std::move(candidate));
    auto* const elf = std::get_if<elf::ElfFile>(&opened);
    if (elf != nullptr && (build_id.empty() || elf->build_id() == build_id) && good(*elf)) {
      return std::move(*elf);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<elf::ElfFile> SymbolFiles::open(const unwind::MappedFile& file) const {
  std::vector<base::UniqueFd> candidates;
  if (file.path == "[vdso]") {
    candidates.push_back(elf::copy_of_vdso());
  } else if (file.path.starts_with('/')) {
    candidates = files_.candidates(file);
  }
  return first_of(std::move(candidates), file.build_id, [](const auto&) { return true; });
}

std::optional<elf::ElfFile> SymbolFiles::open_symbols(const unwind::MappedFile& file) const {
  auto own = open(file);
  auto wanted = file;
  if (wanted.build_id.empty() && own) {
    wanted.build_id = own->build_id().value_or("");
  }
  if ((own && has_symbols(*own)) || wanted.build_id.empty() || !file.path.starts_with('/')) {
    return own;
  }
  auto other = first_of(files_.candidates(wanted), wanted.build_id, has_symbols);
  if (!other && servers_ != nullptr) {
    std::vector<base::UniqueFd> served;
    served.push_back(servers_->debug_file(wanted.build_id));
    other = first_of(std::move(served), wanted.build_id, has_symbols);
  }
  return other ? std::move(other) : std::move(own);
}

}  // namespace pyinject::weave
