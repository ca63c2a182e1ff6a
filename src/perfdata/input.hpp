// Reading a perf.data file from its beginning to its end, in bounded memory. The file is not
// trusted: whatever it holds, reading it neither crashes nor takes memory by its say-so.
#pragma once

#include "perfdata/record.hpp"
#include "perfdata/sample.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::perfdata {

// A file that has to stay as it is: no perf.data, or of a kind that is not read here.
struct UnsupportedFile {
  std::string why;  // "it was written to a pipe"
};

// Of FILE, which perf still writes, and whose events it has described: it does so at its start.
// Throws SystemError.
[[nodiscard]] std::variant<std::vector<Event>, UnsupportedFile> events_of_running(
    const base::UniqueFd& file, const std::string& name);

class Input {
 public:
  // Throws SystemError when PATH cannot be opened or read. UNFINISHED: a file whose perf has died
  // before it could complete it, and no other: it has all records that were written, the last one
  // perhaps in part, and no features.
  [[nodiscard]] static std::variant<Input, UnsupportedFile> open(const std::string& path,
                                                                 bool unfinished = false);
  // NAME: for messages.
  [[nodiscard]] static std::variant<Input, UnsupportedFile> open(base::UniqueFd file,
                                                                 const std::string& name,
                                                                 bool unfinished = false);

  Input(Input&& other) noexcept;
  Input& operator=(Input&& other) noexcept;
  ~Input();

  // They stay where they are as long as the Input or what it was moved to lives.
  [[nodiscard]] const std::vector<Event>& events() const;

  // The next record in the order of the file, aligned to 8 bytes; those in COMPRESSED records one
  // by one. Valid until the next call. nullopt: the end, or damage. Throws SystemError.
  [[nodiscard]] std::optional<Record> next();
  // The same, but a sample may be cut behind what head_of() needs: copied stacks are passed over.
  [[nodiscard]] std::optional<Record> next_head();
  // Whether the records ended before their time, and why: "a record of 4 bytes at offset 4711".
  [[nodiscard]] bool damaged() const { return !damage().empty(); }
  [[nodiscard]] const std::string& damage() const;
  void rewind();

  // What perf noted of the tracepoints' formats (HEADER_TRACING_DATA), as it is in the file.
  // nullopt: nothing, or more than perf writes. Throws SystemError.
  [[nodiscard]] std::optional<std::vector<std::byte>> tracing_data() const;

  // Bytes of the file, for a display of progress.
  [[nodiscard]] std::uint64_t position() const;
  [[nodiscard]] std::uint64_t size() const;

  // The event that RECORD is of; null when nothing says so.
  [[nodiscard]] const Event* event_of(const Record& record) const;
  // False: no sample, damaged, or of an unknown event. The vectors of OUT are used again.
  [[nodiscard]] bool parse(const Record& record, Sample& out) const;
  [[nodiscard]] std::optional<SampleHead> head_of(const Record& record) const;
  // When it happened, for samples and, with sample_id_all, the kernel's other records. 0 is an
  // answer, too: perf gives it to the records that it makes itself.
  [[nodiscard]] std::optional<std::uint64_t> time_of(const Record& record) const;

  // Of which thread, for the kernel's records that are no samples, with sample_id_all.
  [[nodiscard]] std::optional<std::uint32_t> thread_of(const Record& record) const;

  // For other sources of this folder.
  class Impl;
  [[nodiscard]] const Impl& impl() const { return *impl_; }

 private:
  explicit Input(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pyinject::perfdata
