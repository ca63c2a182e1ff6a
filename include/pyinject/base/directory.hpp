// Files written next to others, by descriptor. Root writes into directories of other users: such a
// user can replace any name at any time, so no path is resolved twice and no foreign link followed.
#pragma once

#include "pyinject/base/unique_fd.hpp"

#include <string>
#include <utility>

#include <sys/stat.h>

namespace pyinject::base {

class Directory {
 public:
  // PATH as the user gave it, links followed. Throws SystemError.
  explicit Directory(std::string path);

  // Its directory NAME, made with MODE if there is none. Throws Error if NAME is a link, belongs to
  // a user other than this tool's and OWNER, or is writable by others.
  [[nodiscard]] Directory make(const std::string& name, mode_t mode, uid_t owner) const;
  // NAME for reading, without waiting for the other end of a FIFO. A link is ELOOP. Throws
  // SystemError.
  [[nodiscard]] UniqueFd open(const std::string& name) const;
  // Throws SystemError.
  void rename(const std::string& from, const std::string& to) const;
  // The directory NAME and the files in it, which are not followed if they are links. Nothing
  // happens if it does not exist. Throws SystemError.
  void remove_with_files(const std::string& name) const;
  // The same for one file or link.
  void remove(const std::string& name) const;

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] std::string path_of(const std::string& name) const { return path_ + "/" + name; }

 private:
  friend struct Place;
  Directory(std::string path, UniqueFd fd) : path_{std::move(path)}, fd_{std::move(fd)} {}

  std::string path_;  // for messages
  UniqueFd fd_;       // O_PATH
};

// A name in a directory.
struct Place {
  Directory directory;
  std::string name;

  // PATH itself, also if it is a link.
  [[nodiscard]] static Place of(const std::string& path);
  // The file that PATH leads to, which need not exist; links of /proc stay links. Throws Error for
  // a link of another user.
  [[nodiscard]] static Place behind(const std::string& path);
};

// A file with mode 0600 that appears under its name only when it is complete. If this tool is
// killed, nothing is left, except on file systems without unnamed files.
class NewFile {
 public:
  // To be NAME in DIRECTORY, which must outlive it. Throws SystemError.
  NewFile(const Directory& directory, std::string name);
  explicit NewFile(const Place& place) : NewFile{place.directory, place.name} {}
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  // The file gets the owner, group and mode of FACTS, as far as this tool may set them.
  void resemble(const struct stat& facts) const;
  // It takes the place. Throws SystemError.
  void take_place();

 private:
  void create_named();
  void give_name();

  const Directory& directory_;
  std::string final_name_;
  std::string name_;  // empty: none yet
  UniqueFd fd_;
};

}  // namespace pyinject::base
