#include "perfdata/input.hpp"

#include "perfdata/corrected_header.hpp"
#include "perfdata/input_impl.hpp"
#include "perfdata/sample_parser.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

namespace pyinject::perfdata {

namespace {

// struct perf_record_compressed2 (perf 6.16): the size without the padding, then the data.
std::optional<Bytes> compressed2(Bytes record) {
  constexpr std::size_t kData = 16;
  std::uint64_t size = 0;
  if (record.size() < kData) {
    return std::nullopt;
  }
  std::memcpy(&size, record.data() + sizeof(perf_event_header), sizeof size);
  return size > record.size() - kData ? std::nullopt : std::optional{record.subspan(kData, size)};
}

std::string piece_name(unsigned number) { return fmt::format("data.{}", number); }

}  // namespace

Input::Impl::Impl(base::UniqueFd file, base::UniqueFd folder, std::string name, FileHeader header)
    : file_{std::move(file)},
      folder_{std::move(folder)},
      name_{std::move(name)},
      header_{std::move(header)},
      index_{header_.events},
      size_{header_.data.end()},
      reader_{file_.get(), header_.data, name_} {
  struct stat info {};
  for (unsigned i = 0; folder_.valid() && ::fstatat(folder_.get(), piece_name(i).c_str(), &info,
                                                    AT_SYMLINK_NOFOLLOW) == 0;
       ++i) {
    size_ += static_cast<std::uint64_t>(std::max<off_t>(info.st_size, 0));
  }
}

// perf.data-directory-format.txt of linux, tools/perf/Documentation: the pieces have records and no
// header. perf compresses each one by itself.
bool Input::Impl::next_piece() {
  if (!folder_.valid()) {
    return false;
  }
  const auto name = piece_name(pieces_);
  base::UniqueFd piece{::openat(folder_.get(), name.c_str(),
                                O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK)};
  if (!piece.valid() && errno == ENOENT) {
    return false;
  }
  struct stat info {};
  if (!piece.valid() || ::fstat(piece.get(), &info) != 0) {
    throw base::SystemError{fmt::format("cannot open {}/{}", name_, name), errno};
  }
  if (!S_ISREG(info.st_mode)) {
    damage_ = name + " is not a regular file";
    return false;
  }
  before_ += reader_.position();
  piece_ = std::move(piece);
  reader_ = RecordReader{piece_.get(),
                         {.offset = 0, .size = static_cast<std::uint64_t>(info.st_size)},
                         fmt::format("{}/{}", name_, name)};
  decompressor_.rewind();
  ++pieces_;
  return true;
}

std::optional<Record> Input::Impl::end(std::string damage) {
  damage_ = std::move(damage);
  ended_ = true;
  return std::nullopt;
}

// Aligned, with a corrected header.
Record Input::Impl::readable(Record record) {
  const auto header = corrected_header(record, header_.events, index_);
  if (!header &&
      reinterpret_cast<std::uintptr_t>(record.bytes.data()) % sizeof(std::uint64_t) == 0) {
    return record;
  }
  copy_.assign(record.bytes.begin(), record.bytes.end());
  if (header) {
    copy_.resize(header->size);
    std::memcpy(copy_.data(), &*header, sizeof *header);
    record.misc = header->misc;
  }
  record.bytes = copy_;
  return record;
}

std::optional<Record> Input::Impl::next(bool whole) {
  while (!ended_) {
    if (const auto record = decompressor_.next()) {
      return readable(*record);
    }
    if (!decompressor_.damage().empty()) {
      return end(decompressor_.damage());
    }
    const auto record = whole ? reader_.next() : reader_.next_head();
    if (!record) {
      // A partial record in the decompressor is no damage: perf record keeps the last bytes of
      // incompressible data in its own buffer (seen with 6.1, 6.12, 7.2).
      if (reader_.damage().empty() && next_piece()) {
        continue;
      }
      return end(damage_.empty() ? reader_.damage() : damage_);
    }
    switch (record->type) {
      case kCompressed:
        decompressor_.feed(record->bytes.subspan(sizeof(perf_event_header)));
        break;
      case kCompressed2:
        if (const auto data = compressed2(record->bytes)) {
          decompressor_.feed(*data);
          break;
        }
        return end("a compressed record that is shorter than it says");
      case kAuxtrace:
      case kAuxtraceInfo:
        return end("it holds AUX data");
      default:
        return readable(*record);
    }
  }
  return std::nullopt;
}

void Input::Impl::rewind() {
  reader_ = RecordReader{file_.get(), header_.data, name_};
  piece_.reset();
  pieces_ = 0;
  before_ = 0;
  decompressor_.rewind();
  damage_.clear();
  ended_ = false;
}

std::variant<std::vector<Event>, UnsupportedFile> events_of_running(const base::UniqueFd& file,
                                                                    const std::string& name) {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) {
    throw base::SystemError{"cannot stat " + name, errno};
  }
  auto header =
      read_header(file.get(), static_cast<std::uint64_t>(info.st_size), name, PerfState::kRunning);
  if (auto* const not_treatable = std::get_if<UnsupportedFile>(&header)) {
    return std::move(*not_treatable);
  }
  return std::get<FileHeader>(std::move(header)).events;
}

Input::Input(std::unique_ptr<Impl> impl) : impl_{std::move(impl)} {}
Input::Input(Input&& other) noexcept = default;
Input& Input::operator=(Input&& other) noexcept = default;
Input::~Input() = default;

std::variant<Input, UnsupportedFile> Input::open(const std::string& path, bool unfinished) {
  // Non-blocking: PATH may be a pipe without a writer.
  base::UniqueFd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
  if (!file.valid()) {
    throw base::SystemError{"cannot open " + path, errno};
  }
  return open(std::move(file), path, unfinished);
}

std::variant<Input, UnsupportedFile> Input::open(base::UniqueFd file, const std::string& name,
                                                 bool unfinished) {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) {
    throw base::SystemError{"cannot stat " + name, errno};
  }
  base::UniqueFd folder;
  if (S_ISDIR(info.st_mode) && !unfinished) {
    folder.reset(file.release());
    file.reset(
        ::openat(folder.get(), "data", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK));
    if (!file.valid() && errno == ENOENT) {
      return UnsupportedFile{"it is a directory that perf record --threads has not written"};
    }
    if (!file.valid() || ::fstat(file.get(), &info) != 0) {
      throw base::SystemError{fmt::format("cannot open {}/data", name), errno};
    }
  }
  if (!S_ISREG(info.st_mode)) {
    return UnsupportedFile{"it is not a regular file"};
  }
  auto header = read_header(file.get(), static_cast<std::uint64_t>(info.st_size), name,
                            unfinished ? PerfState::kDead : PerfState::kDone);
  if (auto* const not_treatable = std::get_if<UnsupportedFile>(&header)) {
    return std::move(*not_treatable);
  }
  auto& read = std::get<FileHeader>(header);
  if (read.has(kFeatureFolder) != folder.valid()) {
    return UnsupportedFile{folder.valid()
                               ? "its file data is not one of a directory (--threads)"
                               : "it is part of a directory (--threads): give the directory"};
  }
  return Input{std::make_unique<Impl>(std::move(file), std::move(folder), name, std::move(read))};
}

Input Input::another() const {
  base::UniqueFd file{::fcntl(impl_->fd(), F_DUPFD_CLOEXEC, 0)};
  if (!file.valid()) {
    throw base::SystemError{"cannot open " + impl_->name() + " again", errno};
  }
  base::UniqueFd folder;
  if (impl_->folder().valid()) {
    folder.reset(::fcntl(impl_->folder().get(), F_DUPFD_CLOEXEC, 0));
    if (!folder.valid()) {
      throw base::SystemError{"cannot open " + impl_->name() + " again", errno};
    }
  }
  return Input{
      std::make_unique<Impl>(std::move(file), std::move(folder), impl_->name(), impl_->header())};
}

std::optional<std::vector<std::byte>> Input::Impl::feature(FeatureBit bit,
                                                           std::uint64_t most) const {
  const auto found = std::ranges::find(header_.features, unsigned{bit}, &Feature::bit);
  if (found == header_.features.end() || found->section.size > most) {
    return std::nullopt;
  }
  std::vector<std::byte> bytes(found->section.size);
  bytes.resize(read_at(fd(), found->section.offset, bytes, name_));
  return bytes;
}

const std::vector<Event>& Input::events() const { return impl_->header().events; }
std::optional<Record> Input::next() { return impl_->next(true); }
std::optional<Record> Input::next_head() { return impl_->next(false); }
const std::string& Input::damage() const { return impl_->damage(); }
void Input::rewind() { impl_->rewind(); }
std::uint64_t Input::position() const { return impl_->position(); }
std::uint64_t Input::size() const { return impl_->size(); }
Features Input::features() const { return Features{*impl_}; }
bool Input::is_directory() const { return impl_->folder().valid(); }
const Event* Input::event_of(const Record& record) const { return impl_->index().event_of(record); }

bool Input::parse(const Record& record, Sample& out) const {
  const Event* const event = record.type == PERF_RECORD_SAMPLE ? event_of(record) : nullptr;
  return event != nullptr && parse_sample(*event, record, out);
}

std::optional<SampleHead> Input::head_of(const Record& record) const {
  const Event* const event = record.type == PERF_RECORD_SAMPLE ? event_of(record) : nullptr;
  return event == nullptr ? std::nullopt : head_in(record, event->attr);
}

std::optional<std::uint64_t> Input::time_of(const Record& record) const {
  const Event* const event = event_of(record);
  return event == nullptr ? std::nullopt : time_in(record, event->attr);
}

std::optional<std::uint32_t> Input::thread_of(const Record& record) const {
  const Event* const event = event_of(record);
  return event == nullptr ? std::nullopt : thread_in(record, event->attr);
}

}  // namespace pyinject::perfdata
