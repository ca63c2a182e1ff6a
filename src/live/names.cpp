#include "live/names.hpp"

#include "base/greenlet_name.hpp"

#include <algorithm>

namespace pyinject::live {

void Names::add(sample::Code code) {
  if (codes_.size() >= kMostNames && !codes_.contains(code.number)) {
    forget_codes();
  }
  const auto [known, fresh] =
      numbers_.try_emplace({code.file, code.first_line, code.qualname}, code.number);
  if (!fresh && known->second != code.number) {
    same_[code.number] = known->second;
  }
  auto& known_code = codes_[code.number];
  known_code.code = std::move(code);
}

void Names::count(std::uint64_t code, std::uint32_t samples) {
  if (const auto known = codes_.find(code); known != codes_.end()) {
    known->second.samples += samples;
  }
}

void Names::forget_codes() {
  std::vector<std::uint32_t> samples;
  samples.reserve(codes_.size());
  for (const auto& [number, known] : codes_) {
    samples.push_back(known.samples);
  }
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::ranges::nth_element(samples, middle);
  std::erase_if(codes_,
                [median = *middle](const auto& each) { return each.second.samples <= median; });
  for (auto& [number, known] : codes_) {
    known.samples /= 2;
  }
  std::erase_if(numbers_, [this](const auto& each) { return !codes_.contains(each.second); });
  std::erase_if(same_, [this](const auto& each) { return !codes_.contains(each.second); });
}

// Whether to look for names of threads or processes that can be forgotten: not each time.
bool Names::makes_room() {
  constexpr std::uint64_t kBetween = 1024;
  return refused_++ % kBetween == 0;
}

void Names::add_thread(std::uint32_t pid, std::uint32_t tid, std::string name,
                       const std::function<bool(std::uint32_t, std::uint32_t)>& in_use) {
  if (threads_.size() >= kMostNames && makes_room()) {
    std::erase_if(threads_, [&in_use](const auto& each) {
      return !in_use(each.first.first, each.first.second);
    });
  }
  if (threads_.size() < kMostNames) {
    threads_[{pid, tid}] = std::move(name);
  }
}

void Names::add_process(std::uint32_t pid, std::string name,
                        const std::function<bool(std::uint32_t)>& in_use) {
  if (processes_.size() >= kMostNames && makes_room()) {
    std::erase_if(processes_, [&in_use](const auto& each) { return !in_use(each.first); });
  }
  if (processes_.size() < kMostNames) {
    processes_[pid] = std::move(name);
  }
}

sample::Frame Names::known_as(sample::Frame frame) const {
  const auto found = same_.find(frame.code);
  frame.code = found == same_.end() ? frame.code : found->second;
  return frame;
}

const sample::Code* Names::code(std::uint64_t number) const {
  const auto known = codes_.find(number);
  return known == codes_.end() ? nullptr : &known->second.code;
}

std::string Names::thread(std::uint32_t pid, std::uint32_t tid) const {
  const auto known = threads_.find({pid, tid});
  return known == threads_.end() ? std::string{} : known->second;
}

std::string Names::process(std::uint32_t pid) const {
  const auto known = processes_.find(pid);
  return known == processes_.end() ? std::string{} : known->second;
}

std::string Names::greenlet_of(const sample::Stack& stack) const {
  base::GreenletName name;
  if (stack.truncated || stack.unreadable) {
    name.add_unknown();
  }
  for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend() && name.open(); ++frame) {
    if (frame->code == sample::kGarbageCollector) {
      continue;
    }
    if (const auto* const known = code(known_as(*frame).code)) {
      name.add(known->qualname, known->file);
    } else {
      name.add_unknown();
    }
  }
  return name.text();
}

// Each task of a server may have a name of its own.
std::uint64_t Names::task_of(const sample::Stack& stack, bool in_greenlet,
                             const std::function<void()>& on_forget) {
  Task task{.pid = stack.pid, .name = stack.task};
  if (in_greenlet && task.name.empty()) {
    task.name = greenlet_of(stack);
    task.kind = TaskKind::kGreenlets;
  }
  if (task.name.empty()) {
    return 0;
  }
  if (tasks_.size() >= kMostNames && !tasks_.find(task)) {
    tasks_ = {};
    on_forget();
  }
  return tasks_.number(std::move(task)) + 1;
}

}  // namespace pyinject::live
