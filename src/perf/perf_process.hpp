// A running `perf record`: its process, its stderr, and its control channel.
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
  kEnded,        // perf has exited in the meantime
  kInterrupted,  // INTERRUPT became readable
  kDeadline,
};

struct SamplingEvent {
  std::string name;
  std::optional<std::uint32_t> type;  // PERF_TYPE_...; nullopt: not reported
  bool operator==(const SamplingEvent&) const = default;
};

// Runs in its own process group: a terminal's Ctrl-C and SIGHUP must not reach it (SIGHUP makes its
// file unusable). If this tool dies, perf gets SIGINT and completes its file. Its stdout is ours,
// because with `-o -` it carries the data.
class PerfProcess {
 public:
  // Fills in COMMAND's descriptors. Throws base::SystemError if perf cannot be started.
  explicit PerfProcess(RecordCommand command);
  // If perf still runs: SIGINT, five seconds to complete the file, then SIGKILL.
  ~PerfProcess();
  PerfProcess(const PerfProcess&) = delete;
  PerfProcess& operator=(const PerfProcess&) = delete;

  // Sends "ping", "enable", "disable" or "stop" and waits for the acknowledgement. The first one
  // arrives when perf is set up, which can take seconds. INTERRUPT: a descriptor that ends the wait
  // when it becomes readable (it is not read), or -1.
  [[nodiscard]] Answer request(std::string_view word, base::Deadline deadline, int interrupt = -1);

  // Enables the events that record mappings, but no sampling. -D -1 disables them as well (perf 6.1
  // to 7.2 with -p, not with -a), and perf would miss memory that becomes executable in the
  // meantime, such as trampolines, and look up no names there. Call it after "ping" was
  // acknowledged.
  [[nodiscard]] Answer enable_side_events(base::Deadline deadline, int interrupt = -1);

  // The sampling events; those known so far if the answer does not arrive.
  [[nodiscard]] std::vector<SamplingEvent> sampling_events(base::Deadline deadline,
                                                           int interrupt = -1);

  [[nodiscard]] base::Pid pid() const { return child_->pid(); }
  [[nodiscard]] int pidfd() const { return child_->pidfd(); }
  // For poll(2); -1 after it was closed.
  [[nodiscard]] int stderr_fd() const { return errors_.get(); }
  // Reads what is available without waiting. perf blocks if its stderr is never read.
  void read_stderr();
  // The last 64 KiB that perf wrote to stderr.
  [[nodiscard]] const std::string& stderr_text() const { return text_; }

  [[nodiscard]] std::optional<base::ExitStatus> try_wait();
  // Keeps reading stderr. nullopt: the deadline passed or INTERRUPT is readable.
  [[nodiscard]] std::optional<base::ExitStatus> wait(base::Deadline deadline, int interrupt = -1);
  // The same after "stop". Returns early if perf is stuck opening a file: perf 6.1 (not 7.2) opens
  // each program with samples to read its build-id, and a target can have put a FIFO there.
  [[nodiscard]] std::optional<base::ExitStatus> wait_for_file(base::Deadline deadline,
                                                              int interrupt = -1);
  [[nodiscard]] bool stuck() const { return stuck_; }
  void send_signal(int signal) const { child_->send_signal(signal); }

 private:
  // EVENTS: the events in the answer.
  Answer ask_for_events(std::string_view word, base::Deadline deadline, int interrupt,
                        std::vector<SamplingEvent>& events);
  Answer send(const std::string& lines, int count, base::Deadline deadline, int interrupt);
  [[nodiscard]] std::string open_call() const;
  void wake_up_threads() const noexcept;
  bool poll_once(base::Deadline deadline, int interrupt, int ack);

  // Kept open until perf exits, here and in perf itself: if its control channel closes while it
  // records, perf stops with status 234 and loses samples. This tool's own recorder completes its
  // file instead.
  base::UniqueFd commands_;
  base::UniqueFd acks_;
  base::UniqueFd errors_;
  std::unique_ptr<base::Child> child_;
  std::string text_;
  bool stuck_ = false;
  int owed_ = 0;  // acknowledgements that have not arrived yet
};

// The sampling events in perf's answer on stderr to the command "evlist -v" or "evlist": one line
// per event, starting with its name.
[[nodiscard]] std::vector<SamplingEvent> sampling_events(std::string_view answer);

}  // namespace pyinject::perf
