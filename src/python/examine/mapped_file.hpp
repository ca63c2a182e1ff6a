// What is learned once about a file that targets have mapped: whether it holds a CPython, and
// where.
#pragma once

#include "elf/elf_file.hpp"
#include "procfs/maps.hpp"
#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include <sys/stat.h>
#include <sys/types.h>

namespace pyinject::python {

struct MappedFile {
  std::vector<elf::Segment> segments;
  elf::Symbols symbols;                      // those of kWantedSymbols that it defines
  bool has_program_interpreter = false;      // PT_INTERP: an executable (or glibc's libc.so.6)
  bool mentions_jit = false;                 // built with the JIT: it reads PYTHON_JIT
  std::optional<base::ElfAddress> restorer;  // mov $15,%rax; syscall (only if it has sem_post)
  std::optional<bool> frame_pointers;        // only if it has CPython; see elf/frame_pointers.hpp

  [[nodiscard]] bool defines(std::string_view symbol) const {
    return symbols.find(symbol) != symbols.end();
  }
  // A whole C library is in this file.
  [[nodiscard]] bool is_c_library() const { return defines("__libc_start_main"); }
  // The part of glibc with sem_post, even if that is libpthread.so.0 (before 2.34); in a static
  // program, all of it. No other C library defines these symbols.
  [[nodiscard]] bool is_of_glibc() const {
    return defines("__pthread_unwind_next") || defines("__libc_setup_tls");
  }
  // It has what requests need: a sem_post that counts in the first int, and a restorer. Not musl:
  // its library has no unwind tables, so the outer functions of a thread that is in it when the
  // request comes cannot be told apart (docs/cpython-notes.md).
  [[nodiscard]] bool serves_requests() const {
    return defines("sem_post") && restorer && is_of_glibc();
  }
  // CPython's own code is in this file.
  [[nodiscard]] bool is_interpreter() const {
    return defines("Py_Initialize") && defines("PyRun_SimpleStringFlags");
  }
};

// Reads the file FD; nullptr: it is no ELF file for this machine, or has nothing of interest.
// BYTES: number of bytes read. Incomplete if CANCELLATION is stopped.
[[nodiscard]] std::shared_ptr<const MappedFile> inspect_file(
    base::UniqueFd fd, std::uint64_t& bytes,
    const base::Cancellation& cancellation = base::Cancellation::never());

// Limit on files read for one process. Real processes have some hundred files, and 100 MiB of
// symbols.
struct FileBudget {
  std::size_t files = 4096;
  std::uint64_t bytes = std::uint64_t{512} << 20U;

  [[nodiscard]] bool spent() const { return files == 0 || bytes == 0; }
};

// Caches files, up to a limit, for the life of this tool. Thread-safe.
class MappedFiles {
 public:
  struct Look {
    bool opened = false;                     // false: it cannot be opened, or time is up
    std::shared_ptr<const MappedFile> file;  // as inspect_file()
  };
  // BUDGET: charged for files that are not cached.
  [[nodiscard]] Look look(base::Pid pid, const procfs::Mapping& mapping, FileBudget& budget,
                          const base::Cancellation& cancellation);
  // The same for the opened FILE. BUDGET: the caller charges it for the opening.
  [[nodiscard]] Look look(base::UniqueFd file, FileBudget& budget,
                          const base::Cancellation& cancellation);

 private:
  // Device, inode, size, mtime and ctime (nanoseconds): inode numbers are reused, and files are
  // rewritten.
  using Key = std::tuple<dev_t, ino_t, off_t, std::int64_t, std::int64_t>;
  [[nodiscard]] static Key key_of(const struct stat& facts);
  [[nodiscard]] std::optional<Look> find(const Key& key);

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const MappedFile>> known_;
};

}  // namespace pyinject::python
