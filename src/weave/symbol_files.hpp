// The symbols of recorded files: each file's own, or, where it is stripped, those of a separate
// file with its build-id.
#pragma once

#include "elf/elf_file.hpp"
#include "unwind/objects.hpp"
#include "weave/debug_servers.hpp"

#include <optional>

namespace pyinject::weave {

class SymbolFiles {
 public:
  // FILES outlives this object. SERVERS: asked at last for a file that no place here has; null:
  // none.
  explicit SymbolFiles(unwind::FileFinder& files, DebugServers* servers = nullptr)
      : files_{files}, servers_{servers} {}

  // The mapped FILE itself, for its segments; nullopt: it is not found.
  [[nodiscard]] std::optional<elf::ElfFile> open(const unwind::MappedFile& file) const;
  // The best file for elf::function_names(): FILE, or another one that has its symbols.
  [[nodiscard]] std::optional<elf::ElfFile> open_symbols(const unwind::MappedFile& file) const;

 private:
  unwind::FileFinder& files_;
  DebugServers* servers_;
};

}  // namespace pyinject::weave
