// The implementation of Input, for the other sources in this directory.
#pragma once

#include "perfdata/decompressor.hpp"
#include "perfdata/file_header.hpp"
#include "perfdata/identity.hpp"
#include "perfdata/input.hpp"
#include "perfdata/record_reader.hpp"

#include <string>
#include <vector>

namespace pyinject::perfdata {

class Input::Impl {
 public:
  Impl(base::UniqueFd file, std::string name, FileHeader header);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] int fd() const { return file_.get(); }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const FileHeader& header() const { return header_; }
  // The contents of a feature; nullopt: the file has none, or one of more than MOST bytes. Throws
  // SystemError.
  [[nodiscard]] std::optional<std::vector<std::byte>> feature(FeatureBit bit,
                                                              std::uint64_t most) const;
  [[nodiscard]] const EventIndex& index() const { return index_; }
  [[nodiscard]] const std::string& damage() const { return damage_; }
  [[nodiscard]] std::uint64_t position() const { return reader_.position(); }
  [[nodiscard]] std::optional<Record> next(bool whole);
  void rewind();

 private:
  std::optional<Record> end(std::string damage);
  Record readable(Record record);

  base::UniqueFd file_;
  std::string name_;
  FileHeader header_;
  EventIndex index_;
  RecordReader reader_;
  Decompressor decompressor_;
  std::vector<std::byte> copy_;  // of a record that cannot be used in place
  std::string damage_;
  bool ended_ = false;
};

}  // namespace pyinject::perfdata
