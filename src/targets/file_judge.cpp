#include "targets/file_judge.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

namespace pyinject::targets {

namespace {

constexpr std::size_t kMostOfOneProcess = 4096;
constexpr std::chrono::seconds kPatienceForFile{1};

}  // namespace

void FileJudge::ask(base::Pid pid, const procfs::FileIdentity& file, const std::string& path) {
  const std::scoped_lock lock{mutex_};
  if (ending_.cancelled()) {
    return;
  }
  const Question question{.file = file, .path = path};
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread{[this] { work(); }};
    } catch (const std::system_error&) {
      // No thread available: judge synchronously.
      if (may_hold_interpreter(pid, question)) {
        answer(pid, false);
      }
      return;
    }
  }
  auto& questions = questions_[pid];
  if (questions.size() < kMostOfOneProcess) {
    questions.push_back(question);
    wake_.notify_one();
  }
}

void FileJudge::ended(base::Pid pid) {
  const std::scoped_lock lock{mutex_};
  const auto answered = std::ranges::find(answers_, pid, &Answer::pid);
  if (answered != answers_.end()) {
    answered->ended = true;
    questions_.erase(pid);
    judged_dropped_ = judged_dropped_ || judged_ == pid;
    return;
  }
  if (const auto found = questions_.find(pid); found != questions_.end()) {
    for (auto& question : found->second) {
      question.ended = true;
    }
  }
  judged_ended_ = judged_ended_ || judged_ == pid;
}

void FileJudge::forget(base::Pid pid) {
  const std::scoped_lock lock{mutex_};
  questions_.erase(pid);
  judged_dropped_ = judged_dropped_ || judged_ == pid;
  std::erase_if(answers_, [pid](const Answer& answer) { return answer.pid == pid; });
}

bool FileJudge::may_hold_interpreter(base::Pid pid, const Question& question) {
  try {
    return detector_.may_hold_interpreter(
        pid, question.file, question.path,
        base::Cancellation{ending_, base::Deadline::after(kPatienceForFile)});
  } catch (const std::exception&) {
    return true;  // as for a file that cannot be opened: detection decides
  }
}

void FileJudge::answer(base::Pid pid, bool ended) {
  if (std::ranges::find(answers_, pid, &Answer::pid) == answers_.end()) {
    answers_.push_back({.pid = pid, .ended = ended});
    answered_();
  }
}

std::vector<FileJudge::Answer> FileJudge::take() {
  const std::scoped_lock lock{mutex_};
  return std::exchange(answers_, {});
}

void FileJudge::work() {
  std::unique_lock lock{mutex_};
  base::Pid latest;
  while (true) {
    wake_.wait(lock, [this] { return ending_.cancelled() || !questions_.empty(); });
    if (ending_.cancelled()) {
      return;
    }
    auto turn = questions_.upper_bound(latest);
    turn = turn == questions_.end() ? questions_.begin() : turn;
    latest = judged_ = turn->first;
    const auto question = std::move(turn->second.front());
    turn->second.pop_front();
    if (turn->second.empty()) {
      questions_.erase(turn);
    }
    judged_ended_ = question.ended;
    judged_dropped_ = false;
    lock.unlock();
    const bool may_hold = may_hold_interpreter(latest, question);
    lock.lock();
    if (may_hold && !judged_dropped_) {
      answer(latest, judged_ended_);
      if (judged_ended_) {
        const auto rest = questions_.find(latest);
        if (rest != questions_.end()) {
          std::erase_if(rest->second, [](const Question& one) { return one.ended; });
          if (rest->second.empty()) {
            questions_.erase(rest);
          }
        }
      }
    }
    judged_ = base::Pid{};
  }
}

void FileJudge::stop() {
  {
    const std::scoped_lock lock{mutex_};
    ending_.cancel();
    questions_.clear();
  }
  wake_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

}  // namespace pyinject::targets
