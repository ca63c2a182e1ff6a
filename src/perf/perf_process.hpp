// A running `perf record`: its process, what it writes to stderr, and its control channel.
#pragma once

#include "perf/perf_command.hpp"
#include "pyinject/base/child.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::perf {

enum class Answer {
  kAcknowledged,
  kEnded,        // perf has ended meanwhile
  kInterrupted,  // INTERRUPT became readable
  kDeadline,
};

struct SamplingEvent {
  std::string name;
  std::optional<std::uint32_t> type;  // PERF_TYPE_...; nullopt: not told
  bool operator==(const SamplingEvent&) const = default;
};

// In a process group of its own: a terminal's Ctrl-C and SIGHUP must not reach it (a SIGHUP makes
// its file unusable). When this tool dies, perf gets SIGINT and completes its file. Its stdout is
// ours, because that is the data with `-o -`.
class PerfProcess {
 public:
  // COMMAND's descriptors are filled in here. Throws base::SystemError when it cannot be started.
  explicit PerfProcess(RecordCommand command);
  // Still running: SIGINT, five seconds to complete the file, then SIGKILL.
  ~PerfProcess();
  PerfProcess(const PerfProcess&) = delete;
  PerfProcess& operator=(const PerfProcess&) = delete;

  // Sends "ping", "enable", "disable" or "stop" and waits for the acknowledgement. The first one
  // comes when perf is set up, which can take seconds. INTERRUPT: a descriptor that ends the wait
  // when it becomes readable (it is not read), or -1.
  [[nodiscard]] Answer request(std::string_view word, base::Deadline deadline, int interrupt = -1);

  // Enables what records mappings, but no sampling. With -D -1 that is disabled too (perf 6.1 to
  // 7.2 with -p, not with -a), and memory that becomes executable meanwhile, as the trampolines do,
  // would be unknown to perf: it looks up no names there. To be called when "ping" was
  // acknowledged.
  [[nodiscard]] Answer enable_side_events(base::Deadline deadline, int interrupt = -1);

  // Those that sample; as they are known then, if the answer does not come.
  [[nodiscard]] std::vector<SamplingEvent> sampling_events(base::Deadline deadline,
                                                           int interrupt = -1);

  [[nodiscard]] base::Pid pid() const { return child_->pid(); }
  [[nodiscard]] int pidfd() const { return child_->pidfd(); }
  // To be polled; -1 when it has been closed.
  [[nodiscard]] int stderr_fd() const { return errors_.get(); }
  // Takes what there is, without waiting. perf would stand still if nobody did.
  void read_stderr();
  // The last 64 KiB that perf wrote to stderr.
  [[nodiscard]] const std::string& stderr_text() const { return text_; }

  [[nodiscard]] std::optional<base::ExitStatus> try_wait();
  // Goes on reading stderr meanwhile. nullopt: at the deadline, or INTERRUPT is readable.
  [[nodiscard]] std::optional<base::ExitStatus> wait(base::Deadline deadline, int interrupt = -1);
  // The same after "stop". Ends early when perf is stuck in opening one file: perf 6.1 (7.2 no
  // more) opens each program that it saw samples in, to read its build-id, and a target can have
  // put a FIFO there.
  [[nodiscard]] std::optional<base::ExitStatus> wait_for_file(base::Deadline deadline,
                                                              int interrupt = -1);
  [[nodiscard]] bool stuck() const { return stuck_; }
  void send_signal(int signal) const { child_->send_signal(signal); }

 private:
  // EVENTS: those of the answer.
  Answer ask_for_events(std::string_view word, base::Deadline deadline, int interrupt,
                        std::vector<SamplingEvent>& events);
  Answer send(const std::string& lines, int count, base::Deadline deadline, int interrupt);
  [[nodiscard]] std::string open_call() const;
  bool poll_once(base::Deadline deadline, int interrupt, int ack);

  // Kept open until perf has ended, here and in perf itself: a control channel that closes while
  // perf records makes it stop with status 234 and lose samples.
  base::UniqueFd commands_;
  base::UniqueFd acks_;
  base::UniqueFd errors_;
  std::unique_ptr<base::Child> child_;
  std::string text_;
  bool stuck_ = false;
  int owed_ = 0;  // acknowledgements that have not come yet
};

// The events that sample, as perf answers the command "evlist -v" on stderr, or "evlist": a line
// for each, with its name at the front.
[[nodiscard]] std::vector<SamplingEvent> sampling_events(std::string_view answer);

}  // namespace pyinject::perf
