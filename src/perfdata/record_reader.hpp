// Reads the records in a section of a file sequentially.
#pragma once

#include "perfdata/file_access.hpp"
#include "perfdata/record.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::perfdata {

// The record at the start of RECORDS if it is complete; nullopt: it is not. 0 bytes: its header is
// damaged.
[[nodiscard]] std::optional<Record> first_record(Bytes records);

class RecordReader {
 public:
  RecordReader(int fd, Section data, std::string name);

  // Not aligned; valid until the next call. nullopt: the end, or damage.
  [[nodiscard]] std::optional<Record> next();
  // The same, but at most the first kHead bytes of a sample: the others are not even read.
  [[nodiscard]] std::optional<Record> next_head();
  [[nodiscard]] const std::string& damage() const { return damage_; }
  // File offset of the next record.
  [[nodiscard]] std::uint64_t position() const { return read_ - (filled_ - begin_); }
  void rewind();

 private:
  void fill(std::size_t most);
  [[nodiscard]] std::optional<Record> take(std::size_t most);
  [[nodiscard]] std::size_t left() const { return filled_ - begin_; }

  int fd_;
  Section data_;
  std::string name_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;  // data not yet returned: [begin_, filled_) of the buffer
  std::size_t filled_ = 0;
  std::uint64_t read_;  // file offset after the buffer
  std::string damage_;
};

}  // namespace pyinject::perfdata
