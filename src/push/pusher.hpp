// Sends finished recordings to profile stores while the next ones are made.
#pragma once

#include "push/answer.hpp"
#include "push/client.hpp"
#include "push/credentials.hpp"
#include "push/destination.hpp"
#include "push/labels.hpp"
#include "push/profile_directory.hpp"
#include "push/push_counts.hpp"
#include "push/sender.hpp"
#include "push/series.hpp"
#include "push/spool.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/report/profile.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace pyinject::push {

struct PushOptions {
  std::vector<Destination> destinations;
  Labels labels{};  // the user's, which replace the process's
  Credentials credentials{};
  std::string spool{};  // its directory; not used if all destinations are directories
  std::uint64_t spool_bytes = kSpoolBytes;
  // At the end, one after the other.
  std::chrono::nanoseconds export_patience = std::chrono::seconds{10};
  std::chrono::nanoseconds patience = std::chrono::seconds{5};  // for the servers
  ClientTimes times{};
  BackoffTimes backoff{};
};

// nullopt: the recording FILE cannot be read, after a message.
using ProfileReader = std::function<std::optional<report::Profile>(const std::string& file)>;

class Pusher {
 public:
  // Opens the spool and the directories; what an earlier run left in the spool is sent at once.
  // Throws base::Error. READ, LABELS and LIVE are called in a thread of the
  // pusher.
  Pusher(PushOptions options, ProfileReader read, LabelSource labels, LiveProcesses live,
         base::Logger& logger);
  // Leaves the spool as it is.
  ~Pusher();
  Pusher(const Pusher&) = delete;
  Pusher& operator=(const Pusher&) = delete;

  // The recording FILE is complete. Returns at once.
  void add(const std::string& file);
  // Exports the rest, then sends it, for as long as the options' patience allows.
  void finish();
  [[nodiscard]] PushCounts counts() const;

 private:
  void export_files();
  [[nodiscard]] std::optional<std::string> next_file();
  void export_file(const std::string& file);
  void deliver(const Series& series);
  void spool(const Destination& destination, const Series& series);
  // Of the recordings that are not exported at the DEADLINE, the one at hand still is.
  void stop_exporting(base::Deadline deadline);

  PushOptions options_;
  ProfileReader read_;
  LabelSource labels_;
  LiveProcesses live_;
  base::Logger& logger_;
  LiveCounts counts_;
  std::vector<std::pair<Destination, ProfileDirectory>> directories_;
  std::unique_ptr<Spool> spool_;
  std::vector<std::unique_ptr<Sender>> senders_;

  std::mutex mutex_;  // protects the members below
  std::condition_variable changed_;
  std::deque<std::string> files_;
  bool complete_ = false;  // no more files follow
  std::optional<base::Deadline> end_;
  std::thread exporter_;
};

}  // namespace pyinject::push
