#include "bpf/cold_names.hpp"

#include "python/layout/layout_facts.hpp"
#include "python/stacks/line_table.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace pyinject::bpf {

namespace {

// An unreadable target could produce any number of records.
constexpr std::size_t kMostLeft = 1024;
// Of a process: so many bytes of line tables that the program does not copy are read whole.
constexpr std::uint64_t kMostLongTables = std::uint64_t{32} << 20U;

base::Pid pid_of(const sampled_name_head& head) { return base::Pid{static_cast<int>(head.pid)}; }

bool has_no_name(const sampled_name_head& head) {
  return (head.missing & SAMPLER_MISSING_NAME) != 0;
}

// Offsets are less than the size of the copy: the sampler accepts no others.
base::RemoteAddress pointer_in(std::span<const std::byte> code, std::uint32_t offset) {
  std::uint64_t word = 0;
  std::memcpy(&word, code.subspan(offset).data(), sizeof word);
  return base::RemoteAddress{word};
}

void put(std::vector<std::byte>& record, std::span<const std::byte> bytes) {
  record.insert(record.end(), bytes.begin(), bytes.end());
}

}  // namespace

std::span<const std::byte> ColdNames::complete(std::span<const std::byte> record) {
  sampled_name_head head{};
  if (record.size() < sizeof head) {
    return record;
  }
  std::memcpy(&head, record.data(), sizeof head);
  if (head.kind != SAMPLER_CODE || head.missing == 0) {
    return record;
  }
  const auto outcome = read_all(head);
  if (outcome == Outcome::kRead) {
    return record_;
  }
  if (outcome == Outcome::kNotYet && left_.size() < kMostLeft) {
    left_.push_back(head);
  } else if (has_no_name(head)) {
    ++never_named_;
  }
  return record;
}

void ColdNames::try_again(const std::function<void(std::span<const std::byte>)>& take) {
  std::erase_if(left_, [&](const sampled_name_head& head) {
    const auto outcome = read_all(head);
    if (outcome == Outcome::kRead) {
      take(record_);
    } else if (outcome == Outcome::kGone && has_no_name(head)) {
      ++never_named_;
    }
    return outcome != Outcome::kNotYet;
  });
}

std::uint64_t ColdNames::unnamed() const {
  return never_named_ + static_cast<std::uint64_t>(std::ranges::count_if(left_, has_no_name));
}

// Whether the code object that the program saw is still there, by its constant part.
bool ColdNames::is_there(const sampled_process& process, const sampled_name_head& head,
                         std::span<std::byte> code) const {
  if (!read_(pid_of(head), base::RemoteAddress{head.address}, code) ||
      pointer_in(code, process.type).value() != process.code_type) {
    return false;
  }
  std::uint64_t fingerprint = 0;
  for (std::uint32_t i = 0; i < SAMPLER_CODE_WORDS; ++i) {
    const auto offset = (process.first_line & ~7U) + 8 * i;
    fingerprint = sampler_mix(fingerprint, pointer_in(code, offset).value());
  }
  return fingerprint == head.fingerprint;
}

// Like put_text() of the BPF program.
std::optional<ColdNames::Text> ColdNames::read_text(base::Pid pid, const sampled_process& process,
                                                    base::RemoteAddress text,
                                                    std::size_t most) const {
  std::uint64_t length = 0;
  std::uint32_t state = 0;
  if (!read_(pid, text + process.text_length, std::as_writable_bytes(std::span{&length, 1})) ||
      !read_(pid, text + process.text_state, std::as_writable_bytes(std::span{&state, 1}))) {
    return std::nullopt;
  }
  const auto& form = python::kTextForm;
  state >>= process.text_shift;
  const std::uint32_t width = (state >> form.kind_shift) & form.kind_mask;
  const bool ascii = (state & form.ascii) != 0;
  if ((state & form.compact) == 0 || (width != 1 && width != 2 && width != 4)) {
    return std::nullopt;
  }
  Text result{.bytes = {}, .width = static_cast<std::uint8_t>(width), .cut = length > most / width};
  result.bytes.resize(std::min<std::uint64_t>(length, most / width) * width);
  const auto from = text + (process.ascii_data + (ascii ? 0U : form.utf8_fields));
  return read_(pid, from, result.bytes) ? std::optional{std::move(result)} : std::nullopt;
}

std::optional<std::vector<std::byte>> ColdNames::read_lines(base::Pid pid,
                                                            const sampled_process& process,
                                                            base::RemoteAddress table) {
  std::uint64_t size = 0;
  if (!read_(pid, table + process.item_count, std::as_writable_bytes(std::span{&size, 1}))) {
    return std::nullopt;
  }
  size = std::min<std::uint64_t>(size, python::LineTable::kMostBytes);
  if (size > SAMPLER_MOST_LINES) {
    auto& sum = long_tables_[pid.value()];
    sum += size;
    size = sum > kMostLongTables ? std::uint64_t{SAMPLER_MOST_LINES} : size;
  }
  std::vector<std::byte> lines(size);
  return read_(pid, table + process.bytes_data, lines) ? std::optional{std::move(lines)}
                                                       : std::nullopt;
}

ColdNames::Outcome ColdNames::read_all(sampled_name_head head) {
  const auto pid = pid_of(head);
  const auto process = find_(head.pid);
  std::array<std::byte, SAMPLER_CODE_BYTES> code{};
  if (!process || !is_there(*process, head, code)) {
    return Outcome::kGone;
  }
  const auto name =
      read_text(pid, *process, pointer_in(code, process->qualified_name), SAMPLER_MOST_QUALNAME);
  const auto file =
      read_text(pid, *process, pointer_in(code, process->file_name), SAMPLER_MOST_FILE);
  const auto lines = read_lines(pid, *process, pointer_in(code, process->line_table));
  if (!is_there(*process, head, code)) {  // the data read may belong to another object
    return Outcome::kGone;
  }
  if (!name || !file || !lines) {
    return Outcome::kNotYet;
  }
  head.name_bytes = static_cast<__u32>(name->bytes.size());
  head.name_width = name->width;
  head.name_cut = name->cut ? 1 : 0;
  head.file_bytes = static_cast<__u32>(file->bytes.size());
  head.file_width = file->width;
  head.line_bytes = static_cast<__u32>(lines->size());
  head.missing = 0;
  record_.clear();
  put(record_, std::as_bytes(std::span{&head, 1}));
  put(record_, name->bytes);
  put(record_, file->bytes);
  put(record_, *lines);
  return Outcome::kRead;
}

}  // namespace pyinject::bpf
