// Sends the entries of the spool that are for one store, oldest first, in a thread of its own.
#pragma once

#include "push/answer.hpp"
#include "push/client.hpp"
#include "push/credentials.hpp"
#include "push/destination.hpp"
#include "push/push_counts.hpp"
#include "push/spool.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/log.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>

namespace pyinject::push {

class Sender {
 public:
  // The references must outlive the sender.
  Sender(const Destination& destination, const Credentials& credentials, const ClientTimes& times,
         const BackoffTimes& backoff, Spool& spool, LiveCounts& counts, base::Logger& logger);
  // Gives up the request that is under way, if any: its entry stays in the spool.
  ~Sender();
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // The spool has a new entry.
  void wake();
  // Ends when the spool has no more entries for it, when the next attempt is due after DEADLINE, or
  // at DEADLINE.
  void finish(base::Deadline deadline);
  // Waits for the end after finish().
  void join();

 private:
  void run();
  // False: the end has come.
  bool wait_for_turn();
  void send(const SpoolEntry& entry);
  // AGAIN: after failures.
  void note_accepted(const Remark& remark, bool again);
  void note_failure(const std::string& why, std::chrono::milliseconds next);
  [[nodiscard]] bool must_give_up();

  std::string name_;
  const Store& store_;
  std::string url_;
  Spool& spool_;
  LiveCounts& counts_;
  base::Logger& logger_;
  Client client_;
  Backoff backoff_;
  std::minstd_rand random_{std::random_device{}()};

  std::mutex mutex_;  // protects the members below
  std::condition_variable changed_;
  bool fresh_ = true;  // there may be entries
  std::optional<base::Deadline> due_;
  std::optional<base::Deadline> end_;
  std::thread thread_;
};

}  // namespace pyinject::push
