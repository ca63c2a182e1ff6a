#include "weave/weaver.hpp"

#include "pyinject/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <iterator>

#include <sys/mman.h>

namespace pyinject::weave {

namespace {

using perfdata::Record;

constexpr std::uint64_t kUserMark = PERF_CONTEXT_USER;
constexpr std::chrono::milliseconds kBetweenReports{100};
constexpr int kMostAncestors = 64;

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const auto byte : bytes) {
    text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  }
  return text;
}

bool is_anonymous_code(const perfdata::Mapping& mapping) {
  return (mapping.protection & PROT_EXEC) != 0 && mapping.file.starts_with("//anon");
}

}  // namespace

Weaver::Weaver(const WeaveOptions& options, const Knowledge& knowledge, unwind::FileFinder& files,
               perfdata::Input& input)
    : options_{options},
      knowledge_{knowledge},
      input_{input},
      maps_{spaces_,
            [this](unwind::ProcessNumber pid) {
              return knowledge_.open_map ? knowledge_.open_map(pid) : base::UniqueFd{};
            }},
      objects_{files},
      unwinder_{spaces_, objects_, maps_} {
  summary_.bytes_before = input_.size();
}

bool Weaver::go_on(double part) {
  const auto now = std::chrono::steady_clock::now();
  if (!options_.progress || now < told_ + kBetweenReports) {
    return true;
  }
  told_ = now;
  return options_.progress(part, summary_.samples);
}

// --- first pass: what was mapped where

bool Weaver::learn() {
  // Most of a file is samples: they are passed over quickly.
  constexpr double kShare = 0.2;
  while (const auto record = input_.next()) {
    learn_from(*record);
    if (!go_on(kShare * static_cast<double>(input_.position()) /
               static_cast<double>(std::max<std::uint64_t>(input_.size(), 1)))) {
      return false;
    }
  }
  spaces_.complete();
  adopt_orphans();
  choose_base();
  for (const auto& file : spaces_.files()) {
    if (file.executable && file.path.starts_with("//anon") &&
        has_names(file.mapped_by, file.begin, file.end)) {
      named_[file.mapped_by].push_back({.begin = file.begin, .end = file.end});
    }
  }
  return true;
}

void Weaver::learn_from(const Record& record) {
  if (record.type == PERF_RECORD_SAMPLE) {
    learn_from_sample(record);
    return;
  }
  if (auto mapping = perfdata::parse_mapping(record)) {
    if (mapping->pid == ~std::uint32_t{0} ||
        (record.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL) {
      return;
    }
    std::uint64_t end = 0;
    if (__builtin_add_overflow(mapping->start, mapping->size, &end)) {
      return;
    }
    processes_.insert(mapping->pid);
    if (mapping->size == SyntheticNames::kSize && mapping->page_offset == mapping->start) {
      names_of_before_.insert(mapping->start);
    }
    spaces_.map(input_.time_of(record).value_or(0), mapping->pid,
                {.begin = mapping->start,
                 .end = end,
                 .offset = mapping->page_offset,
                 .executable = (mapping->protection & PROT_EXEC) != 0,
                 .path = std::move(mapping->file),
                 .device_major = mapping->major,
                 .device_minor = mapping->minor,
                 .inode = mapping->inode,
                 .build_id = hex(mapping->build_id)});
  } else if (record.type == PERF_RECORD_FORK) {
    const auto task = perfdata::parse_task(record);
    if (task && task->time == 0) {
      introduced_.insert(task->pid);  // perf's own, for what was there before (-a)
    } else if (task && task->pid != task->parent_pid) {
      spaces_.fork(task->time, task->parent_pid, task->pid);
      introduced_.insert(task->pid);
      forked_.insert_or_assign(
          task->pid,
          ForkedThread{.pid = task->parent_pid, .tid = task->parent_tid, .time = task->time});
    }
  } else if (record.type == PERF_RECORD_LOST) {
    ++summary_.losses;
  } else if (const auto command = perfdata::parse_command(record); command) {
    introduced_.insert(command->pid);
    if (!command->exec) {
      return;
    }
    spaces_.exec(input_.time_of(record).value_or(0), command->pid);
    forked_.erase(command->pid);
  }
}

void Weaver::learn_from_sample(const Record& record) {
  constexpr std::size_t kEnough = 8;
  if (!input_.parse(record, sample_) || introduced_.contains(sample_.pid)) {
    return;
  }
  auto& seen = orphans_[sample_.pid];
  if (seen.size() < kEnough &&
      (sample_.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER) {
    seen.push_back(sample_.ip);
  }
}

// A process that was forked after perf had opened its events and before these told of forks, or of
// whose fork the record was lost: the child of the one that has code where it was seen. No two have
// theirs at the same addresses.
void Weaver::adopt_orphans() {
  constexpr std::size_t kMostTries = 1'000'000;  // a made-up file has any number of both
  std::size_t tries = 0;
  for (const auto& [pid, seen] : orphans_) {
    tries += processes_.size();
    if (introduced_.contains(pid) || seen.empty() || tries > kMostTries) {
      continue;
    }
    std::uint32_t parent = 0;
    std::ptrdiff_t most = 0;
    for (const auto candidate : processes_) {
      const auto known = std::ranges::count_if(seen, [&](std::uint64_t address) {
        const auto* const file = spaces_.find(candidate, ~std::uint64_t{0}, address);
        return file != nullptr && file->executable;
      });
      if (known > most && candidate != pid && introduced_.contains(candidate)) {
        most = known;
        parent = candidate;
      }
    }
    if (most > 0) {
      spaces_.fork(0, parent, pid);
      adopted_.emplace(pid, parent);
    }
  }
  orphans_.clear();
  spaces_.complete();
}

// The highest range that no process has anything in; user addresses of x86-64 end at 2^47. A file
// that leaves none is made up: it gets any.
void Weaver::choose_base() {
  constexpr auto kSize = SyntheticNames::kSize;
  constexpr std::uint64_t kHighest = std::uint64_t{0x4000} << 32U;
  std::vector<AddressRange> used;
  std::ranges::transform(spaces_.files(), std::back_inserter(used), [](const auto& file) {
    return AddressRange{.begin = file.begin, .end = file.end};
  });
  std::ranges::sort(used, std::greater{}, &AddressRange::end);
  std::uint64_t base = kHighest;
  for (const auto& range : used) {
    if (range.end <= base) {
      break;
    }
    if (range.begin < base + kSize) {
      const auto below = range.begin / kSize * kSize;
      if (below <= kSize) {
        base = kHighest;
        break;
      }
      base = below - kSize;
    }
  }
  synthetic_.emplace(base);
}

bool Weaver::has_names(std::uint32_t pid, std::uint64_t begin, std::uint64_t end) const {
  const auto& symbols = maps_.of(pid);
  const auto at = std::ranges::lower_bound(symbols, begin, {}, &MapSymbol::start);
  return at != symbols.end() && at->start < end;
}

// --- second pass

bool Weaver::rewrite(int fd) {
  input_.rewind();
  perfdata::Output output{fd, input_};
  std::ranges::copy_if(processes_, std::inserter(unnamed_, unnamed_.end()),
                       [this](std::uint32_t pid) { return !spaces_.origin(pid); });
  constexpr double kBefore = 0.2;
  while (const auto record = input_.next()) {
    write(output, *record);
    if (!go_on(kBefore + (1 - kBefore) * static_cast<double>(input_.position()) /
                             static_cast<double>(std::max<std::uint64_t>(input_.size(), 1)))) {
      return false;
    }
  }
  output.finish(make_images());
  summary_.bytes_after = output.size();
  summary_.damage = input_.damage();
  return true;
}

// Behind a process's first mapping: a COMM or FORK record of perf's own may be in front of that, by
// which perf forgets what it knew. Those that were forked while it was recorded inherit it.
void Weaver::name_range(perfdata::Output& output, std::uint32_t pid) {
  if (unnamed_.erase(pid) == 0) {
    return;
  }
  perfdata::Mapping mapping;
  mapping.pid = mapping.tid = pid;
  mapping.start = synthetic_->range().begin;
  mapping.size = SyntheticNames::kSize;
  mapping.page_offset = mapping.start;
  mapping.protection = PROT_READ | PROT_EXEC;
  mapping.file = options_.image_path(0);
  output.write_mapping(mapping);
}

void Weaver::write(perfdata::Output& output, const Record& record) {
  if (record.type == PERF_RECORD_SAMPLE) {
    if (input_.parse(record, sample_)) {
      ++summary_.samples;
      if (const auto adopted = adopted_.extract(sample_.pid); !adopted.empty()) {
        const auto child = adopted.key();
        const auto parent = adopted.mapped();
        output.write_fork(
            {.pid = child, .parent_pid = parent, .tid = child, .parent_tid = parent, .time = 0});
      }
      write_sample(output);
    } else if (const auto* const event = input_.event_of(record);
               event != nullptr && !event->has_user_stacks()) {
      output.write(record);
    }
    return;
  }
  const auto mapping = perfdata::parse_mapping(record);
  if (mapping && record.type == PERF_RECORD_MMAP2 && is_anonymous_code(*mapping) &&
      has_names(mapping->pid, mapping->start, mapping->start + mapping->size)) {
    write_renamed(output, record, *mapping);
  } else {
    output.write(record);
  }
  if (mapping) {
    name_range(output, mapping->pid);
  }
}

// The same record, at the same time, of the image with the names instead of anonymous memory.
void Weaver::write_renamed(perfdata::Output& output, const Record& record,
                           const perfdata::Mapping& mapping) {
  constexpr std::size_t kFile = 72;  // perf_event_open(2): what lies before the name
  constexpr std::size_t kPageOffset = 32;
  constexpr std::size_t kIdentity = 40;
  constexpr std::size_t kIdentityBytes = 24;
  constexpr std::size_t kWord = 8;
  constexpr std::size_t kMostRecord = 65528;  // its size is a number of 16 bits, and whole words
  const auto padded = [](std::size_t size) { return (size / kWord + 1) * kWord; };
  const auto old_name = padded(mapping.file.size());
  const auto name = options_.image_path(mapping.pid);
  if (record.bytes.size() < kFile + old_name) {
    output.write(record);
    return;
  }
  std::vector<std::byte> bytes(kFile + padded(name.size()), std::byte{0});
  std::memcpy(bytes.data(), record.bytes.data(), kFile);
  std::memcpy(bytes.data() + kPageOffset, &mapping.start, sizeof mapping.start);
  std::memset(bytes.data() + kIdentity, 0, kIdentityBytes);
  std::memcpy(bytes.data() + kFile, name.data(), name.size());
  const auto trailer = record.bytes.subspan(kFile + old_name);
  if (bytes.size() + trailer.size() > kMostRecord) {
    output.write(record);
    return;
  }
  bytes.insert(bytes.end(), trailer.begin(), trailer.end());
  perf_event_header header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  header.size = static_cast<std::uint16_t>(bytes.size());
  header.misc = static_cast<std::uint16_t>(header.misc & ~PERF_RECORD_MISC_MMAP_BUILD_ID);
  std::memcpy(bytes.data(), &header, sizeof header);
  output.write({.type = record.type, .misc = header.misc, .bytes = bytes});
}

void Weaver::write_sample(perfdata::Output& output) {
  const auto user =
      std::find(sample_.chain.rbegin(), sample_.chain.rend(), kUserMark).base();  // behind it
  const bool has_user = user != sample_.chain.begin();
  result_.assign(sample_.chain.begin(), has_user ? user : sample_.chain.end());
  const bool copied = sample_.event->has_user_stacks();
  registers_.clear();
  chain_.assign(has_user ? user : sample_.chain.end(), sample_.chain.end());
  if (copied && sample_.register_abi != PERF_SAMPLE_REGS_ABI_NONE) {
    chain_.clear();
    unwind_user_part(chain_);
    if (!has_user) {
      result_.push_back(kUserMark);
    }
  }
  if (!copied) {
    drop_unmapped(chain_);
  }
  add_python(chain_, !copied);
  summary_.longest = std::max(summary_.longest, result_.size());
  if (!output.write_sample(sample_, result_)) {
    ++summary_.limited;
  }
}

// Where frame pointers end the kernel takes what it finds for some more. What a file has got that
// is woven for a second time is mapped in none of its processes.
void Weaver::drop_unmapped(std::vector<std::uint64_t>& chain) const {
  const auto was_named = [this](std::uint64_t address) {
    const auto behind = names_of_before_.upper_bound(address);
    return behind != names_of_before_.begin() &&
           address - *std::prev(behind) < SyntheticNames::kSize;
  };
  while (chain.size() > 1 && spaces_.settled_since(sample_.pid) && !was_named(chain.back()) &&
         spaces_.find(sample_.pid, sample_.time, chain.back()) == nullptr) {
    chain.pop_back();
  }
}

void Weaver::unwind_user_part(std::vector<std::uint64_t>& chain) {
  ++summary_.unwound;
  const auto registers = unwind::from_perf(sample_.registers, sample_.register_mask);
  if (sample_.register_abi != PERF_SAMPLE_REGS_ABI_64 || !registers) {
    if (registers) {
      chain.push_back(registers->pc());
    }
    mark(chain, {.end = unwind::EndOfStack::kNoInformation});
    return;
  }
  stack_ = {.begin = registers->sp(),
            .bytes = sample_.stack,
            .cut = sample_.stack.size() >= sample_.stack_asked};
  mark(chain, unwinder_.unwind(sample_.pid, sample_.time, *registers, stack_, chain, &registers_));
}

// A stack that is not whole says so, at its root.
void Weaver::mark(std::vector<std::uint64_t>& chain, const unwind::Unwound& unwound) {
  summary_.by_frame_pointer += unwound.by_frame_pointer > 0 ? 1 : 0;
  std::string name;
  switch (unwound.end) {
    case unwind::EndOfStack::kWhole:
      return;
    case unwind::EndOfStack::kCut:
      ++summary_.cut;
      name = "[truncated: stack dump]";
      break;
    case unwind::EndOfStack::kLimit:
      ++summary_.limited;
      name = fmt::format("[truncated: {} frames]", unwind::kMostFrames);
      break;
    case unwind::EndOfStack::kNoInformation:
      ++summary_.no_information;
      name = fmt::format("[no unwind info: {}]", unwound.file == nullptr
                                                     ? "unknown memory"
                                                     : base::printable(unwound.file->path));
      break;
    case unwind::EndOfStack::kBroken:
      ++summary_.broken;
      name = fmt::format("[broken stack: {}]", unwound.file == nullptr
                                                   ? "unknown memory"
                                                   : base::printable(unwound.file->path));
      break;
  }
  if (spaces_.settled_since(sample_.pid)) {  // else perf knows no names in that process
    chain.push_back(synthetic_->address(name));
  }
}

// --- Python frames

const std::vector<AddressRange>* Weaver::evaluator_of(std::uint32_t pid) const {
  for (int depth = 0; depth < kMostAncestors; ++depth) {
    if (const auto found = knowledge_.evaluators.find(pid); found != knowledge_.evaluators.end()) {
      return &found->second;
    }
    const auto origin = spaces_.origin(pid);
    if (!origin) {
      return nullptr;
    }
    pid = origin->parent;
  }
  return nullptr;
}

AddressKind Weaver::kind_of(std::uint64_t address) const {
  const auto* const evaluator = evaluator_of(sample_.pid);
  if (evaluator != nullptr && std::ranges::any_of(*evaluator, [address](const auto& range) {
        return range.begin <= address && address < range.end;
      })) {
    return AddressKind::kEvaluator;
  }
  if (maps_.find(sample_.pid, address)) {
    return AddressKind::kTrampoline;
  }
  // A map that cannot be read does not make a trampoline something else.
  const auto* const file = spaces_.find(sample_.pid, sample_.time, address);
  return file != nullptr && file->executable && file->path.starts_with("//anon")
             ? AddressKind::kTrampoline
             : AddressKind::kOther;
}

// An activation of the evaluator has an entry frame on its C stack, which begins with a code object
// and the address of the Python frame that called it. Else the evaluator itself has its frame's in
// a register.
std::vector<std::uint64_t> Weaver::frames_of(const std::vector<EvaluatorFrame>& evaluators,
                                             std::size_t number) const {
  // _PyInterpreterFrame.previous and .owner (70: 3.12 and 3.13, 74: 3.14 and 3.15), and what owner
  // is of an entry frame.
  constexpr std::uint64_t kPrevious = 8;
  constexpr std::array<std::uint64_t, 2> kOwner{70, 74};
  constexpr std::uint64_t kOfTheStack = 3;
  std::vector<std::uint64_t> words;
  const auto index = [&](std::size_t which) { return evaluators[which].behind - 1; };
  if (number + 1 < evaluators.size() && index(number + 1) + 1 < registers_.size()) {
    const auto inner = index(number + 1);
    const auto end = std::min(registers_[inner + 1].sp(), stack_.begin + stack_.bytes.size());
    for (auto at = std::max(registers_[inner].sp(), stack_.begin); at < end; at += sizeof at) {
      const auto is_entry = std::ranges::any_of(kOwner, [&](std::uint64_t owner) {
        return (stack_.word_at(at - kPrevious + owner).value_or(0) & 0xffU) == kOfTheStack;
      });
      if (is_entry) {
        words.push_back(stack_.word_at(at).value_or(0));
      }
    }
  } else if (number + 1 == evaluators.size() && index(number) < registers_.size()) {
    for (std::size_t i = 0; i < unwind::kRegisters; ++i) {
      if (const auto value = registers_[index(number)].get(i)) {
        words.push_back(*value);
      }
    }
  }
  return words;
}

// A forked child goes on with the stack of the thread that forked it.
std::vector<PythonFrame> Weaver::python_of(StackQuery query) const {
  for (int depth = 0; depth < kMostAncestors; ++depth) {
    if (auto frames = knowledge_.stacks->at(query); !frames.empty()) {
      return frames;
    }
    const auto forked = forked_.find(query.pid);
    if (query.tid != query.pid || forked == forked_.end()) {
      return {};
    }
    query.pid = forked->second.pid;
    query.tid = forked->second.tid;
    query.time = std::min(query.time, forked->second.time);
  }
  return {};
}

void Weaver::add_python(std::span<const std::uint64_t> chain, bool by_frame_pointer) {
  if (knowledge_.stacks == nullptr || chain.empty() || evaluator_of(sample_.pid) == nullptr) {
    result_.insert(result_.end(), chain.begin(), chain.end());
    return;
  }
  kinds_.clear();
  std::ranges::transform(chain, std::back_inserter(kinds_),
                         [this](std::uint64_t address) { return kind_of(address); });
  const auto evaluators = evaluators_of(kinds_);
  const auto plain = plain_ones(evaluators);
  const bool hidden =
      by_frame_pointer && plain == evaluators.size() && kinds_.front() == AddressKind::kOther;
  const StackQuery query{.pid = sample_.pid,
                         .tid = sample_.tid,
                         .time = sample_.time,
                         .evaluators = evaluators.size(),
                         .plain = plain,
                         .one_may_be_hidden = hidden,
                         .frames_of = [&](std::size_t n) { return frames_of(evaluators, n); }};
  const auto added = merge(
      chain, evaluators, python_of(query), hidden,
      [&](const PythonFrame& frame) { return address_of(frame, query); }, result_);
  summary_.extended += added > 0 ? 1 : 0;
}

// That of its trampoline, if it has got one since: then perf counts both as one function.
std::uint64_t Weaver::address_of(const PythonFrame& frame, const StackQuery& query) {
  const CodeName* name = nullptr;
  auto pid = query.pid;
  for (int depth = 0; name == nullptr && depth < kMostAncestors; ++depth) {
    name = knowledge_.stacks->name(pid, frame.code);
    if (const auto forked = forked_.find(pid); forked != forked_.end()) {
      pid = forked->second.pid;
    }
  }
  if (name == nullptr) {
    return synthetic_->address("py::[unknown]");
  }
  auto text =
      fmt::format("py::{}:{}", base::printable(name->qualname), base::printable(name->file));
  if (options_.lines && frame.line != 0) {
    return synthetic_->address(fmt::format("{}:{}", text, frame.line));
  }
  if (const auto* const trampoline = maps_.trampoline(query.pid, text)) {
    return trampoline->start + 1;
  }
  return synthetic_->address(text);
}

// --- names

std::vector<perfdata::BuildId> Weaver::make_images() {
  std::vector<perfdata::BuildId> ids;
  const auto add = [&](std::uint32_t pid, std::span<const ImageSymbol> symbols,
                       std::span<const AddressRange> ranges) {
    auto image = make_symbol_image(symbols, ranges);
    auto path = options_.image_path(pid);
    ids.push_back({.id = image.build_id, .file = path});
    summary_.images.push_back({.path = std::move(path), .image = std::move(image)});
  };
  for (const auto& [pid, ranges] : named_) {
    std::vector<ImageSymbol> symbols;
    for (const auto& symbol : maps_.of(pid)) {
      symbols.push_back(
          {.address = symbol.start, .size = symbol.size, .name = base::printable(symbol.name)});
    }
    add(pid, symbols, ranges);
  }
  if (!synthetic_->symbols().empty()) {
    add(0, synthetic_->symbols(), std::array{synthetic_->range()});
  }
  return ids;
}

}  // namespace pyinject::weave
