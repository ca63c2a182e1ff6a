// Builds core files for the tests of their readers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::test {

class MadeCore {
 public:
  struct Thread {
    int tid = 0;
    int signal = 0;
    std::int64_t number = -1;  // of the system call; -1: none
    std::int64_t result = 0;   // in rax
    std::uint64_t first_argument = 0;
    std::uint64_t thread_pointer = 0;
  };

  MadeCore& thread(const Thread& thread);
  MadeCore& process(int pid, std::string_view name, std::string_view arguments);
  MadeCore& signal(int number, int code, std::uint64_t address);
  MadeCore& sent_signal(int number, int sender);
  // A mapping of PATH. OFFSET: in pages of 4096 bytes.
  MadeCore& file(std::uint64_t begin, std::uint64_t end, std::uint64_t offset,
                 std::string_view path);
  // FLAGS: PF_R ...; BYTES: what the core has of its SIZE.
  MadeCore& memory(std::uint64_t begin, std::uint64_t size, std::uint32_t flags,
                   std::string_view bytes);
  MadeCore& note(std::string_view owner, std::uint32_t type, std::string_view bytes);

  // The headers, the notes and the memory, as the kernel writes them.
  [[nodiscard]] std::string bytes() const;

 private:
  struct Memory {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
    std::uint32_t flags = 0;
    std::string bytes;
  };
  struct File {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t offset = 0;
    std::string path;
  };
  [[nodiscard]] std::string all_notes() const;

  std::string notes_;
  std::vector<File> files_;
  std::vector<Memory> memory_;
};

}  // namespace pyinject::test
