// A process in a core file, for the code that reads processes.
#pragma once

#include "elf/core_file.hpp"
#include "pyinject/python/target.hpp"
#include "python/layout/process_image.hpp"
#include "python/layout/runtime_layout.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace pyinject::inspect {

// The writer of a core leaves out what a mapped file has: code and constants. That is read from the
// files at the paths that the core names, if they are the files that the process had mapped: their
// first page, which has the build-id, must be the one in the core. Not thread-safe.
class CoreImage : public python::ProcessImage {
 public:
  explicit CoreImage(elf::CoreFile core);
  ~CoreImage() override;

  [[nodiscard]] const elf::CoreFile& core() const { return core_; }
  // A thread of a container that a debugger outside dumped has another id there. LAYOUT, RUNTIME:
  // of TARGET, whose thread states name the threads by their thread pointers, too.
  void match_threads(const python::RuntimeLayout& layout, base::RemoteAddress runtime);

  [[nodiscard]] bool changes() const override { return false; }
  [[nodiscard]] std::unique_ptr<memory::MemoryReader> memory() const override;
  // The inode is the number of the file in this core.
  [[nodiscard]] std::optional<std::vector<procfs::Mapping>> mappings() const override;
  [[nodiscard]] std::variant<base::UniqueFd, procfs::NotOpened> open(
      const procfs::Mapping& mapping) const override;
  [[nodiscard]] python::ThreadNumbers thread_numbers() const override;
  [[nodiscard]] std::optional<std::string> system_call(base::Tid tid) const override;

 private:
  class Memory;
  struct OpenedFile;

  [[nodiscard]] bool read(base::RemoteAddress from, std::span<std::byte> into) const;
  // The part of a read that is in one mapping.
  [[nodiscard]] bool read_part(base::RemoteAddress from, std::span<std::byte> into) const;
  [[nodiscard]] const OpenedFile& file_of(const procfs::Mapping& mapping) const;
  [[nodiscard]] bool has_other_start(int file, const procfs::Mapping& mapping) const;

  elf::CoreFile core_;
  std::vector<procfs::Mapping> mappings_;
  std::unordered_map<std::uint64_t, base::Tid> numbers_;
  std::unordered_map<std::uint64_t, base::RemoteAddress> starts_;       // of files, by inode
  mutable std::map<std::uint64_t, std::unique_ptr<OpenedFile>> files_;  // by inode
};

}  // namespace pyinject::inspect
