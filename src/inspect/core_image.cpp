#include "inspect/core_image.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "elf/elf_file.hpp"
#include "procfs/target_root.hpp"
#include "pyinject/base/error.hpp"
#include "python/layout/runtime_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace pyinject::inspect {

namespace {

constexpr std::uint64_t kCorePage = 4096;
constexpr std::size_t kMostOpenedFiles = 512;

// Behind the end of the file there are zeros, as in the last page of a mapping.
bool read_file_at(int fd, std::uint64_t offset, std::span<std::byte> into) {
  while (!into.empty()) {
    const ssize_t got = ::pread(fd, into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return false;
    }
    if (got == 0) {
      std::ranges::fill(into, std::byte{0});
      return true;
    }
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return true;
}

// Whether SIZE bytes at OFFSET of a file are in the pages of SEGMENT.
bool is_within(std::uint64_t offset, std::uint64_t size, const elf::Segment& segment) {
  const auto begin = segment.offset / kCorePage * kCorePage;
  const auto used = segment.offset - begin + segment.file_size;
  const auto pages = used / kCorePage + (used % kCorePage == 0 ? 0 : 1);
  return used >= segment.file_size && offset >= begin && offset - begin <= pages * kCorePage &&
         size <= pages * kCorePage - (offset - begin);
}

// The mappings that the core has segments for, and those that only NT_FILE names: gdb writes no
// segments for code. What these permit is not known; that they are taken for executable lets the
// code of the interpreter be found.
class MappingList {
 public:
  explicit MappingList(const elf::CoreFile& core) {
    for (const auto& segment : core.segments()) {
      add(segment);
    }
    const auto segments = mappings_.size();
    base::RemoteAddress named;
    for (const auto& file : core.notes().files) {
      if (file.begin >= named) {  // in ascending order, as the kernel and gdb write them
        name(file, segments);
        named = file.end;
      }
    }
    std::ranges::stable_sort(mappings_, {}, &procfs::Mapping::begin);
    base::RemoteAddress behind;
    std::erase_if(mappings_, [&behind](const procfs::Mapping& mapping) {
      const bool overlaps = mapping.begin < behind;
      behind = overlaps ? behind : mapping.end;
      return overlaps;
    });
  }

  [[nodiscard]] std::vector<procfs::Mapping> take() { return std::move(mappings_); }

 private:
  void add(const elf::Segment& segment) {
    constexpr std::uint32_t kReadable = 4;  // PF_R
    procfs::Mapping mapping;
    mapping.begin = base::RemoteAddress{segment.address.value()};
    mapping.end = mapping.begin + segment.memory_size;
    mapping.readable = (segment.flags & kReadable) != 0;
    mapping.writable = segment.writable();
    mapping.executable = segment.executable();
    mappings_.push_back(std::move(mapping));
  }

  // The first COUNT mappings are those of segments.
  void name(const elf::CoreMappedFile& file, std::size_t count) {
    constexpr std::string_view kDeleted = " (deleted)";  // d_path()
    procfs::Mapping mapping;
    mapping.begin = file.begin;
    mapping.end = file.end;
    mapping.readable = true;
    mapping.executable = true;
    mapping.offset = file.offset;
    mapping.path = file.path;
    mapping.deleted = mapping.path.ends_with(kDeleted);
    if (mapping.deleted) {
      mapping.path.resize(mapping.path.size() - kDeleted.size());
    }
    mapping.inode = numbers_.try_emplace(file.path, numbers_.size() + 1).first->second;
    const auto segments = std::span{mappings_}.first(count);
    const auto found = std::ranges::lower_bound(segments, file.begin, {}, &procfs::Mapping::begin);
    if (found == segments.end() || found->begin >= file.end) {
      mappings_.push_back(std::move(mapping));
      return;
    }
    for (auto one = found; one != segments.end() && one->begin < file.end; ++one) {
      one->offset = file.offset + (one->begin.value() - file.begin.value());
      one->path = mapping.path;
      one->deleted = mapping.deleted;
      one->inode = mapping.inode;
    }
  }

  std::vector<procfs::Mapping> mappings_;
  std::map<std::string, std::uint64_t, std::less<>> numbers_;
};

std::unordered_map<std::uint64_t, base::Tid> own_numbers(const elf::CoreFile& core) {
  std::unordered_map<std::uint64_t, base::Tid> numbers;
  for (const auto& thread : core.notes().threads) {
    numbers.emplace(static_cast<std::uint64_t>(thread.tid.value()), thread.tid);
  }
  return numbers;
}

}  // namespace

struct CoreImage::OpenedFile {
  base::UniqueFd fd;
  std::string why;                      // it is not usable
  std::vector<elf::Segment> constants;  // what the loader maps without write permission
};

class CoreImage::Memory : public memory::MemoryReader {
 public:
  explicit Memory(const CoreImage& image) : image_{image} {}
  [[nodiscard]] bool read(base::RemoteAddress from, std::span<std::byte> into) const override {
    return image_.read(from, into);
  }

 private:
  const CoreImage& image_;
};

CoreImage::CoreImage(elf::CoreFile core)
    : core_{std::move(core)}, mappings_{MappingList{core_}.take()}, numbers_{own_numbers(core_)} {
  for (const auto& mapping : mappings_) {
    if (mapping.inode != 0 && mapping.offset == 0) {
      starts_.try_emplace(mapping.inode, mapping.begin);
    }
  }
}

CoreImage::~CoreImage() = default;

std::unique_ptr<memory::MemoryReader> CoreImage::memory() const {
  return std::make_unique<Memory>(*this);
}

std::optional<std::vector<procfs::Mapping>> CoreImage::mappings() const { return mappings_; }

python::ThreadNumbers CoreImage::thread_numbers() const { return python::ThreadNumbers{numbers_}; }

void CoreImage::match_threads(const python::RuntimeLayout& layout, base::RemoteAddress runtime) {
  std::unordered_map<std::uint64_t, base::Tid> by_pointer;
  for (const auto& thread : core_.notes().threads) {
    by_pointer.emplace(thread.thread_pointer, thread.tid);
  }
  const Memory memory{*this};
  const python::RuntimeView view{memory, layout, runtime};
  for (const auto interpreter : view.interpreters()) {
    for (const auto& state : view.threads(interpreter)) {
      const auto found = by_pointer.find(state.thread_id);
      if (state.thread_id != 0 && found != by_pointer.end()) {
        numbers_.insert_or_assign(state.native_id, found->second);
      }
    }
  }
}

std::optional<std::string> CoreImage::system_call(base::Tid tid) const {
  const auto& threads = core_.notes().threads;
  const auto found = std::ranges::find(threads, tid, &elf::CoreThread::tid);
  if (found == threads.end() || !found->call) {
    return std::nullopt;
  }
  std::string text = std::to_string(found->call->number);
  for (const auto argument : found->call->arguments) {
    text += fmt::format(" {:#x}", argument);
  }
  return text + fmt::format(" {:#x} {:#x}", found->stack_pointer, found->program_counter);
}

// Whether the core has the beginning of MAPPING's file, and FILE begins otherwise.
bool CoreImage::has_other_start(int file, const procfs::Mapping& mapping) const {
  const auto start = starts_.find(mapping.inode);
  if (start == starts_.end()) {
    return false;
  }
  std::array<std::byte, kCorePage> core{};
  std::array<std::byte, kCorePage> now{};
  const auto* const segment = core_.find(start->second);
  return segment != nullptr && !segment->writable() && core_.read(*segment, start->second, core) &&
         (!read_file_at(file, 0, now) || now != core);
}

const CoreImage::OpenedFile& CoreImage::file_of(const procfs::Mapping& mapping) const {
  if (files_.size() >= kMostOpenedFiles && !files_.contains(mapping.inode)) {
    files_.clear();
  }
  auto& known = files_[mapping.inode];
  if (known != nullptr) {
    return *known;
  }
  known = std::make_unique<OpenedFile>();
  const auto root = procfs::TargetRoot::open(base::Pid{::getpid()});
  auto fd = root ? root->open_beneath(mapping.path, O_RDONLY) : base::UniqueFd{};
  if (!fd.valid()) {
    known->why = base::errno_text(errno);
    base::throw_if_short("cannot open " + base::printable(mapping.path));
    return *known;
  }
  if (has_other_start(fd.get(), mapping)) {
    known->why = "it is another file than the one that the process had mapped";
    return *known;
  }
  known->fd = std::move(fd);
  const auto elf = elf::ElfFile::open(base::UniqueFd{::fcntl(known->fd.get(), F_DUPFD_CLOEXEC, 0)});
  if (const auto* const file = std::get_if<elf::ElfFile>(&elf)) {
    std::ranges::copy_if(
        file->segments(), std::back_inserter(known->constants),
        [](const elf::Segment& segment) { return segment.is_load() && !segment.writable(); });
  }
  return *known;
}

std::variant<base::UniqueFd, procfs::NotOpened> CoreImage::open(
    const procfs::Mapping& mapping) const {
  if (mapping.inode == 0) {
    return procfs::NotOpened{"the mapping has no file"};
  }
  const auto& file = file_of(mapping);
  if (!file.fd.valid()) {
    return procfs::NotOpened{file.why};
  }
  base::UniqueFd copy{::fcntl(file.fd.get(), F_DUPFD_CLOEXEC, 0)};
  if (!copy.valid()) {
    throw base::SystemError{"cannot copy a descriptor", errno};
  }
  return copy;
}

bool CoreImage::read(base::RemoteAddress from, std::span<std::byte> into) const {
  while (!into.empty()) {
    const auto* const mapping = procfs::find_mapping(mappings_, from);
    if (mapping == nullptr) {
      return false;
    }
    const auto left = mapping->end.value() - from.value();
    const auto part = into.first(std::min<std::uint64_t>(into.size(), left));
    if (!read_part(from, part)) {
      return false;
    }
    into = into.subspan(part.size());
    from = from + part.size();
  }
  return true;
}

bool CoreImage::read_part(base::RemoteAddress from, std::span<std::byte> into) const {
  const auto* const segment = core_.find(from);
  if (segment != nullptr) {
    const auto at = from.value() - segment->address.value();
    const auto held = at < segment->file_size ? segment->file_size - at : 0;
    const auto part = into.first(std::min<std::uint64_t>(into.size(), held));
    if (!part.empty() && !core_.read(*segment, from, part)) {
      return false;  // the core is truncated
    }
    into = into.subspan(part.size());
    from = from + part.size();
  }
  if (into.empty()) {
    return true;
  }
  const auto* const mapping = procfs::find_mapping(mappings_, from);
  if (mapping == nullptr || mapping->inode == 0 || mapping->writable) {
    return false;
  }
  const auto& file = file_of(*mapping);
  const auto offset = mapping->offset + (from.value() - mapping->begin.value());
  const bool constant = std::ranges::any_of(file.constants, [&](const elf::Segment& part) {
    return is_within(offset, into.size(), part);
  });
  return constant && read_file_at(file.fd.get(), offset, into);
}

}  // namespace pyinject::inspect
