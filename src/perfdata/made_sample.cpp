// perf_event_open(2), "PERF_RECORD_SAMPLE": the order of a sample's fields.
#include "perfdata/limits.hpp"
#include "perfdata/sample.hpp"

#include <bit>
#include <span>

namespace pyinject::perfdata {

namespace {

constexpr std::uint64_t kAux = 1U << 20U;      // PERF_SAMPLE_AUX, linux 5.5
constexpr std::uint64_t kHwIndex = 1U << 17U;  // PERF_SAMPLE_BRANCH_HW_INDEX

class FieldWriter {
 public:
  FieldWriter(const Event& event, std::vector<std::byte>& into) : event_{event}, into_{into} {}

  template <typename Value>
  void add(Value value) {
    const auto bytes = std::as_bytes(std::span{&value, 1});
    into_.insert(into_.end(), bytes.begin(), bytes.end());
  }
  void word_if(std::uint64_t bit, std::uint64_t value = 0) {
    if (event_.samples(bit)) {
      add(value);
    }
  }
  void pair_if(std::uint64_t bit, std::uint32_t first, std::uint32_t second) {
    if (event_.samples(bit)) {
      add(first);
      add(second);
    }
  }

 private:
  const Event& event_;
  std::vector<std::byte>& into_;
};

// struct read_format: the size of a group without members, or of a single value.
std::size_t words_of_read(std::uint64_t format) {
  const auto fields = [format](std::uint64_t bits) {
    return static_cast<std::size_t>(std::popcount(format & bits));
  };
  const auto times = fields(PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
  return (format & PERF_FORMAT_GROUP) != 0 ? 1 + times
                                           : 1 + times + fields(PERF_FORMAT_ID | PERF_FORMAT_LOST);
}

}  // namespace

MadeSample::MadeSample(const Event& event, const Facts& facts) {
  const std::uint64_t id = event.ids.empty() ? 0 : event.ids.front();
  FieldWriter before{event, before_chain_};
  before.word_if(PERF_SAMPLE_IDENTIFIER, id);
  before.word_if(PERF_SAMPLE_IP, facts.ip);
  before.pair_if(PERF_SAMPLE_TID, facts.pid, facts.tid);
  before.word_if(PERF_SAMPLE_TIME, facts.time);
  before.word_if(PERF_SAMPLE_ADDR);
  before.word_if(PERF_SAMPLE_ID, id);
  before.word_if(PERF_SAMPLE_STREAM_ID, id);
  before.pair_if(PERF_SAMPLE_CPU, ~std::uint32_t{0}, 0);
  before.word_if(PERF_SAMPLE_PERIOD, 1);
  if (event.samples(PERF_SAMPLE_READ)) {
    before_chain_.resize(before_chain_.size() + kWord * words_of_read(event.attr.read_format));
  }
  FieldWriter between{event, between_};
  between.pair_if(PERF_SAMPLE_RAW, sizeof(std::uint32_t), 0);  // size of the raw data, and the data
  if (event.samples(PERF_SAMPLE_BRANCH_STACK)) {
    between.add(std::uint64_t{0});
    if ((event.attr.branch_sample_type & kHwIndex) != 0) {  // perf reads hw_idx
      between.add(~std::uint64_t{0});
    }
  }
  FieldWriter behind{event, behind_};
  if (!event.has_user_stacks()) {  // otherwise Output removes them
    behind.word_if(PERF_SAMPLE_REGS_USER, PERF_SAMPLE_REGS_ABI_NONE);
    behind.word_if(PERF_SAMPLE_STACK_USER);
  }
  behind.word_if(PERF_SAMPLE_WEIGHT);
  behind.word_if(PERF_SAMPLE_WEIGHT_STRUCT);
  behind.word_if(PERF_SAMPLE_DATA_SRC);
  behind.word_if(PERF_SAMPLE_TRANSACTION);
  behind.word_if(PERF_SAMPLE_REGS_INTR, PERF_SAMPLE_REGS_ABI_NONE);
  behind.word_if(PERF_SAMPLE_PHYS_ADDR);
  behind.word_if(PERF_SAMPLE_CGROUP);
  behind.word_if(PERF_SAMPLE_DATA_PAGE_SIZE);
  behind.word_if(PERF_SAMPLE_CODE_PAGE_SIZE);
  behind.word_if(kAux);
  sample_.event = &event;
  sample_.misc = facts.misc;
  sample_.ip = facts.ip;
  sample_.time = facts.time;
  sample_.pid = facts.pid;
  sample_.tid = facts.tid;
  sample_.before_chain = before_chain_;
  sample_.between = between_;
  sample_.behind = behind_;
}

}  // namespace pyinject::perfdata
