// A recording, the perf map, a mapped file and the Python frames of a target, all controlled by it.
#include "elf/elf_file.hpp"
#include "fuzz/fuzz.hpp"
#include "weave/weaver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include <unistd.h>

namespace pyinject::fuzz {
namespace {

using perfdata::Sample;

// Returns this file for every mapping.
class OneFile : public unwind::FileFinder {
 public:
  explicit OneFile(std::span<const std::byte> bytes) : bytes_{bytes} {}
  [[nodiscard]] std::vector<base::UniqueFd> candidates(
      const unwind::MappedFile& /*file*/) override {
    std::vector<base::UniqueFd> files;
    files.push_back(file_with(bytes_));
    return files;
  }

 private:
  std::span<const std::byte> bytes_;
};

// The same frames for every thread, which may be more groups than evaluators; sometimes none.
// WHOLE: the frames are complete.
class AnyFrames : public weave::StackSource {
 public:
  AnyFrames(std::span<const std::byte> bytes, bool whole) : whole_{whole} {
    for (const auto byte : bytes) {
      const auto value = std::to_integer<std::uint64_t>(byte);
      frames_.push_back({.activation = value * 16,
                         .code = value & 0x0fU,
                         .line = static_cast<std::uint32_t>(value >> 6U),
                         .outermost = (value & 0x10U) != 0});
    }
  }
  [[nodiscard]] sample::Stack at(const weave::StackQuery& query) override {
    require(query.plain <= query.evaluators, "plain activations are activations");
    for (std::size_t i = 0; i < std::min<std::size_t>(query.evaluators, 4); ++i) {
      (void)query.frames_of(i);
    }
    if (query.time % 8 == 7) {
      return {};
    }
    return {.frames = query.time % 8 == 6 ? std::vector<sample::Frame>{} : frames_,
            .whole = whole_,
            .truncated = query.time % 4 == 3,
            .gil = static_cast<sample::Gil>(query.time % 4),
            .task = query.time % 4 == 2 ? "\x1b[1m" : ""};
  }
  [[nodiscard]] const sample::Code* name(std::uint32_t pid, std::uint64_t code) const override {
    return (pid ^ code) % 4 == 0 ? nullptr : &name_;
  }
  void each_name(const std::function<void(const sample::Code& name, std::uint32_t last_line)>& call)
      const override {
    call(name_, kLastLine);
  }
  [[nodiscard]] bool has_every_sample() const override { return whole_; }

 private:
  static constexpr std::uint32_t kLastLine = 3;
  bool whole_;
  std::vector<sample::Frame> frames_;
  sample::Code name_{.qualname = "f\n\x1b", .file = "\xff.py", .first_line = 1};
};

using Identity = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t, std::uint32_t>;

std::vector<Identity> samples_of(perfdata::Input& input) {
  std::vector<Identity> samples;
  Sample sample;
  while (const auto record = input.next()) {
    if (input.parse(*record, sample)) {
      samples.emplace_back(sample.time, sample.ip, sample.pid, sample.tid);
    }
  }
  input.rewind();
  return samples;
}

}  // namespace

void run(Input input) {
  const auto pid = input.take<std::uint32_t>();
  const auto evaluator = input.take<std::uint64_t>();
  const auto evaluator_size = input.take<std::uint32_t>();
  const auto map_size = input.take<std::uint16_t>();
  const auto elf_size = input.take<std::uint16_t>();
  const auto frames_size = input.take<std::uint16_t>();
  const auto map = input.take_bytes(map_size);
  const auto elf = input.take_bytes(elf_size);
  const bool whole = evaluator_size % 2 != 0;
  AnyFrames frames{input.take_bytes(frames_size), whole};
  auto opened = perfdata::Input::open(file_with(input.rest()), "input");
  auto* const file = std::get_if<perfdata::Input>(&opened);
  if (file == nullptr) {
    return;
  }
  const auto before = samples_of(*file);
  const weave::WeaveOptions options{
      .input = "input",
      .output = "output",
      .flags = {.lines = evaluator % 2 != 0,
                .gil = whole,
                .tasks = whole,
                .off_cpu = evaluator % 4 >= 2},
      .ended_at = evaluator,
      .most_entries = elf_size % 128U,
      .image_path = [](std::uint32_t whose) { return fmt::format("/images/python-{}", whose); }};
  const weave::RecordingContext context{
      .stacks = frames_size == 0 ? nullptr : &frames,
      .interpreters = {{pid,
                        {{.evaluator = {{.begin = evaluator, .end = evaluator + evaluator_size}},
                          .frame_pointers = elf_size % 2 == 0,
                          .seen = elf_size % 4 < 2 ? std::optional<std::uint64_t>{evaluator}
                                                   : std::nullopt}}}},
      .entry_frames = {{.previous = 8, .owner = 70, .owner_value = 3},
                       {.previous = 8, .owner = 74, .owner_value = 3}},
      .open_map = [map](std::uint32_t) {
        auto text = file_with(map);
        require(::lseek(text.get(), 0, SEEK_SET) == 0, "a file has a beginning");
        return text;
      }};
  OneFile files{elf};
  auto woven = file_with({});
  weave::Weaver weaver{options, context, files, *file};
  require(weaver.learn() && weaver.rewrite(woven.get()), "nobody cancels it");
  const auto summary = weaver.take_summary();
  require(summary.samples == before.size(), "every sample is counted");
  require(is_printable(summary.damage), "what is wrong is told in plain text");
  for (const auto& image : summary.images) {
    require(std::holds_alternative<elf::ElfFile>(elf::ElfFile::open(file_with(image.image.bytes))),
            "an image can be read");
  }
  auto again = perfdata::Input::open(std::move(woven), "output");
  auto* const result = std::get_if<perfdata::Input>(&again);
  if (result == nullptr) {
    require(before.empty(), "with samples it is a recording");
    return;
  }
  require(result->size() <= summary.bytes_after, "the size is told");
  for (const auto& event : result->events()) {
    require(!event.has_user_stacks(), "user stacks are gone");
    require(!event.defers_user_chains(), "nothing is deferred");
  }
  require(samples_of(*result) == before, "every sample is there, at its time, in its thread");
  require(!result->damaged(), "what we write is good");
}

}  // namespace pyinject::fuzz
