// Writes a copy of a perf.data file with new stacks: uncompressed, without the registers and stack
// dumps that were needed for unwinding.
#pragma once

#include "perfdata/input.hpp"
#include "perfdata/target_gaps.hpp"
#include "pyinject/perfdata/stack_counts.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pyinject::perfdata {

class Output {
 public:
  // Writes to FD, an empty regular file; FD and INPUT must stay valid until finish(). Without
  // finish() the file has no header and perf does not accept it. All functions throw SystemError.
  //
  // Removes user stacks from the events of INPUT: PERF_SAMPLE_REGS_USER and STACK_USER, their mask
  // and size, exclude_callchain_user, everywhere in the file; also the bits of deferred callchains.
  // Events for which TAKES_PERIOD is true get a period in each sample (PERF_SAMPLE_PERIOD) if they
  // have none; it decides by their attributes.
  using TakesPeriod = std::function<bool(const Event&)>;
  Output(int fd, const Input& input, TakesPeriod takes_period = {});
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output();

  // Copies RECORD. For a sample of an event that lost its user stacks or deferral or got periods,
  // use write_sample() instead.
  void write(const Record& record);
  // Writes an MMAP2 record with time 0, like those that perf synthesizes: it takes effect at its
  // position in the file.
  void write_mapping(const Mapping& mapping);
  // Writes MAPPING with the time of LIKE, an MMAP2, COMM or FORK record. False: not possible;
  // nothing is written.
  [[nodiscard]] bool write_mapping_like(const Record& like, const Mapping& mapping);
  // Writes such a FORK record: perf drops what it knew about the child and gives it the parent's
  // mappings.
  void write_fork(const Task& task);
  // Writes such a COMM record. The name is cut after 15 bytes, as the kernel does.
  void write_command(const Command& command);
  // The same with the time of the COMM, FORK or EXIT record LIKE. False: not possible; nothing is
  // written.
  [[nodiscard]] bool write_command_like(const Record& like, const Command& command);
  // Writes SAMPLE with CHAIN, which is dropped if the event has no PERF_SAMPLE_CALLCHAIN. False:
  // CHAIN does not fit into a record and was truncated at the root, where CUT_MARK is put. PERIOD:
  // for an event that takes periods; nullopt: its own, or 1 if it has none.
  bool write_sample(const Sample& sample, std::span<const std::uint64_t> chain,
                    std::optional<std::uint64_t> period = std::nullopt,
                    std::optional<std::uint64_t> cut_mark = std::nullopt);
  // Writes the features, the table of build ids with ADDITIONAL (and the mark that makes `perf
  // archive` include all files in the table), IMAGES behind those of INPUT, and finally the header.
  // Returns how many IMAGES are left out because of kMostNames (names_section.hpp). COUNTS and
  // GAPS replace those of INPUT, unless nothing was counted and there are none.
  std::size_t finish(std::span<const BuildId> additional, std::span<const Bytes> images = {},
                     const StackCounts& counts = {}, const TargetGaps& gaps = {});

  // Bytes written so far.
  [[nodiscard]] std::uint64_t size() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pyinject::perfdata
