// An alleged perf.data file, read and rewritten.
#include "base/file.hpp"
#include "fuzz/fuzz.hpp"
#include "perfdata/output.hpp"
#include "perfdata/record_writer.hpp"
#include "pyinject/weave/symbol_image.hpp"

#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

namespace pyinject::fuzz {
namespace {

using perfdata::Record;
using perfdata::Sample;

// Decompressed data may be a thousand times as long.
constexpr std::size_t kMostRecords = 3000;

std::optional<perfdata::Input> open(base::UniqueFd file, bool unfinished = false) {
  auto opened = perfdata::Input::open(std::move(file), "input", unfinished);
  if (const auto* const why = std::get_if<perfdata::UnsupportedFile>(&opened)) {
    require(!why->why.empty() && is_printable(why->why), "the reason is plain text");
    return std::nullopt;
  }
  return std::get<perfdata::Input>(std::move(opened));
}

void any_record(const perfdata::Input& input, const Record& record) {
  require(record.bytes.size() >= sizeof(perf_event_header) && record.bytes.size() < 65536,
          "a record has a size");
  require(reinterpret_cast<std::uintptr_t>(record.bytes.data()) % 8 == 0, "records are aligned");
  require(input.position() <= input.size(), "positions are inside the file");
  const auto size = record.bytes.size();
  const auto mapping = perfdata::parse_mapping(record);
  require(!mapping || (mapping->file.size() < size && mapping->build_id.size() <= 20),
          "what a mapping says is in its record");
  const auto command = perfdata::parse_command(record);
  require(!command || command->name.size() < size, "a name is in its record");
  (void)perfdata::parse_task(record);
  const auto deferred = perfdata::parse_deferred_chain(record);
  require(!deferred || deferred->addresses.size() * 8 < size, "a chain is in its record");
  (void)input.time_of(record);
  (void)input.thread_of(record);
}

void any_sample(const Record& record, const Sample& sample) {
  const auto* const begin = record.bytes.data();
  const auto* const end = begin + record.bytes.size();
  for (const auto part : {sample.before_chain, sample.between, sample.stack, sample.behind}) {
    require(part.empty() || (part.data() >= begin && part.data() + part.size() <= end),
            "parts of a sample are in its record");
  }
  require(sample.stack.size() <= sample.stack_asked, "not more of the stack than was asked for");
  std::vector<std::byte> again;
  const bool whole = perfdata::make_sample(sample, sample.chain, again);
  if (sample.event->has_user_stacks()) {
    require(again.size() < record.bytes.size(), "without its stack it is shorter");
  } else {
    require(!whole || std::ranges::equal(again, record.bytes),
            "a sample is written as it was read");
  }
}

constexpr std::uint64_t kPeriod = 4711;

// Drops unreadable samples. SWITCH_PERIODS: all context switch samples get the period kPeriod.
base::UniqueFd rewrite(perfdata::Input& input, bool switch_periods) {
  auto file = file_with({});
  perfdata::Output output{
      file.get(), input,
      switch_periods ? &perfdata::Event::samples_each_switch : perfdata::Output::TakesPeriod{}};
  Sample sample;
  std::uint64_t position = 0;
  for (std::size_t i = 0; i < kMostRecords; ++i) {
    const auto record = input.next();
    if (!record) {
      break;
    }
    require(input.position() >= position, "the reader goes on");
    position = input.position();
    any_record(input, *record);
    const auto* const event = input.event_of(*record);
    if (input.parse(*record, sample)) {
      any_sample(*record, sample);
      (void)output.write_sample(sample, sample.chain, kPeriod);
    } else if (record->type != PERF_RECORD_SAMPLE || event == nullptr ||
               !(event->has_user_stacks() || event->defers_user_chains() ||
                 (switch_periods && event->samples_each_switch()))) {
      output.write(*record);
    }
  }
  require(is_printable(input.damage()), "what is wrong is told in plain text");
  output.finish({});
  return file;
}

std::string contents(const base::UniqueFd& file) {
  require(::lseek(file.get(), 0, SEEK_SET) == 0, "a file has a beginning");
  return base::read_fd(file.get(), std::size_t{1} << 30U, "a memfd");
}

}  // namespace

void run(Input input) {
  const auto bytes = input.rest();
  auto file = open(file_with(bytes));
  if (!file) {
    file = open(file_with(bytes), true);
  }
  if (!file) {
    return;
  }
  for (const auto& image : file->features().images()) {
    const auto id = weave::proven_build_id(image);
    require(id.empty() || id.size() == 20, "a build-id is a SHA-1");
  }
  for (const auto& gap : perfdata::sentences(file->features().target_gaps())) {
    require(is_printable(gap), "what targets hid is told in plain text");
  }
  const bool switch_periods = file->events().size() % 2 != 0;
  auto first = rewrite(*file, switch_periods);
  const auto text = contents(first);
  auto again = open(std::move(first));
  if (!again) {
    return;  // nothing was readable: not a recording
  }
  require(again->events().size() == file->events().size(), "events stay");
  for (const auto& event : again->events()) {
    require(!event.has_user_stacks(), "user stacks are gone");
    require(!event.defers_user_chains(), "nothing is deferred");
  }
  const auto second = rewrite(*again, switch_periods);
  require(!again->damaged(), "what we write is good");
  require(contents(second) == text, "what was rewritten is rewritten as it is");
}

}  // namespace pyinject::fuzz
