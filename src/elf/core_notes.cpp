#include "elf/core_notes.hpp"

#include "base/byte_cursor.hpp"

#include <csignal>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include <elf.h>

namespace pyinject::elf {

namespace {

constexpr std::string_view kCoreOwner = "CORE";

// The bytes up to the first NUL.
std::string text_until_nul(std::span<const std::byte> bytes) {
  std::string text;
  for (const auto byte : bytes) {
    if (byte == std::byte{0}) {
      break;
    }
    text += std::to_integer<char>(byte);
  }
  return text;
}

}  // namespace

std::optional<CoreSignal> parse_core_signal(std::span<const std::byte> bytes) {
  siginfo_t info{};
  if (bytes.size() < sizeof info) {
    return std::nullopt;
  }
  std::memcpy(&info, bytes.data(), sizeof info);
  CoreSignal signal;
  signal.number = info.si_signo;
  signal.code = info.si_code;
  // A positive code is the kernel's: si_addr has the address of a fault; else the sender is known.
  const bool fault = signal.number == SIGSEGV || signal.number == SIGBUS ||
                     signal.number == SIGILL || signal.number == SIGFPE || signal.number == SIGTRAP;
  if (signal.code > 0) {
    if (fault && signal.code != SI_KERNEL) {
      std::uint64_t address = 0;
      std::memcpy(&address, &info.si_addr, sizeof address);
      signal.address = address;
    }
  } else if (signal.code == SI_USER || signal.code == SI_TKILL || signal.code == SI_QUEUE) {
    signal.sender = base::Pid{info.si_pid};
    signal.sender_uid = info.si_uid;
  }
  return signal;
}

// fs/binfmt_elf.c: fill_files_note(): the count and the page size; begin, end and page in the file
// of each mapping; their names.
std::vector<CoreMappedFile> parse_core_files(std::span<const std::byte> bytes) {
  constexpr std::uint64_t kMostPageBytes = std::uint64_t{1} << 20U;
  base::ByteCursor cursor{bytes};
  const auto count = cursor.number<std::uint64_t>();
  const auto page = cursor.number<std::uint64_t>();
  if (cursor.failed() || count > CoreNotes::kMostFiles || page == 0 || page > kMostPageBytes) {
    return {};
  }
  std::vector<CoreMappedFile> files;
  for (std::uint64_t i = 0; i < count && !cursor.failed(); ++i) {
    const auto begin = cursor.number<std::uint64_t>();
    const auto end = cursor.number<std::uint64_t>();
    const auto first_page = cursor.number<std::uint64_t>();
    if (!cursor.failed() && begin < end &&
        first_page <= std::numeric_limits<std::uint64_t>::max() / page) {
      files.push_back({.begin = base::RemoteAddress{begin},
                       .end = base::RemoteAddress{end},
                       .offset = first_page * page,
                       .path = {}});
    } else {
      cursor.fail();
    }
  }
  for (auto& file : files) {
    file.path = text_until_nul(cursor.left());
    (void)cursor.take(file.path.size() + 1);
  }
  return cursor.failed() ? std::vector<CoreMappedFile>{} : files;
}

bool CoreNotes::reads(const std::string& owner, std::uint32_t type) {
  return owner == kCoreOwner && (type == NT_PRSTATUS || type == NT_PRPSINFO || type == NT_SIGINFO ||
                                 type == NT_FILE || type == NT_AUXV);
}

void CoreNotes::add(const CoreNote& note) {
  if (!reads(note.owner, note.type)) {
    return;
  }
  if (note.type == NT_PRSTATUS && threads.size() < kMostThreads) {
    if (const auto thread = parse_core_thread(note.bytes)) {
      threads.push_back(*thread);
    }
  } else if (note.type == NT_PRPSINFO && !process) {
    process = parse_core_process(note.bytes);
  } else if (note.type == NT_SIGINFO && !signal) {
    signal = parse_core_signal(note.bytes);
  } else if (note.type == NT_FILE && files.empty()) {
    files = parse_core_files(note.bytes);
  } else if (note.type == NT_AUXV && auxiliary.empty()) {
    base::ByteCursor cursor{note.bytes};
    while (!cursor.at_end() && auxiliary.size() < kMostAuxiliary) {
      auxiliary.push_back(cursor.number<std::uint64_t>());
    }
  }
}

}  // namespace pyinject::elf
