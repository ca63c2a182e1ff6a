#include "perfdata/record_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace pyinject::perfdata {

namespace {

constexpr std::size_t kReadBuffer = std::size_t{1} << 18U;  // many times the size of a record
constexpr std::size_t kHead = 64;                           // all fields before the callchain
constexpr std::size_t kPiece = 4096;                        // bytes read at once while skipping
constexpr std::size_t kLargestRecord = 1U << 16U;

}  // namespace

std::optional<Record> first_record(Bytes records) {
  perf_event_header header{};
  if (records.size() < sizeof header) {
    return std::nullopt;
  }
  std::memcpy(&header, records.data(), sizeof header);
  if (header.size < sizeof header) {
    return Record{.type = header.type, .misc = header.misc, .bytes = {}};
  }
  if (header.size > records.size()) {
    return std::nullopt;
  }
  return Record{.type = header.type, .misc = header.misc, .bytes = records.first(header.size)};
}

RecordReader::RecordReader(int fd, Section data, std::string name)
    : fd_{fd}, data_{data}, name_{std::move(name)}, buffer_(kReadBuffer), read_{data.offset} {}

void RecordReader::rewind() {
  begin_ = 0;
  filled_ = 0;
  read_ = data_.offset;
  damage_.clear();
}

void RecordReader::fill(std::size_t most) {
  std::memmove(buffer_.data(), buffer_.data() + begin_, filled_ - begin_);
  filled_ -= begin_;
  begin_ = 0;
  const auto room =
      std::min<std::uint64_t>(std::min(buffer_.size() - filled_, most), data_.end() - read_);
  const auto got = read_at(fd_, read_, std::span{buffer_}.subspan(filled_, room), name_);
  filled_ += got;
  read_ += got;
}

std::optional<Record> RecordReader::next() { return take(kReadBuffer); }

std::optional<Record> RecordReader::next_head() {
  perf_event_header header{};
  if (left() < kHead && damage_.empty()) {
    fill(kPiece);
  }
  if (left() >= sizeof header) {
    std::memcpy(&header, buffer_.data() + begin_, sizeof header);
  }
  // Small or damaged records are returned as by next().
  if (header.type != PERF_RECORD_SAMPLE || header.size <= left() ||
      header.size > data_.end() - position()) {
    return take(kLargestRecord);
  }
  const auto head = Bytes{buffer_}.subspan(begin_, std::min(kHead, left()));
  read_ = position() + header.size;
  begin_ = filled_ = 0;
  return Record{.type = header.type, .misc = header.misc, .bytes = head};
}

std::optional<Record> RecordReader::take(std::size_t most) {
  if (!damage_.empty()) {
    return std::nullopt;
  }
  const auto rest = [this] { return Bytes{buffer_}.subspan(begin_, left()); };
  auto record = first_record(rest());
  if (!record) {
    fill(most);
    record = first_record(rest());
  }
  if (!record || record->bytes.empty()) {
    if (begin_ != filled_ || read_ != data_.end()) {
      damage_ = record ? fmt::format("a record of size 0 at offset {}", position())
                       : fmt::format("the record at offset {} is cut off", position());
    }
    return std::nullopt;
  }
  begin_ += record->bytes.size();
  return record;
}

}  // namespace pyinject::perfdata
