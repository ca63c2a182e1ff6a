// Keeps the unwind tables of recorded processes current while they map files, fork and exec.
#pragma once

#include "bpf/native_tables.hpp"
#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/watch/process_watch.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace pyinject::record {

// A process is scanned when it has mapped a file or executed a program, and when a sample has hit
// code in an unknown mapping. Scans take at most a tenth of a processor.
class NativeRefresh {
 public:
  // TABLES must outlive this object.
  NativeRefresh(bpf::NativeTables& tables, base::Logger& logger);
  NativeRefresh(const NativeRefresh&) = delete;
  NativeRefresh& operator=(const NativeRefresh&) = delete;

  // Scans PID at once; from now on, it and the children that it forks are kept current.
  // Thread-safe.
  void add(base::Pid pid) { (void)tables_.scan(pid); }
  // Scans all other processes of this machine until CANCEL is; from now on, they and those that
  // start later are kept current. Call it before the first refresh().
  void add_all(const base::Cancellation& cancel);
  // A sample of PID hit code in an unknown mapping.
  void ask(base::Pid pid);

  // Readable if refresh() has something to do; call it a few times a second anyway.
  [[nodiscard]] int fd() const { return watch_->fd(); }
  void refresh();
  // How long until the next scan is due, at most MOST.
  [[nodiscard]] std::chrono::milliseconds until_due(std::chrono::milliseconds most) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    Clock::time_point due;
    bool asked = false;  // by a sample only
  };
  void note(const watch::ProcessEvent& event);
  void want(base::Pid pid, Clock::time_point due, bool asked);

  bpf::NativeTables& tables_;
  std::unique_ptr<watch::ProcessWatch> watch_;
  std::unordered_map<std::int32_t, Waiting> waiting_;         // by pid
  std::unordered_map<std::int32_t, unsigned> asked_in_vain_;  // how often, by pid
  Clock::time_point pause_until_{};
  bool all_ = false;
};

}  // namespace pyinject::record
