// Access to files relative to a directory descriptor. Root writes into directories of other users,
// who can replace any name at any time: no path is resolved twice and no foreign link is followed.
//
// For example:
//   const auto place = base::Place::of("/var/tmp/profile.pb.gz");
//   base::NewFile file{place};
//   (void)!::write(file.fd(), "...", 3);
//   file.take_place();  // until now nobody sees it
#pragma once

#include "pyinject/base/unique_fd.hpp"

#include <string>
#include <utility>

#include <sys/stat.h>

namespace pyinject::base {

class Directory {
 public:
  // PATH as the user gave it; follows links. Throws SystemError.
  explicit Directory(std::string path);

  // Opens the subdirectory NAME; creates it with MODE if it does not exist. Throws Error if NAME is
  // a link, is writable by others, or belongs to a user other than this tool's and OWNER.
  [[nodiscard]] Directory make(const std::string& name, mode_t mode, uid_t owner) const;
  // Opens NAME for reading; does not block on a FIFO. Throws SystemError, with ELOOP for a link.
  [[nodiscard]] UniqueFd open(const std::string& name) const;
  // Throws SystemError.
  void rename(const std::string& from, const std::string& to) const;
  // Removes the directory NAME and the files in it; does not follow links. No-op if NAME does not
  // exist. Throws SystemError; Error if it is not the directory with the facts ONLY.
  void remove_with_files(const std::string& name, const struct stat* only = nullptr) const;
  // The same for a single file or link.
  void remove(const std::string& name) const;

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] std::string path_of(const std::string& name) const { return path_ + "/" + name; }

 private:
  friend struct Place;
  Directory(std::string path, UniqueFd fd) : path_{std::move(path)}, fd_{std::move(fd)} {}

  std::string path_;  // for messages
  UniqueFd fd_;       // O_PATH
};

// A name within a directory.
struct Place {
  Directory directory;
  std::string name;

  // PATH itself, even if it is a link.
  [[nodiscard]] static Place of(const std::string& path);
  // The file that PATH leads to, which need not exist; links of /proc stay links. Throws Error for
  // another user's link.
  [[nodiscard]] static Place behind(const std::string& path);
};

// A file with mode 0600 that appears under its name only when it is complete. If this tool is
// killed, nothing is left behind, except on file systems without O_TMPFILE.
class NewFile {
 public:
  // Will become NAME in DIRECTORY, which must outlive this object. Throws SystemError.
  NewFile(const Directory& directory, std::string name);
  explicit NewFile(const Place& place) : NewFile{place.directory, place.name} {}
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  // Copies owner, group and mode from FACTS, as far as this tool is permitted to.
  void resemble(const struct stat& facts) const;
  // Puts the file in place under its name. Throws SystemError.
  void take_place();
  // The same where a directory has the name, which gets the name that is returned. The two are
  // exchanged in one step, except on file systems that cannot (NFS).
  [[nodiscard]] std::string take_place_of_directory();

 private:
  void make_named();
  void create_named();
  void give_name();

  const Directory& directory_;
  std::string final_name_;
  std::string name_;  // empty: unnamed so far
  UniqueFd fd_;
};

}  // namespace pyinject::base
