#include "targets/target_table.hpp"

#include "procfs/stat.hpp"

#include <algorithm>
#include <utility>

namespace pyinject::targets {

std::optional<ProcessImage> image_of(base::Pid pid) {
  const auto stat = procfs::read_stat(pid);
  if (!stat) {
    return std::nullopt;
  }
  return ProcessImage{.id = {.pid = pid, .start_time = stat->start_time},
                      .stack_begin = stat->stack_begin};
}

bool lives(base::ProcessId id) { return !procfs::has_ended(id); }

std::optional<Late> TargetTable::begin(const ProcessImage& image) {
  const base::Pid pid = image.id.pid;
  const std::scoped_lock lock{mutex_};
  if (pending_.contains(pid)) {
    return Late::kKnown;
  }
  if (const auto settled = settled_.find(pid); settled != settled_.end()) {
    return settled->second.same_as(image) ? Late::kKnown : Late::kDifferentProgram;
  }
  pending_.insert(pid);
  return std::nullopt;
}

void TargetTable::end(base::Pid pid, const std::optional<ProcessImage>& settled) {
  const std::scoped_lock lock{mutex_};
  pending_.erase(pid);
  if (settled) {
    settled_.insert_or_assign(pid, *settled);
  } else {
    settled_.erase(pid);
  }
}

void TargetTable::settle(const ProcessImage& image) {
  const std::scoped_lock lock{mutex_};
  settled_.insert_or_assign(image.id.pid, image);
}

void TargetTable::try_again(base::Pid pid) {
  const std::scoped_lock lock{mutex_};
  settled_.erase(pid);
}

void TargetTable::add(Entry entry) noexcept {
  const std::scoped_lock lock{mutex_};
  active_.splice(active_.end(), entry);
}

void TargetTable::add_left_on(const python::Target& target) {
  const std::scoped_lock lock{mutex_};
  left_on_.push_back(target);
}

ActiveTargets TargetTable::active() const {
  const std::scoped_lock lock{mutex_};
  return {active_.begin(), active_.end()};
}

std::shared_ptr<const ActiveTarget> TargetTable::forget(base::Pid pid) {
  std::unique_lock lock{mutex_};
  turn_ended_.wait(lock, [&] { return announced_ != pid; });
  settled_.erase(pid);
  const auto found =
      std::ranges::find_if(active_, [&](const auto& one) { return one->target.id.pid == pid; });
  if (found == active_.end()) {
    return nullptr;
  }
  auto gone = std::move(*found);
  active_.erase(found);
  return gone;
}

std::vector<python::Target> TargetTable::switched_on() const {
  std::vector<python::Target> targets;
  const std::scoped_lock lock{mutex_};
  for (const auto& one : active_) {
    if (one->activation.before == python::TrampolineState::kOff) {
      targets.push_back(one->target);
    }
  }
  return targets;
}

std::vector<python::Target> TargetTable::take_switched_on() {
  const std::scoped_lock lock{mutex_};
  auto targets = left_on_;
  for (const auto& one : active_) {
    if (one->activation.before == python::TrampolineState::kOff) {
      targets.push_back(one->target);
      one->activation.before = python::TrampolineState::kOnByUs;
    }
  }
  left_on_.clear();
  return targets;
}

TargetTable::Turn::Turn(TargetTable& table) : table_{table} {
  std::unique_lock lock{table_.mutex_};
  table_.turn_ended_.wait(lock, [this] { return !table_.taken_; });
  table_.taken_ = true;
}

TargetTable::Turn::~Turn() {
  const std::scoped_lock lock{table_.mutex_};
  table_.taken_ = false;
  table_.announced_.reset();
  table_.turn_ended_.notify_all();
}

bool TargetTable::Turn::announces(const ActiveTarget& active) {
  const std::scoped_lock lock{table_.mutex_};
  if (std::ranges::none_of(table_.active_, [&](const auto& one) { return one.get() == &active; })) {
    return false;
  }
  table_.announced_ = active.target.id.pid;
  return true;
}

}  // namespace pyinject::targets
