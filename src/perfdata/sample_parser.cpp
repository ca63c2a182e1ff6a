#include "perfdata/sample_parser.hpp"

#include "base/byte_cursor.hpp"
#include "perfdata/limits.hpp"

#include <bit>
#include <cstring>
#include <initializer_list>

namespace pyinject::perfdata {
using base::ByteCursor;

namespace {

constexpr std::uint64_t kBranchSize = 24;  // from, to, flags
constexpr std::uint64_t kBranchHwIndex = 1U << 17U;
constexpr std::uint64_t kBranchCounters = 1U << 19U;  // PERF_SAMPLE_BRANCH_COUNTERS, linux 6.8

// Skips COUNT elements of SIZE bytes.
void skip(ByteCursor& cursor, std::uint64_t count, std::uint64_t size) {
  count > cursor.left().size() ? cursor.fail() : void(cursor.take(count * size));
}

class SampleParser {
 public:
  SampleParser(const Event& event, const Record& record)
      : event_{event}, bytes_{record.bytes}, cursor_{record.bytes} {}

  // HW_INDEX: whether a branch stack without branches has a hw_idx.
  bool parse(Sample& out, bool hw_index) {
    cursor_.take(sizeof(perf_event_header));
    parse_identity(out);
    skip_words({PERF_SAMPLE_ADDR, PERF_SAMPLE_ID, PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU});
    parse_period(out);
    parse_read(out);
    out.before_chain = bytes_.first(offset()).subspan(sizeof(perf_event_header));
    parse_chain(out);
    auto start = offset();
    skip_raw();
    skip_branches(hw_index);
    out.between = bytes_.subspan(start, offset() - start);
    start = offset();
    parse_registers(out);
    parse_stack(out);
    out.behind = bytes_.subspan(event_.has_user_stacks() ? offset() : start);
    skip_rest();
    return !cursor_.failed();
  }
  // Whether the sample ends exactly where its record does.
  [[nodiscard]] bool exact() const { return cursor_.at_end(); }

 private:
  // A failed cursor has nothing left, so this is the end.
  [[nodiscard]] std::size_t offset() const { return bytes_.size() - cursor_.left().size(); }
  std::uint64_t word() { return cursor_.number<std::uint64_t>(); }
  void skip_words(std::initializer_list<std::uint64_t> bits) {
    for (const auto bit : bits) {
      if (event_.samples(bit)) {
        word();
      }
    }
  }

  void parse_identity(Sample& out) {
    skip_words({PERF_SAMPLE_IDENTIFIER});
    out.ip = event_.samples(PERF_SAMPLE_IP) ? word() : 0;
    const bool task = event_.samples(PERF_SAMPLE_TID);
    out.pid = task ? cursor_.number<std::uint32_t>() : 0;
    out.tid = task ? cursor_.number<std::uint32_t>() : 0;
    out.time = event_.samples(PERF_SAMPLE_TIME) ? word() : 0;
  }

  void parse_period(Sample& out) {
    const auto& attributes = event_.attr;
    out.period = event_.samples(PERF_SAMPLE_PERIOD) ? word()
                 : attributes.freq != 0             ? 1
                                                    : attributes.sample_period;
  }

  // struct read_format.
  void parse_read(Sample& out) {
    out.group.clear();
    if (!event_.samples(PERF_SAMPLE_READ)) {
      return;
    }
    const auto format = event_.attr.read_format;
    const auto fields = [format](std::uint64_t bits) {
      return static_cast<std::uint64_t>(std::popcount(format & bits));
    };
    const auto times = fields(PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
    const auto value = 1 + fields(PERF_FORMAT_ID | PERF_FORMAT_LOST);
    const bool group = (format & PERF_FORMAT_GROUP) != 0;
    const auto count = group ? word() : 1;
    skip(cursor_, times, kWord);
    if (!group || (format & PERF_FORMAT_ID) == 0) {
      skip(cursor_, count, value * kWord);
      return;
    }
    for (std::uint64_t i = 0; i < count && !cursor_.failed(); ++i) {
      Sample::Counter counter;
      counter.value = word();
      counter.id = word();
      skip(cursor_, value - 2, kWord);
      out.group.push_back(counter);
    }
  }

  void parse_chain(Sample& out) {
    out.chain.clear();
    if (!event_.samples(PERF_SAMPLE_CALLCHAIN)) {
      return;
    }
    const auto count = word();
    if (count > cursor_.left().size() / kWord) {
      cursor_.fail();
      return;
    }
    const auto addresses = cursor_.take(count * kWord);
    out.chain.resize(count);
    if (count != 0) {
      std::memcpy(out.chain.data(), addresses.data(), addresses.size());
    }
  }

  void skip_raw() {
    if (event_.samples(PERF_SAMPLE_RAW)) {
      cursor_.take(cursor_.number<std::uint32_t>());
    }
  }

  void skip_branches(bool hw_index) {
    if (!event_.samples(PERF_SAMPLE_BRANCH_STACK)) {
      return;
    }
    const auto count = word();
    if ((event_.attr.branch_sample_type & kBranchHwIndex) != 0 && (count != 0 || hw_index)) {
      word();
    }
    skip(cursor_, count, kBranchSize);
    if ((event_.attr.branch_sample_type & kBranchCounters) != 0) {
      skip(cursor_, count, kWord);
    }
  }

  // Parses the ABI and the values of MASK; data with an unknown ABI has an unknown size.
  std::uint64_t registers_abi() {
    const auto abi = word();
    if (abi > PERF_SAMPLE_REGS_ABI_64) {
      cursor_.fail();
    }
    return abi;
  }

  void parse_registers(Sample& out) {
    out.register_abi = 0;
    out.register_mask = 0;
    if (!event_.samples(PERF_SAMPLE_REGS_USER)) {
      return;
    }
    out.register_abi = registers_abi();
    if (out.register_abi == PERF_SAMPLE_REGS_ABI_NONE) {
      return;
    }
    out.register_mask = event_.attr.sample_regs_user;
    for (auto mask = out.register_mask; mask != 0; mask &= mask - 1) {
      out.registers.at(static_cast<std::size_t>(std::countr_zero(mask))) = word();
    }
  }

  void parse_stack(Sample& out) {
    out.stack = {};
    out.stack_asked = 0;
    if (!event_.samples(PERF_SAMPLE_STACK_USER)) {
      return;
    }
    out.stack_asked = word();
    if (out.stack_asked == 0) {
      return;  // the size of the filled part is missing as well
    }
    const auto dump = cursor_.take(out.stack_asked);
    const auto filled = word();
    filled > dump.size() ? cursor_.fail() : void(out.stack = dump.first(filled));
  }

  void skip_rest() {
    if (event_.samples(PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT)) {
      word();
    }
    skip_words({PERF_SAMPLE_DATA_SRC, PERF_SAMPLE_TRANSACTION});
    if (event_.samples(PERF_SAMPLE_REGS_INTR) && registers_abi() != PERF_SAMPLE_REGS_ABI_NONE) {
      skip(cursor_, static_cast<std::uint64_t>(std::popcount(event_.attr.sample_regs_intr)), kWord);
    }
    skip_words({PERF_SAMPLE_PHYS_ADDR, PERF_SAMPLE_CGROUP, PERF_SAMPLE_DATA_PAGE_SIZE,
                PERF_SAMPLE_CODE_PAGE_SIZE});
  }

  const Event& event_;
  Bytes bytes_;
  ByteCursor cursor_;
};

}  // namespace

bool parse_sample(const Event& event, const Record& record, Sample& out) {
  if (record.type != PERF_RECORD_SAMPLE || record.bytes.size() < sizeof(perf_event_header)) {
    return false;
  }
  out.event = &event;
  out.misc = record.misc;
  // The kernel omits hw_idx if there are no branches; perf reads it anyway. Only the length of the
  // record tells.
  SampleParser without{event, record};
  if (without.parse(out, false) && without.exact()) {
    return true;
  }
  return SampleParser{event, record}.parse(out, true);
}

Bytes payload_of(const Sample& sample) {
  if (sample.event == nullptr || !sample.event->samples(PERF_SAMPLE_RAW)) {
    return {};
  }
  ByteCursor cursor{sample.between};
  return cursor.take(cursor.number<std::uint32_t>());
}

}  // namespace pyinject::perfdata
