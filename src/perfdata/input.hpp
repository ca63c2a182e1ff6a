// Reads a perf.data file sequentially in bounded memory. The file is not trusted: no contents crash
// the reader or make it allocate arbitrary amounts of memory.
#pragma once

#include "perfdata/record.hpp"
#include "perfdata/sample.hpp"
#include "perfdata/target_gaps.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/perfdata/stack_counts.hpp"
#include "pyinject/perfdata/unsupported_file.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::perfdata {

// The events of FILE, which a running perf writes: perf describes its events at the start. Throws
// SystemError.
[[nodiscard]] std::variant<std::vector<Event>, UnsupportedFile> events_of_running(
    const base::UniqueFd& file, const std::string& name);

// An entry in the table of build ids.
struct BuildId {
  // Machine pid of the host; perf treats any other value as a guest.
  static constexpr std::uint32_t kHost = 0xffffffff;
  std::uint32_t pid = kHost;
  std::vector<std::byte> id;  // at most 20 bytes
  std::string file;
};

// The same moment by the clock of -k, --clockid, and by CLOCK_REALTIME; nanoseconds.
struct ClockData {
  std::uint32_t clock = 0;  // as of clock_gettime()
  std::uint64_t wall_time = 0;
  std::uint64_t clock_time = 0;
};

class Features;

class Input {
 public:
  // PATH may be a directory of `perf record --threads`: its files are read one after the other, so
  // records are ordered by time only within each of them. Throws SystemError if PATH cannot be
  // opened or read. UNFINISHED: accepts only a file that its perf did not complete because it died:
  // the file has all records written so far, the last one perhaps truncated, and no features.
  [[nodiscard]] static std::variant<Input, UnsupportedFile> open(const std::string& path,
                                                                 bool unfinished = false);
  // NAME: for messages.
  [[nodiscard]] static std::variant<Input, UnsupportedFile> open(base::UniqueFd file,
                                                                 const std::string& name,
                                                                 bool unfinished = false);

  Input(Input&& other) noexcept;
  Input& operator=(Input&& other) noexcept;
  ~Input();

  // Addresses of the events are stable as long as this Input, or the one that it was moved to,
  // lives.
  [[nodiscard]] const std::vector<Event>& events() const;

  // The next record in file order, aligned to 8 bytes; records in COMPRESSED records are returned
  // one by one. Valid until the next call. nullopt: the end, or damage. Throws SystemError.
  [[nodiscard]] std::optional<Record> next();
  // The same, but samples may be truncated after what head_of() needs: stack dumps are skipped.
  [[nodiscard]] std::optional<Record> next_head();
  // Whether the records end prematurely, and why: "a record of 4 bytes at offset 4711".
  [[nodiscard]] bool damaged() const { return !damage().empty(); }
  [[nodiscard]] const std::string& damage() const;
  void rewind();
  [[nodiscard]] bool is_directory() const;
  // A reader of the same file at its first record, independent of this one.
  [[nodiscard]] Input another() const;

  // What the file has besides records.
  [[nodiscard]] Features features() const;

  // Bytes of the file, for progress displays.
  [[nodiscard]] std::uint64_t position() const;
  [[nodiscard]] std::uint64_t size() const;

  // The event of RECORD; null: unknown.
  [[nodiscard]] const Event* event_of(const Record& record) const;
  // False: not a sample, damaged, or of an unknown event. Reuses the vectors of OUT.
  [[nodiscard]] bool parse(const Record& record, Sample& out) const;
  [[nodiscard]] std::optional<SampleHead> head_of(const Record& record) const;
  // Timestamp of samples and, with sample_id_all, of the kernel's other records. May be 0: perf
  // uses it for synthesized records.
  [[nodiscard]] std::optional<std::uint64_t> time_of(const Record& record) const;

  // Thread of the kernel's records other than samples, with sample_id_all.
  [[nodiscard]] std::optional<std::uint32_t> thread_of(const Record& record) const;

  // For other sources in this directory.
  class Impl;
  [[nodiscard]] const Impl& impl() const { return *impl_; }

 private:
  explicit Input(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The features of an Input, which must outlive this object. All throw SystemError.
class Features {
 public:
  explicit Features(const Input::Impl& input) : input_{input} {}

  // perf's list of the recorded files with their build ids. Empty: none, or damaged.
  [[nodiscard]] std::vector<BuildId> build_ids() const;
  // The tracepoint formats saved by perf (HEADER_TRACING_DATA), as in the file. nullopt: none, or
  // more than perf writes.
  [[nodiscard]] std::optional<std::vector<std::byte>> tracing_data() const;
  // HEADER_CLOCK_DATA; nullopt: recorded by perf's own clock, or by a perf before 5.9.
  [[nodiscard]] std::optional<ClockData> clock_data() const;

  // The images with names that this tool put into the file. Empty: none, or damaged.
  [[nodiscard]] std::vector<std::vector<std::byte>> images() const;
  // Of what kind the stacks are, as this tool counted them when it wrote the file; all 0: unknown.
  [[nodiscard]] StackCounts stack_counts() const;
  // What the samples do not show of the targets, as this tool saw it.
  [[nodiscard]] TargetGaps target_gaps() const;

 private:
  const Input::Impl& input_;
};

}  // namespace pyinject::perfdata
