#include "procfs/numbered_entries.hpp"

#include "base/text.hpp"

#include <cerrno>
#include <memory>

#include <dirent.h>

namespace pyinject::procfs {

namespace {

struct CloseDir {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

}  // namespace

int for_each_number(const std::string& directory, const std::function<void(int)>& on_number) {
  const std::unique_ptr<DIR, CloseDir> listing{::opendir(directory.c_str())};
  if (!listing) {
    return errno;
  }
  while (true) {
    errno = 0;  // NULL also means the end
    const dirent* const entry = ::readdir(listing.get());
    if (entry == nullptr) {
      return errno;
    }
    if (const auto number = base::parse_number<int>(entry->d_name)) {
      on_number(*number);
    }
  }
}

}  // namespace pyinject::procfs
