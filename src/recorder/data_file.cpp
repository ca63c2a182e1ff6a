#include "recorder/data_file.hpp"

#include "perfdata/file_header.hpp"
#include "pyinject/base/error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>

namespace pyinject::recorder {

namespace {

using perfdata::Bytes;
using perfdata::Section;

constexpr std::size_t kBuffer = std::size_t{256} << 10U;
constexpr mode_t kMode = 0600;

template <typename Value>
Bytes bytes_of(const Value& value) {
  return std::as_bytes(std::span{&value, 1});
}

void keep_earlier(const std::string& path) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size == 0) {
    return;
  }
  const auto old = path + ".old";
  if (::rename(path.c_str(), old.c_str()) != 0) {
    throw base::SystemError{"failed to rename " + path, errno};
  }
}

}  // namespace

DataFile::DataFile(const std::string& path) : path_{path} {
  keep_earlier(path);
  fd_.reset(::open(path.c_str(), O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, kMode));
  if (!fd_.valid()) {
    throw base::SystemError{"failed to open " + path, errno};
  }
}

void DataFile::write(Bytes bytes) {
  if (buffer_.size() + bytes.size() > kBuffer) {
    flush();
  }
  if (bytes.size() >= kBuffer) {
    perfdata::write_at(fd_.get(), written_, bytes, path_);
    written_ += bytes.size();
    return;
  }
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void DataFile::flush() {
  if (!buffer_.empty()) {
    perfdata::write_at(fd_.get(), written_, buffer_, path_);
    written_ += buffer_.size();
    buffer_.clear();
  }
}

void DataFile::begin(std::span<const OpenEvent> events) {
  write(bytes_of(perfdata::FileStart{}));
  std::vector<Section> ids;
  for (const auto& event : events) {
    ids.push_back({.offset = size(), .size = event.ids.size() * sizeof(std::uint64_t)});
    write(std::as_bytes(std::span{event.ids}));
  }
  attributes_at_ = size();
  for (std::size_t i = 0; i < events.size(); ++i) {
    write(bytes_of(events[i].attr));
    write(bytes_of(ids[i]));
  }
  attributes_bytes_ = size() - attributes_at_;
  data_at_ = size();
  flush();
  write_start({});
}

void DataFile::write_start(std::span<const FeatureContents> features) {
  perfdata::FileStart start;
  start.magic = perfdata::kMagic;
  start.size = sizeof start;
  start.attributes_size = sizeof(perf_event_attr) + sizeof(Section);
  start.attributes = {.offset = attributes_at_, .size = attributes_bytes_};
  start.data = {.offset = data_at_, .size = data_bytes_};
  for (const auto& feature : features) {
    start.features.at(feature.bit / 64) |= std::uint64_t{1} << (feature.bit % 64);
  }
  perfdata::write_at(fd_.get(), 0, bytes_of(start), path_);
}

void DataFile::finish(std::vector<FeatureContents> features) {
  std::ranges::sort(features, {}, &FeatureContents::bit);
  data_bytes_ = size() - data_at_;
  // Their table precedes them.
  std::uint64_t at = size() + features.size() * sizeof(Section);
  for (const auto& feature : features) {
    write(bytes_of(Section{.offset = at, .size = feature.bytes.size()}));
    at += feature.bytes.size();
  }
  for (const auto& feature : features) {
    write(feature.bytes);
  }
  flush();
  write_start(features);
}

}  // namespace pyinject::recorder
