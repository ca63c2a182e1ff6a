// Writing a perf.data file that is another one with stacks of its own: plain, not compressed,
// without the registers and pieces of stack that were needed to find them.
#pragma once

#include "perfdata/input.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace pyinject::perfdata {

// A line of the table of build ids.
struct BuildId {
  // Of the machine, not of a process: perf takes any other number for that of a virtual machine.
  static constexpr std::uint32_t kHost = 0xffffffff;
  std::uint32_t pid = kHost;
  std::vector<std::byte> id;  // at most 20 bytes
  std::string file;
};

class Output {
 public:
  // Writes to FD, an empty regular file; both have to live until finish(). Without that the file
  // has no header and no perf takes it for a recording. All throw SystemError.
  //
  // The events of INPUT that have user stacks lose them: PERF_SAMPLE_REGS_USER and STACK_USER,
  // their mask and size, exclude_callchain_user, wherever the file says so.
  // With SWITCH_PERIODS those that sample each context switch have periods of their own
  // (PERF_SAMPLE_PERIOD), whether they had any or not.
  Output(int fd, const Input& input, bool switch_periods = false);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output();

  // As it is. A sample of an event that lost its user stacks or got periods has to come by
  // write_sample.
  void write(const Record& record);
  // An MMAP2 record, at time 0 as those that perf makes itself: it holds from where it is in the
  // file.
  void write_mapping(const Mapping& mapping);
  // MAPPING instead of the MMAP2 record LIKE, at the same time. False: it cannot be; nothing is
  // written.
  [[nodiscard]] bool write_mapping_like(const Record& like, const Mapping& mapping);
  // A FORK record, of the same kind: perf forgets what it knew of the child and gives it its
  // parent's mappings.
  void write_fork(const Task& task);
  // With CHAIN for its own. An event without PERF_SAMPLE_CALLCHAIN has none. False: a record cannot
  // hold all of it, the end (the root) is missing.
  // PERIOD: of an event that has periods of its own.
  bool write_sample(const Sample& sample, std::span<const std::uint64_t> chain,
                    std::uint64_t period = 1);
  // The features, the table of build ids with ADDITIONAL (and what makes `perf archive` take all of
  // the table's files), and last the header.
  void finish(std::span<const BuildId> additional);

  // Bytes so far.
  [[nodiscard]] std::uint64_t size() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pyinject::perfdata
