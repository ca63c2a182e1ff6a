// Records of what runs already when a recording begins: the kernel's and the modules' code, tasks
// with their names, and their mappings with code. linux, tools/perf/util/synthetic-events.c.
#pragma once

#include "perfdata/record.hpp"
#include "procfs/kernel_code.hpp"
#include "recorder/recorded_files.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace pyinject::recorder {

class Synthesis {
 public:
  // SAMPLE_ID: bytes at the end of each record of the kernel, which are zero here: perf takes such
  // records for older than all others. FILES gets those that are mapped.
  // DATA: also mappings of files that are no code.
  Synthesis(std::size_t sample_id, RecordedFiles& files, bool data,
            std::function<void(perfdata::Bytes)> write)
      : sample_id_{sample_id}, files_{files}, data_{data}, write_{std::move(write)} {}

  // CODE as read by procfs::read_kernel_code(): nothing if the kernel hides its addresses.
  void kernel(const procfs::KernelCode& code);
  // Empty: all processes.
  void processes(const std::vector<pid_t>& pids);

 private:
  void process(pid_t pid);
  // Sets the misc bits of the record that was made last.
  void set_misc(std::uint16_t misc);
  void task(pid_t pid, pid_t tid, pid_t parent);
  void kernel_code(std::uint64_t begin, std::uint64_t size, std::uint64_t offset,
                   std::string_view name);

  std::size_t sample_id_;
  RecordedFiles& files_;
  bool data_;
  std::function<void(perfdata::Bytes)> write_;
  std::vector<std::byte> record_;
};

}  // namespace pyinject::recorder
