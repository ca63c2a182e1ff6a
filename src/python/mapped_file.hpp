// What is learned, once, of a file that targets have mapped: is there a CPython in it, and where.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/elf/elf_file.hpp"
#include "pyinject/procfs/maps.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include <sys/types.h>

namespace pyinject::python {

struct MappedFile {
  std::vector<elf::Segment> segments;
  elf::Symbols symbols;                       // those of kWantedSymbols that it defines
  bool has_program_interpreter = false;       // PT_INTERP: an executable (or glibc's libc.so.6)
  bool mentions_jit = false;                  // built with the JIT: it looks PYTHON_JIT up
  std::optional<base::ElfAddress> restorer;   // mov $15,%rax; syscall (only where sem_post is)
  std::optional<double> frame_pointer_share;  // only where CPython is

  [[nodiscard]] bool defines(std::string_view symbol) const {
    return symbols.find(symbol) != symbols.end();
  }
  // A whole C library is in here; glibc's own part with sem_post has the other name, also where
  // that is libpthread.so.0 (before 2.34). No other C library has it.
  [[nodiscard]] bool is_c_library() const { return defines("__libc_start_main"); }
  [[nodiscard]] bool is_of_glibc() const { return defines("__pthread_unwind_next"); }
  // CPython's own code is in here.
  [[nodiscard]] bool is_interpreter() const {
    return defines("Py_Initialize") && defines("PyRun_SimpleStringFlags");
  }
};

// What is in the file FD; nullopt: it is no ELF file of this machine.
[[nodiscard]] std::optional<MappedFile> inspect_file(base::UniqueFd fd);

// Remembers files for as long as this tool runs. Of any thread.
class MappedFiles {
 public:
  // nullptr: it cannot be read or is no ELF file of this machine.
  [[nodiscard]] const MappedFile* get(base::Pid pid, const procfs::Mapping& mapping);
  // Has it CPython's own code? nullopt: it cannot be opened.
  [[nodiscard]] std::optional<bool> is_interpreter(base::Pid pid, const procfs::Mapping& mapping);

 private:
  // nullptr: it cannot be opened.
  [[nodiscard]] const std::optional<MappedFile>* look(base::Pid pid,
                                                      const procfs::Mapping& mapping);

  // Device, inode, size, times of the last changes of content and inode (nanoseconds): numbers of
  // inodes are reused, and files are rewritten.
  using Key = std::tuple<dev_t, ino_t, off_t, std::int64_t, std::int64_t>;
  std::mutex mutex_;
  std::map<Key, std::optional<MappedFile>> known_;  // entries stay where they are
};

}  // namespace pyinject::python
