#include "recorder/recorder.hpp"

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "perf/tracefs.hpp"
#include "perfdata/byte_writer.hpp"
#include "perfdata/corrected_header.hpp"
#include "perfdata/identity.hpp"
#include "perfdata/record.hpp"
#include "procfs/kernel_code.hpp"
#include "pyinject/base/error.hpp"
#include "recorder/attributes.hpp"
#include "recorder/compressor.hpp"
#include "recorder/data_file.hpp"
#include "recorder/features.hpp"
#include "recorder/open_events.hpp"
#include "recorder/options.hpp"
#include "recorder/recorded_files.hpp"
#include "recorder/synthesis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <future>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace pyinject::recorder {

namespace {

using perfdata::Bytes;

constexpr int kUsage = 129;
constexpr int kFailure = 255;
// Milliseconds: what is lost at most if this process is killed. A ring that is half full is read at
// once.
constexpr int kMostInRings = 1000;

void say(std::string_view line) {
  const auto text = fmt::format("{}\n", line);
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

// Those that end a recording.
sigset_t ending_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  return set;
}

// By which records tell their event.
std::vector<perfdata::Event> identities(std::span<const OpenEvent> events) {
  std::vector<perfdata::Event> result;
  for (const auto& event : events) {
    result.push_back({.attr = event.attr, .raw = {}, .ids = event.ids});
  }
  return result;
}

class Recorder {
 public:
  Recorder(const Options& options, OpenEvents events, std::span<const std::string> command_line)
      : options_{options},
        events_{std::move(events)},
        command_line_{command_line},
        file_{options.output},
        identities_{identities(events_.events())} {
    if (options.compression != 0) {
      compressor_.emplace(options.compression);
    }
  }

  // Returns the signal that ended it; 0: it was told to stop.
  int run();

 private:
  void begin();
  void finish();
  // False: there was nothing.
  bool take_records();
  void tell_losses();
  void take(Bytes records);
  [[nodiscard]] Bytes corrected(Bytes record, const perf_event_header& header);
  void write(Bytes records);
  void take_commands();
  void obey(std::string_view command, std::vector<bool>& enabled);
  void list_events(bool with_types) const;

  const Options& options_;
  OpenEvents events_;
  std::span<const std::string> command_line_;
  DataFile file_;
  std::optional<Compressor> compressor_{};
  std::vector<perfdata::Event> identities_;
  perfdata::EventIndex index_{identities_};
  std::vector<std::byte> joined_;  // both pieces of a ring
  std::vector<std::byte> copy_;
  RecordedFiles files_;
  Synthesis synthesis_{perfdata::sample_id_size(events_.events().front().attr), files_,
                       options_.chains == Options::Chains::kCopiedStacks,
                       [this](Bytes record) { file_.write(record); }};
  // Takes 40 ms; the first samples need not wait for it. Invalid: in the file.
  std::future<procfs::KernelCode> kernel_;
  perfdata::ClockData clocks_;
  std::uint64_t samples_ = 0;
  std::uint64_t first_time_ = 0;
  std::uint64_t last_time_ = 0;
  std::string commands_;  // the begin of a line
  bool stopped_ = false;
};

void Recorder::begin() {
  file_.begin(events_.events());
  if (options_.clock) {
    clocks_ = {.clock = static_cast<std::uint32_t>(*options_.clock),
               .wall_time = base::now_by(CLOCK_REALTIME),
               .clock_time = base::now_by(*options_.clock)};
  }
  // Without another thread, get() runs it.
  kernel_ = std::async(std::launch::async | std::launch::deferred, procfs::read_kernel_code);
  synthesis_.processes(options_.cgroup ? std::vector<pid_t>{} : options_.pids);
  file_.flush();
  if (!options_.begins_disabled) {
    for (auto& event : events_.events()) {
      OpenEvents::set(event, true);
    }
  }
}

void Recorder::write(Bytes records) {
  if (compressor_ && !records.empty()) {
    compressor_->write(records, file_);
  } else {
    file_.write(records);
  }
}

// Returns RECORD, or a correct copy of it.
Bytes Recorder::corrected(Bytes record, const perf_event_header& header) {
  const perfdata::Record found{.type = header.type, .misc = header.misc, .bytes = record};
  if (const auto correct = perfdata::corrected_header(found, identities_, index_)) {
    copy_.assign(record.begin(), record.begin() + correct->size);
    std::memcpy(copy_.data(), &*correct, sizeof *correct);
    return copy_;
  }
  return record;
}

// Writes them with correct headers, counts samples, and notes their times and the mapped files.
void Recorder::take(Bytes records) {
  std::size_t written = 0;
  perf_event_header header{};
  for (std::size_t offset = 0; offset + sizeof header <= records.size(); offset += header.size) {
    std::memcpy(&header, &records[offset], sizeof header);
    if (header.size < sizeof header || header.size > records.size() - offset) {
      break;
    }
    const auto record = records.subspan(offset, header.size);
    if (header.type == PERF_RECORD_SAMPLE) {
      if (record.size() >= kTimeInSample + sizeof last_time_) {
        std::uint64_t time = 0;
        std::memcpy(&time, &record[kTimeInSample], sizeof time);
        first_time_ = samples_ == 0 ? time : std::min(first_time_, time);
        last_time_ = std::max(last_time_, time);
        ++samples_;
      }
      continue;
    }
    const auto correct = corrected(record, header);
    if (correct.data() != record.data()) {
      write(records.subspan(written, offset - written));
      write(correct);
      written = offset + header.size;
    }
    if (header.type == PERF_RECORD_MMAP2 && options_.build_ids) {
      perf_event_header head{};
      std::memcpy(&head, correct.data(), sizeof head);
      if (const auto mapping =
              perfdata::parse_mapping({.type = head.type, .misc = head.misc, .bytes = correct})) {
        files_.add(*mapping);
      }
    }
  }
  write(records.subspan(written));
}

bool Recorder::take_records() {
  bool any = false;
  for (auto& ring : events_.rings()) {
    const auto pieces = ring.records();
    if (pieces[0].empty()) {
      continue;
    }
    any = true;
    if (pieces[1].empty()) {
      take(pieces[0]);
    } else {
      joined_.assign(pieces[0].begin(), pieces[0].end());
      joined_.insert(joined_.end(), pieces[1].begin(), pieces[1].end());
      take(joined_);
    }
    ring.release();
  }
  if (kernel_.valid() && kernel_.wait_for(std::chrono::seconds{0}) != std::future_status::timeout) {
    synthesis_.kernel(kernel_.get());
  }
  if (any && !kernel_.valid()) {
    // Readers sort the records up to here: all later ones are younger than those of the round
    // before (linux, tools/perf/util/ordered-events.c). Before they look at the first, they must
    // know the kernel's code.
    const perf_event_header round{
        .type = perfdata::kFinishedRound, .misc = 0, .size = sizeof(perf_event_header)};
    file_.write(std::as_bytes(std::span{&round, 1}));
  }
  if (any) {
    file_.flush();
  }
  return any;
}

void Recorder::list_events(bool with_types) const {
  for (const auto& event : events_.events()) {
    if (event.sampling) {
      say(with_types ? fmt::format("{}: type: {}, config: {:#x}", event.name,
                                   std::uint32_t{event.attr.type}, std::uint64_t{event.attr.config})
                     : event.name);
    }
  }
}

// ENABLED: of each event, after the commands so far.
void Recorder::obey(std::string_view command, std::vector<bool>& enabled) {
  const auto blank = std::min(command.find(' '), command.size());
  const auto word = command.substr(0, blank);
  const auto name = base::trim(command.substr(blank));
  if (word == "stop") {
    stopped_ = true;
  } else if (word == "evlist") {
    list_events(!name.empty());
  } else if (word == "enable" || word == "disable") {
    const auto& events = events_.events();
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (events[i].sampling && (name.empty() || events[i].name == name)) {
        enabled[i] = word == "enable";
      }
    }
  }
}

// Commands that arrive together take effect together: "enable", then "disable cpu-clock" samples
// nothing.
void Recorder::take_commands() {
  std::array<char, 4096> buffer{};
  const ssize_t got = ::read(options_.commands, buffer.data(), buffer.size());
  if (got <= 0) {
    return;
  }
  commands_.append(buffer.data(), static_cast<std::size_t>(got));
  auto& events = events_.events();
  std::vector<bool> enabled;
  std::ranges::transform(events, std::back_inserter(enabled), &OpenEvent::enabled);
  std::string answers;
  for (auto end = commands_.find('\n'); end != std::string::npos; end = commands_.find('\n')) {
    obey(std::string_view{commands_}.substr(0, end), enabled);
    commands_.erase(0, end + 1);
    answers.append("ack\n\0", 5);
  }
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i].enabled != enabled[i]) {
      OpenEvents::set(events[i], enabled[i]);
    }
  }
  if (options_.answers >= 0 && !answers.empty()) {
    [[maybe_unused]] const auto written = ::write(options_.answers, answers.data(), answers.size());
  }
}

// The kernel tells losses in a ring with the next record that fits, which may never come; and the
// events count theirs. As perf does, since 6.1: without a time, and with the event's id.
void Recorder::tell_losses() {
  std::vector<std::byte> record;
  for (const auto& event : events_.events()) {
    for (const auto& fd : event.fds) {
      struct {
        std::uint64_t value, id, lost;
      } counts{};
      if (!event.sampling || ::read(fd.get(), &counts, sizeof counts) != sizeof counts ||
          counts.lost == 0) {
        continue;
      }
      perfdata::ByteWriter writer{record, PERF_RECORD_LOST_SAMPLES, 0};
      writer.number(counts.lost);
      writer.zeros(perfdata::sample_id_size(event.attr) - sizeof counts.id);
      writer.number(counts.id);
      writer.finish();
      file_.write(record);
    }
  }
}

void Recorder::finish() {
  for (auto& event : events_.events()) {
    OpenEvents::set(event, false);
  }
  if (kernel_.valid()) {
    synthesis_.kernel(kernel_.get());
  }
  while (take_records()) {
  }
  tell_losses();
  RecordingFacts facts{.command_line = command_line_,
                       .events = events_.events(),
                       .first_time = first_time_,
                       .last_time = last_time_,
                       .clock = options_.clock,
                       .begin = clocks_};
  if (options_.build_ids) {
    facts.build_ids = files_.build_ids();
    const auto notes = base::read_file("/sys/kernel/notes").value_or("");
    auto kernel = kernel_build_id(std::as_bytes(std::span{notes}));
    if (!kernel.empty()) {
      facts.build_ids.push_back({.id = std::move(kernel), .file = "[kernel.kallsyms]"});
    }
  }
  auto features = make_features(facts);
  if (compressor_) {
    features.push_back(compressor_->feature(events_.rings().front().size()));
  }
  file_.finish(std::move(features));
  constexpr double kMegabyte = 1024.0 * 1024.0;
  say(fmt::format("[ perf record: Captured and wrote {:.3f} MB {} ({} samples) ]",
                  static_cast<double>(file_.size()) / kMegabyte, options_.output, samples_));
}

int Recorder::run() {
  const auto signals = ending_signals();
  const base::UniqueFd signal_fd{::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!signal_fd.valid()) {
    throw base::SystemError{"signalfd", errno};
  }
  begin();
  std::vector<pollfd> polled{{.fd = signal_fd.get(), .events = POLLIN, .revents = 0},
                             {.fd = options_.commands, .events = POLLIN, .revents = 0}};
  for (const auto& ring : events_.rings()) {
    polled.push_back({.fd = ring.fd(), .events = POLLIN, .revents = 0});
  }
  int ended_by = 0;
  while (!stopped_ && ended_by == 0) {
    ::poll(polled.data(), polled.size(), kMostInRings);
    signalfd_siginfo told{};
    if (polled[0].revents != 0 && ::read(signal_fd.get(), &told, sizeof told) == sizeof told) {
      ended_by = static_cast<int>(told.ssi_signo);
    }
    if ((polled[1].revents & POLLIN) != 0) {
      take_commands();
    } else if (polled[1].revents != 0) {
      // The tool has ended. The kernel sends no SIGINT if this program's file has capabilities:
      // prctl(2), PR_SET_PDEATHSIG.
      stopped_ = true;
    }
    take_records();
  }
  finish();
  return ended_by;
}

// Ends this process by SIGNAL, as if it had not been handled.
void end_by(int signal) {
  (void)std::signal(signal, SIG_DFL);
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, signal);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
  (void)::raise(signal);
}

}  // namespace

int record(std::span<const std::string> words, std::span<const std::string> command_line) {
  const auto signals = ending_signals();
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  const auto tracefs = perf::find_tracefs();
  const auto options = parse_options(words, [&tracefs](std::string_view name) {
    return tracefs ? perf::tracepoint_id(*tracefs, name) : std::nullopt;
  });
  if (const auto* const why = std::get_if<std::string>(&options)) {
    say(*why);
    return kUsage;
  }
  try {
    const auto& chosen = std::get<Options>(options);
    auto opened = OpenEvents::open(chosen);
    if (const auto* const why = std::get_if<std::string>(&opened)) {
      say(*why);
      return kFailure;
    }
    auto& events = std::get<OpenEvents>(opened);
    std::ranges::for_each(events.notes(), say);
    Recorder recorder{chosen, std::move(events), command_line};
    if (const int signal = recorder.run(); signal != 0) {
      end_by(signal);
    }
    return 0;
  } catch (const base::Error& error) {
    say(fmt::format("failed to write perf data, error: {}", error.what()));
  }
  return kFailure;
}

}  // namespace pyinject::recorder
