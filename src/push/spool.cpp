#include "push/spool.hpp"

#include "base/file.hpp"
#include "base/format.hpp"
#include "base/text.hpp"
#include "push/spool_entry.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::push {

namespace {

constexpr std::string_view kSuffix = ".push";
constexpr std::size_t kDigits = 20;
constexpr std::size_t kIdLength = 36;
constexpr std::size_t kMostEntries = 65536;

bool is_entry_name(std::string_view name) {
  return name.size() == kDigits + 1 + kIdLength + kSuffix.size() && name.ends_with(kSuffix) &&
         name[kDigits] == '-' &&
         std::ranges::all_of(name.substr(0, kDigits),
                             [](char one) { return one >= '0' && one <= '9'; }) &&
         is_id(name.substr(kDigits + 1, kIdLength));
}

// Of base::NewFile, if this tool was killed before the file had its name.
bool is_incomplete(std::string_view name) {
  const auto end = name.find(".new");
  return end != std::string_view::npos && is_entry_name(name.substr(0, end));
}

struct OpenFile {
  base::UniqueFd fd;
  std::uint64_t size = 0;
};

// nullopt: NAME is not a regular file of this user.
std::optional<OpenFile> open_entry(const base::Directory& directory, const std::string& name) {
  struct stat facts {};
  try {
    auto fd = directory.open(name);
    if (::fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_uid != ::geteuid()) {
      return std::nullopt;
    }
    return OpenFile{.fd = std::move(fd), .size = static_cast<std::uint64_t>(facts.st_size)};
  } catch (const base::SystemError&) {
    return std::nullopt;
  }
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

// Of the directory that is open, whatever has its path now.
std::vector<std::string> names_in(int directory) {
  base::UniqueFd fd{::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  const std::unique_ptr<DIR, CloseDirectory> entries{fd.valid() ? ::fdopendir(fd.get()) : nullptr};
  if (!entries) {
    throw base::SystemError{"cannot list the spool", errno};
  }
  (void)fd.release();  // the stream owns it now
  std::vector<std::string> names;
  while (const dirent* const entry = ::readdir(entries.get())) {
    names.emplace_back(entry->d_name);
  }
  return names;
}

}  // namespace

base::Directory open_own_directory(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) {
    path.pop_back();
  }
  const auto place = base::Place::of(path);
  return place.directory.make(place.name, S_IRWXU, ::geteuid());
}

Spool::Spool(const std::string& path, std::uint64_t most_bytes, base::Logger& logger)
    : path_{path},
      most_bytes_{most_bytes},
      logger_{logger},
      directory_{open_own_directory(path)},
      readable_{::openat(directory_.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)} {
  lock();
  find_entries();
}

void Spool::lock() {
  struct stat facts {};
  if (!readable_.valid() || ::fstat(readable_.get(), &facts) != 0) {
    throw base::SystemError{"cannot open the spool " + path_, errno};
  }
  if ((facts.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw base::Error{fmt::format("the spool {} is accessible to other users: chmod 700", path_)};
  }
  if (::flock(readable_.get(), LOCK_EX | LOCK_NB) != 0) {
    throw base::Error{fmt::format(
        "the spool {} is in use by another perf-pyinject: give each its own, --spool DIR", path_)};
  }
}

void Spool::find_entries() {
  auto names = names_in(readable_.get());
  std::ranges::sort(names);
  for (const auto& name : names) {
    if (is_entry_name(name)) {
      find_entry(name);
    } else if (is_incomplete(name)) {
      directory_.remove(name);
    }
  }
  drop_oldest(0);
}

void Spool::find_entry(const std::string& name) {
  const auto file = open_entry(directory_, name);
  if (!file) {
    logger_.warning("{}: not a regular file of this user; skipped", directory_.path_of(name));
    return;
  }
  const auto head = base::read_fd(file->fd.get(), kLongestHead, directory_.path_of(name));
  const auto entry = decode_head(head, file->size);
  if (!entry) {
    logger_.warning("{} is damaged: removed", directory_.path_of(name));
    directory_.remove(name);
    ++dropped_;
    return;
  }
  known_.push_back(
      {.name = name, .id = entry->id, .destination = entry->destination, .bytes = file->size});
  bytes_ += file->size;
  last_time_ = base::parse_number<std::uint64_t>(std::string_view{name}.substr(0, kDigits))
                   .value_or(last_time_);
}

// Makes room for BYTES.
void Spool::drop_oldest(std::uint64_t bytes) {
  const auto full = [&] {
    return bytes_ + bytes > most_bytes_ || known_.size() + (bytes == 0 ? 0 : 1) > kMostEntries;
  };
  std::size_t count = 0;
  while (full()) {
    const auto oldest = std::ranges::find(known_, false, &Known::taken);
    if (oldest == known_.end()) {
      break;
    }
    forget(oldest);
    ++count;
  }
  if (count != 0) {
    dropped_ += count;
    logger_.warning("the spool {} is full: {} dropped", path_,
                    base::counted(count, "oldest profile"));
  }
}

void Spool::forget(const std::deque<Known>::iterator& known) {
  bytes_ -= known->bytes;
  const auto name = std::move(known->name);
  known_.erase(known);
  directory_.remove(name);
}

std::deque<Spool::Known>::iterator Spool::find(const std::string& id) {
  return std::ranges::find(known_, id, &Known::id);
}

// Names sort by age, even if the clock is set back.
std::string Spool::new_name(const std::string& id) {
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  last_time_ = std::max(last_time_ + 1, static_cast<std::uint64_t>(now));
  return fmt::format("{:020}-{}{}", last_time_, id, kSuffix);
}

bool Spool::add(const SpoolEntry& entry) {
  const auto text = encode(entry);
  const std::lock_guard lock{mutex_};
  drop_oldest(text.size() <= most_bytes_ ? text.size() : 0);
  if (bytes_ + text.size() > most_bytes_) {
    ++dropped_;
    return false;
  }
  const auto name = new_name(entry.id);
  base::NewFile file{directory_, name};
  base::write_all(file.fd(), text, directory_.path_of(name));
  if (::fsync(file.fd()) != 0) {
    throw base::SystemError{"cannot write " + directory_.path_of(name), errno};
  }
  file.take_place();
  known_.push_back(
      {.name = name, .id = entry.id, .destination = entry.destination, .bytes = text.size()});
  bytes_ += text.size();
  (void)::fsync(readable_.get());
  return true;
}

std::optional<SpoolEntry> Spool::take(const std::string& destination) {
  const std::lock_guard lock{mutex_};
  while (true) {
    const auto known = std::ranges::find_if(
        known_, [&](const Known& one) { return !one.taken && one.destination == destination; });
    if (known == known_.end()) {
      return std::nullopt;
    }
    const auto file = open_entry(directory_, known->name);
    auto entry = file && file->size == known->bytes
                     ? decode(base::read_fd(file->fd.get(), known->bytes + 1, known->name))
                     : std::nullopt;
    if (entry && entry->id == known->id && entry->destination == destination) {
      known->taken = true;
      return entry;
    }
    logger_.warning("{} is damaged: removed", directory_.path_of(known->name));
    ++dropped_;
    forget(known);
  }
}

void Spool::put_back(const std::string& id) {
  const std::lock_guard lock{mutex_};
  if (const auto known = find(id); known != known_.end()) {
    known->taken = false;
  }
}

void Spool::remove(const std::string& id, std::atomic<std::uint64_t>& counter) {
  const std::lock_guard lock{mutex_};
  if (const auto known = find(id); known != known_.end()) {
    forget(known);
  }
  ++counter;
}

PushCounts Spool::totals(const LiveCounts& live) const {
  const std::lock_guard lock{mutex_};
  return {.pushed = live.pushed,
          .retried = live.retried,
          .dropped = live.dropped + dropped_,
          .merged = live.merged,
          .spooled = known_.size()};
}

std::size_t Spool::count() const {
  const std::lock_guard lock{mutex_};
  return known_.size();
}

std::size_t Spool::count(const std::string& destination) const {
  const std::lock_guard lock{mutex_};
  return static_cast<std::size_t>(std::ranges::count(known_, destination, &Known::destination));
}

std::uint64_t Spool::dropped() const {
  const std::lock_guard lock{mutex_};
  return dropped_;
}

}  // namespace pyinject::push
