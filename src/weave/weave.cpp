#include "pyinject/weave/weave.hpp"

#include "pyinject/base/error.hpp"
#include "weave/weaver.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::weave {

namespace {

// Where PATH's file is to be put: a link stays, and leads to it. What is no file (a device, a FIFO)
// must not be replaced by one.
std::string destination(const std::string& path) {
  namespace filesystem = std::filesystem;
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) {
    throw base::Error{path + " is no regular file"};
  }
  std::error_code error;
  auto target = filesystem::canonical(path, error);
  return !error && filesystem::is_symlink(path, error) ? target.string() : path;
}

// A file without a name in the folder of PATH, which nothing is left of if this tool is killed.
class NewFile {
 public:
  explicit NewFile(const std::string& path) : path_{destination(path)} {
    auto folder = std::filesystem::path{path_}.parent_path().string();
    if (folder.empty()) {
      folder = ".";
    }
    fd_.reset(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (!fd_.valid()) {  // not all file systems can
      name_ = path_ + ".XXXXXX";
      fd_.reset(::mkostemp(name_.data(), O_CLOEXEC));
    }
    if (!fd_.valid()) {
      throw base::SystemError{"cannot write beside " + path_, errno};
    }
  }
  ~NewFile() {
    if (!name_.empty()) {
      ::unlink(name_.c_str());
    }
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }

  // Takes the place of what is at PATH, and its owner and mode when there was a file.
  void take_place(const std::string& input) {
    struct stat facts {};
    if (::stat(input.c_str(), &facts) == 0) {
      const int owner = ::fchown(fd_.get(), facts.st_uid, facts.st_gid);  // root can
      const int mode = ::fchmod(fd_.get(), facts.st_mode & 0777U);
      (void)owner;
      (void)mode;
    }
    if (name_.empty()) {
      give_name();
    }
    if (::rename(name_.c_str(), path_.c_str()) != 0) {
      throw base::SystemError{"cannot rename " + name_ + " to " + path_, errno};
    }
    name_.clear();
  }

 private:
  void give_name() {
    const auto self = "/proc/self/fd/" + std::to_string(fd_.get());
    for (int number = 0; number < 1000; ++number) {
      auto name = path_ + ".new" + std::to_string(number);
      if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
        name_ = std::move(name);
        return;
      }
      if (errno != EEXIST) {
        break;
      }
    }
    throw base::SystemError{"cannot write beside " + path_, errno};
  }

  std::string path_;
  std::string name_;  // empty: none yet
  base::UniqueFd fd_;
};

}  // namespace

Interpreters interpreters_of(
    const std::unordered_map<std::uint32_t, std::vector<AddressRange>>& evaluators) {
  Interpreters interpreters;
  for (const auto& [pid, ranges] : evaluators) {
    interpreters[pid].push_back({.evaluator = ranges});
  }
  return interpreters;
}

std::variant<WeaveSummary, Untouched> weave(const WeaveOptions& options, const Knowledge& knowledge,
                                            unwind::FileFinder& files) {
  auto opened = perfdata::Input::open(options.input, options.unfinished);
  if (auto* const not_treatable = std::get_if<perfdata::NotTreatable>(&opened)) {
    return Untouched{.why = std::move(not_treatable->why)};
  }
  auto& input = std::get<perfdata::Input>(opened);
  NewFile file{options.output};
  Weaver weaver{options, knowledge, files, input};
  if (!weaver.learn()) {
    return Untouched{.why = "cancelled", .cancelled = true};
  }
  if (!weaver.rewrite(file.fd())) {
    return Untouched{.why = "cancelled", .cancelled = true};
  }
  auto summary = weaver.take_summary();
  if (options.keep) {
    options.keep(summary.images);
  }
  file.take_place(options.input);
  return summary;
}

}  // namespace pyinject::weave
