// The notes of a core file: its process, threads, signal and mapped files. Only core_notes_*.cpp
// know the registers.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pyinject::elf {

struct CoreCall {
  long number = 0;
  std::array<std::uint64_t, 6> arguments{};
  bool operator==(const CoreCall&) const = default;
};

// NT_PRSTATUS. The tid is the one that the writer of the core saw: the kernel writes those of the
// process's own pid namespace, a debugger those of its own.
struct CoreThread {
  base::Tid tid;
  int signal = 0;                    // the one that it was given; 0: none
  std::uint64_t thread_pointer = 0;  // pthread_self() with glibc and musl
  std::uint64_t stack_pointer = 0;
  std::uint64_t program_counter = 0;
  // The system call in which it waited, and which the core interrupted; nullopt: none.
  std::optional<CoreCall> call = {};
  bool operator==(const CoreThread&) const = default;
};

// NT_PRPSINFO. Texts are as the process has them: not made printable.
struct CoreProcess {
  base::Pid pid;
  std::uint32_t uid = 0;
  std::string name;       // the kernel's name of the first thread
  std::string arguments;  // separated by spaces
  bool cut = false;       // ARGUMENTS are only the first 79 bytes
  bool operator==(const CoreProcess&) const = default;
};

// NT_SIGINFO of the first thread; sigaction(2).
struct CoreSignal {
  int number = 0;
  int code = 0;
  std::uint64_t address = 0;  // of a fault
  base::Pid sender;           // of a signal that was sent
  std::uint32_t sender_uid = 0;
  bool operator==(const CoreSignal&) const = default;
};

// An entry of NT_FILE.
struct CoreMappedFile {
  base::RemoteAddress begin;
  base::RemoteAddress end;
  std::uint64_t offset = 0;  // in the file, bytes
  std::string path;
  bool operator==(const CoreMappedFile&) const = default;
};

// One note: include/uapi/linux/elf.h. Notes of other owners are for other readers.
struct CoreNote {
  std::string owner;  // "CORE", "LINUX"
  std::uint32_t type = 0;
  std::span<const std::byte> bytes;
};

struct CoreNotes {
  std::optional<CoreProcess> process = {};
  std::optional<CoreSignal> signal = {};
  std::vector<CoreThread> threads = {};  // the one that was given the signal comes first
  std::vector<CoreMappedFile> files = {};
  std::vector<std::uint64_t> auxiliary = {};  // NT_AUXV: pairs of words, getauxval(3)

  static constexpr std::size_t kMostThreads = 65536;
  static constexpr std::size_t kMostAuxiliary = 256;  // words
  static constexpr std::size_t kMostFiles = std::size_t{1} << 18U;

  // Whether add() reads notes of this OWNER and TYPE.
  [[nodiscard]] static bool reads(const std::string& owner, std::uint32_t type);
  // A note that is too short for its type changes nothing.
  void add(const CoreNote& note);
};

// NT_PRSTATUS and NT_PRPSINFO; nullopt: too short.
[[nodiscard]] std::optional<CoreThread> parse_core_thread(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<CoreProcess> parse_core_process(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<CoreSignal> parse_core_signal(std::span<const std::byte> bytes);
// NT_FILE. Empty if it is damaged.
[[nodiscard]] std::vector<CoreMappedFile> parse_core_files(std::span<const std::byte> bytes);

}  // namespace pyinject::elf
