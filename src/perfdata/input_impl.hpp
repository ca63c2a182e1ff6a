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
  // FOLDER: the directory that FILE is in, with the pieces that hold the samples; or not valid.
  Impl(base::UniqueFd file, base::UniqueFd folder, std::string name, FileHeader header);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] int fd() const { return file_.get(); }
  [[nodiscard]] const base::UniqueFd& folder() const { return folder_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const FileHeader& header() const { return header_; }
  // The contents of a feature; nullopt: the file has none, or one of more than MOST bytes. Throws
  // SystemError.
  [[nodiscard]] std::optional<std::vector<std::byte>> feature(FeatureBit bit,
                                                              std::uint64_t most) const;
  [[nodiscard]] const EventIndex& index() const { return index_; }
  [[nodiscard]] const std::string& damage() const { return damage_; }
  [[nodiscard]] std::uint64_t position() const { return before_ + reader_.position(); }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] std::optional<Record> next(bool whole);
  void rewind();

 private:
  std::optional<Record> end(std::string damage);
  Record readable(Record record);
  // Continues with the next piece. False: there is none, or an entry that is no piece (DAMAGE_).
  bool next_piece();

  base::UniqueFd file_;
  base::UniqueFd folder_;
  std::string name_;
  FileHeader header_;
  EventIndex index_;
  base::UniqueFd piece_;      // that READER_ reads; not valid: FILE_
  unsigned pieces_ = 0;       // opened so far
  std::uint64_t before_ = 0;  // bytes of the earlier pieces
  std::uint64_t size_ = 0;    // of all
  RecordReader reader_;
  Decompressor decompressor_;
  std::vector<std::byte> copy_;  // of a record that cannot be used in place
  std::string damage_;
  bool ended_ = false;
};

}  // namespace pyinject::perfdata
