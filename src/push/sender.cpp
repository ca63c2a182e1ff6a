#include "push/sender.hpp"

#include "base/format.hpp"
#include "base/text.hpp"
#include "push/quiet_thread.hpp"

#include <fmt/format.h>

#include <exception>

namespace pyinject::push {

using base::Deadline;

namespace {

constexpr std::chrono::seconds kAfterAnError{60};  // of this machine, such as a full disk

}  // namespace

Sender::Sender(const Destination& destination, const Credentials& credentials,
               const ClientTimes& times, const BackoffTimes& backoff, Spool& spool,
               LiveCounts& counts, base::Logger& logger)
    : name_{destination.name()},
      store_{*destination.store},
      url_{destination.place},
      spool_{spool},
      counts_{counts},
      logger_{logger},
      client_{credentials, times},
      backoff_{backoff} {
  thread_ = start_quiet_thread([this] { run(); });
}

Sender::~Sender() {
  finish(Deadline::after({}));
  join();
}

void Sender::wake() {
  {
    const std::lock_guard lock{mutex_};
    fresh_ = true;
  }
  changed_.notify_all();
}

void Sender::finish(Deadline deadline) {
  {
    const std::lock_guard lock{mutex_};
    end_ = end_ ? end_->earlier(deadline) : deadline;
  }
  changed_.notify_all();
}

void Sender::join() {
  if (thread_.joinable()) {
    thread_.join();
  }
}

bool Sender::must_give_up() {
  const std::lock_guard lock{mutex_};
  return end_ && end_->expired();
}

bool Sender::wait_for_turn() {
  std::unique_lock lock{mutex_};
  while (true) {
    if (end_ && (end_->expired() || (due_ && due_->when() > end_->when()))) {
      return false;
    }
    if (due_ && !due_->expired()) {
      changed_.wait_until(lock, due_->when());
    } else if (due_ || fresh_) {
      due_.reset();
      fresh_ = false;
      return true;
    } else if (end_) {
      return false;
    } else {
      changed_.wait(lock);
    }
  }
}

void Sender::run() {
  while (wait_for_turn()) {
    try {
      if (const auto entry = spool_.take(name_)) {
        send(*entry);
      }
    } catch (const std::exception& error) {
      logger_.error("--push {}: {}", name_, error.what());
      const std::lock_guard lock{mutex_};
      due_ = Deadline::after(kAfterAnError);
    }
  }
}

void Sender::send(const SpoolEntry& entry) {
  const auto answer = client_.send(url_, entry.request, [this] { return must_give_up(); });
  const auto verdict = judge(answer, store_.retries);
  if (verdict == Verdict::kTryAgain) {
    spool_.put_back(entry.id);
    if (must_give_up()) {
      return;
    }
    ++counts_.retried;
    const double share =
        static_cast<double>(random_()) / static_cast<double>(decltype(random_)::max());
    const auto next = backoff_.next(answer.retry_after, share);
    note_failure(answer.why, next);
    const std::lock_guard lock{mutex_};
    due_ = Deadline::after(next);
    return;
  }
  const bool accepted = verdict == Verdict::kAccepted;
  const auto remark = accepted && store_.remark != nullptr ? store_.remark(answer.body) : Remark{};
  spool_.remove(entry.id, accepted && remark.rejected == 0 ? counts_.pushed : counts_.dropped);
  const bool again = backoff_.failures() != 0;
  backoff_.reset();
  if (accepted) {
    note_accepted(remark, again);
  } else {
    logger_.warning("--push {}: the server refused a profile, which is dropped: {}", name_,
                    answer.why);
  }
  wake();  // there may be more
}

void Sender::note_accepted(const Remark& remark, bool again) {
  if (again) {
    logger_.info("--push {}: the server takes profiles again", name_);
  }
  if (remark.rejected != 0) {
    logger_.warning("--push {}: the server rejected {} of a request, which is dropped{}{}", name_,
                    base::counted(remark.rejected, "profile"), remark.text.empty() ? "" : ": ",
                    remark.text);
  } else if (!remark.text.empty()) {
    logger_.debug("--push {}: the server says: {}", name_, remark.text);
  }
}

void Sender::note_failure(const std::string& why, std::chrono::milliseconds next) {
  const auto text = fmt::format("--push {}: {}; {} in the spool, next attempt in {:.1f} s", name_,
                                why, base::counted(spool_.count(name_), "profile"),
                                std::chrono::duration<double>{next}.count());
  if (backoff_.failures() == 1) {
    logger_.warning("{}", text);
  } else {
    logger_.debug("{}", text);
  }
}

}  // namespace pyinject::push
