// Detects the first write to four bytes of a process's memory, with the processor's debug
// registers.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace pyinject::watch {

class WriteWatch {
 public:
  WriteWatch();

  // Readable if taken() may return something; never changes.
  [[nodiscard]] int fd() const { return epoll_.get(); }
  // False: impossible.
  [[nodiscard]] bool add(base::Pid pid, std::uint64_t address);
  void drop(base::Pid pid);
  // The processes whose memory was written to; stops watching them.
  [[nodiscard]] std::vector<base::Pid> taken();
  [[nodiscard]] std::size_t processes() const { return breakpoints_.size(); }

 private:
  // A breakpoint for one thread. poll(2) needs the memory for its records.
  struct Breakpoint {
    struct Unmap {
      void operator()(void* what) const;
    };
    [[nodiscard]] bool hit() const;

    base::UniqueFd fd;
    std::unique_ptr<void, Unmap> memory;
  };

  [[nodiscard]] bool add_thread(base::Pid pid, base::Tid tid, std::uint64_t address,
                                std::vector<Breakpoint>& all);

  base::UniqueFd epoll_;
  std::unordered_map<pid_t, std::vector<Breakpoint>> breakpoints_;
  std::size_t count_ = 0;
};

}  // namespace pyinject::watch
