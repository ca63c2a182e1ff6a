#include "live/wait_judge.hpp"

#include "base/clock.hpp"
#include "inspect/connection.hpp"
#include "inspect/described_call.hpp"
#include "inspect/process_files.hpp"
#include "procfs/blocked_task.hpp"
#include "procfs/kernel_work.hpp"
#include "python/layout/frame_reading.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace pyinject::live {

using sample::Use;

namespace {

// What threads of a process wait for that are blocked in calls on connections.
class Connections {
 public:
  Connections(base::Pid pid, const memory::MemoryReader& memory)
      : pid_{pid}, memory_{memory}, files_{pid} {}

  // WORK and KERNEL: what the kernel's functions tell of TID, and their names.
  [[nodiscard]] Use use_of(base::Tid tid, Use work, std::span<const std::string> kernel) {
    const auto text = procfs::read_system_call(pid_, tid);
    const auto call = text ? procfs::parse_blocked_call(*text) : std::nullopt;
    if (!call) {
      return work;
    }
    const auto described =
        inspect::describe_call(procfs::continued_call(*call, kernel),
                               {.memory = memory_,
                                .file = [this](int fd) { return files_.describe(fd); },
                                .now = base::read_clock});
    const bool connected = !inspect::peer_of(described.file).empty();
    if (connected && !ports_) {
      ports_.emplace(files_.sockets());
    }
    return inspect::use_of_connection(work, connected,
                                      connected && ports_->accepted(described.file));
  }

 private:
  base::Pid pid_;
  const memory::MemoryReader& memory_;
  inspect::ProcessFiles files_;
  std::optional<inspect::ListeningPorts> ports_;
};

}  // namespace

std::unique_ptr<WaitJudge> WaitJudge::of(const python::Target& target) {
  auto image = std::make_shared<python::RunningProcess>(target.id.pid);
  const auto prepared = python::prepare_frame_reading(target, *image);
  auto objects = python::ObjectReader::of(target, image);
  auto* const readable = std::get_if<python::ObjectReader>(&objects);
  const auto* const reading = std::get_if<python::FrameReading>(&prepared);
  if (readable == nullptr || reading == nullptr) {
    return nullptr;
  }
  return std::unique_ptr<WaitJudge>{new WaitJudge{target.id.pid, std::move(image), reading->layout,
                                                  target.addresses.runtime, std::move(*readable)}};
}

WaitJudge::WaitJudge(base::Pid pid, std::shared_ptr<const python::ProcessImage> image,
                     const python::RuntimeLayout& layout, base::RemoteAddress runtime,
                     python::ObjectReader objects)
    : pid_{pid},
      image_{std::move(image)},
      memory_{image_->memory()},
      layout_{layout},
      gils_{*memory_, layout_, runtime, image_->thread_numbers()},
      objects_{std::move(objects)} {}

bool WaitJudge::waits_for_gil(base::Tid tid) const {
  const auto call = procfs::read_system_call(pid_, tid);
  const auto futex = call ? procfs::parse_futex_wait(*call) : std::nullopt;
  return futex && std::ranges::any_of(gils_.gils(), [&](const inspect::Gil& gil) {
           return gil.contains_futex(*futex);
         });
}

std::map<base::Tid, Use> WaitJudge::judge(std::span<const base::Tid> tids,
                                          std::span<const python::ThreadStack> stacks) {
  std::map<base::Tid, Use> uses;
  Connections connections{pid_, *memory_};
  for (const auto tid : tids) {
    const auto frames = procfs::read_kernel_stack(pid_, tid);
    std::vector<std::string> kernel(frames.size());
    std::ranges::transform(frames, kernel.begin(), &procfs::KernelFrame::name);
    const auto use =
        procfs::kernel_work(std::vector<std::string_view>{kernel.begin(), kernel.end()}).use;
    uses[tid] = use == Use::kSignal                         ? Use::kSleep
                : use == Use::kNetwork || use == Use::kPoll ? connections.use_of(tid, use, kernel)
                                                            : use;
  }
  std::vector<python::ThreadStack> by_objects;
  std::ranges::copy_if(stacks, std::back_inserter(by_objects), [&](const auto& stack) {
    const auto use = uses.find(stack.tid);
    return use != uses.end() && use->second == Use::kFutex;
  });
  if (by_objects.empty()) {
    return uses;
  }
  for (const auto& wait : objects_.waits(by_objects)) {
    uses[wait.waiter] = python::is_lock(wait.kind) ? Use::kLock : Use::kThread;
  }
  gils_.update();
  for (const auto& stack : by_objects) {
    auto& use = uses[stack.tid];
    use = use == Use::kFutex && waits_for_gil(stack.tid) ? Use::kGil : use;
  }
  return uses;
}

}  // namespace pyinject::live
