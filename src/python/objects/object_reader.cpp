#include "python/objects/object_reader.hpp"

#include "memory/process_memory.hpp"
#include "memory/steady_memory.hpp"
#include "procfs/blocked_task.hpp"
#include "pyinject/base/cancellation.hpp"
#include "python/layout/frame_reading.hpp"
#include "python/layout/object_layout.hpp"
#include "python/layout/stack_owners.hpp"
#include "python/objects/frame_locals.hpp"
#include "python/objects/greenlet_walk.hpp"
#include "python/objects/lock_walk.hpp"
#include "python/objects/remote_objects.hpp"
#include "python/objects/task_walk.hpp"
#include "python/stacks/code_objects.hpp"
#include "python/stacks/live_stacks.hpp"
#include "python/stacks/page_cache.hpp"
#include "python/stacks/thread_list.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>

namespace pyinject::python {

namespace {

using base::RemoteAddress;

constexpr std::size_t kMostPagesAtOnce = 1024;              // half of PageCache::kMostPages
constexpr std::size_t kMostBytes = std::size_t{64} << 20U;  // of tasks, and of names
constexpr int kLooks = 4;
constexpr std::chrono::milliseconds kPatienceForTasks{500};
constexpr std::chrono::milliseconds kPatienceForNames{250};
constexpr std::chrono::milliseconds kPatienceForGreenlets{500};
constexpr std::chrono::milliseconds kPatienceForGreenletsOfStopped{20};
constexpr std::chrono::milliseconds kPatienceForHolders{250};

std::vector<std::uint64_t> values(const std::vector<RemoteAddress>& addresses) {
  std::vector<std::uint64_t> values;
  values.reserve(addresses.size());
  for (const auto address : addresses) {
    values.push_back(address.value());
  }
  return values;
}

// Number of outermost frames that run the same functions in both.
std::size_t equal_outer(const std::vector<RawAwait>& first, const std::vector<RawAwait>& second) {
  const auto differing = std::mismatch(
      first.rbegin(), first.rend(), second.rbegin(), second.rend(),
      [](const RawAwait& a, const RawAwait& b) { return a.frame == b.frame && a.code == b.code; });
  return static_cast<std::size_t>(differing.first - first.rbegin());
}

}  // namespace

class ObjectReader::Impl {
 public:
  Impl(const Target& target, std::shared_ptr<const ProcessImage> image,
       const RuntimeLayout& runtime, const ObjectLayout& objects,
       std::optional<TaskOffsets> offsets, RemoteAddress code_type)
      : image_{std::move(image)},
        pid_{target.id.pid},
        version_{target.version},
        runtime_{target.addresses.runtime},
        memory_{image_->memory()},
        layout_{runtime},
        object_layout_{objects},
        offsets_{offsets},
        threads_{memory_, layout_, runtime_, image_->thread_numbers()},
        pages_{memory_},
        codes_{memory_, layout_.stack, code_type},
        stacks_{image_->memory(), image_->thread_numbers(), layout_, runtime_, code_type} {
    if (!image_->changes()) {
      memory_.set_steady(true);
      stacks_.set_unchanging();
    }
  }

  [[nodiscard]] std::vector<ThreadName> thread_names();
  [[nodiscard]] AsyncTasks tasks();
  [[nodiscard]] SuspendedGreenlets greenlets(std::chrono::milliseconds limit);
  [[nodiscard]] std::vector<Wait> waits(std::span<const ThreadStack> stacks);
  void want_locals(std::optional<base::Deadline> until) { locals_until_ = until; }
  [[nodiscard]] std::vector<std::optional<Locals>> locals(const ThreadStack& stack) const;
  void set_steady(bool steady) {
    steady_ = steady;
    memory_.set_steady(steady);
  }

 private:
  // PATIENCE is for a target that runs.
  [[nodiscard]] base::Deadline deadline(std::chrono::milliseconds patience) const {
    return base::Deadline::after(image_->changes() ? patience : kPatienceForUnchanged);
  }
  void update_threads();
  [[nodiscard]] std::optional<base::Tid> tid_of(std::uint64_t ident) const;
  struct Named {
    std::string name;
    bool by_threading = true;
    bool operator==(const Named&) const = default;
  };
  using Names = std::map<base::Tid, Named>;
  [[nodiscard]] Names names_now(const base::Cancellation& patience);

  // One look at all tasks.
  [[nodiscard]] RawTasks walk(const TaskLayout& layout, const base::Cancellation& patience);
  void look_at_codes(const std::vector<RawAwait>& frames);
  [[nodiscard]] bool knows_codes(const std::vector<RawAwait>& frames) const;
  // NAME_BYTES: those of all frames so far. False: a name is missing.
  [[nodiscard]] bool name_frames(const std::vector<RawAwait>& raw, std::size_t& name_bytes,
                                 std::vector<AsyncFrame>& named) const;
  [[nodiscard]] std::optional<Locals> locals_of(const RemoteObjects& objects, RemoteAddress frame,
                                                RemoteAddress code) const;
  [[nodiscard]] RawGreenlets walk_greenlets(const base::Cancellation& patience);
  // NAME_BYTES: those of all tasks so far.
  [[nodiscard]] AsyncTask finished(const RawTask& raw, bool certain, std::size_t& name_bytes);
  // The frames of a task that runs.
  [[nodiscard]] bool read_running(const RawTask& raw, base::Tid tid, AsyncTask& task);

  [[nodiscard]] std::vector<NamedFrame> named(const ThreadStack& stack);
  [[nodiscard]] std::optional<RawWait> wait_now(const LockWalk& locks,
                                                const std::vector<NamedFrame>& frames,
                                                base::Tid tid);
  // The only thread that is inside `with LOCK:`.
  [[nodiscard]] std::optional<base::Tid> holder(RemoteAddress lock,
                                                std::span<const ThreadStack> stacks,
                                                const std::vector<Wait>& waits,
                                                const base::Cancellation& patience) const;
  void find_holders(std::span<const ThreadStack> stacks, std::vector<Wait>& waits) const;

  std::shared_ptr<const ProcessImage> image_;
  base::Pid pid_;
  Version version_;
  RemoteAddress runtime_;
  memory::SteadyMemory memory_;
  bool steady_ = false;  // the target is stopped
  RuntimeLayout layout_;
  ObjectLayout object_layout_;
  std::optional<TaskOffsets> offsets_;
  ThreadList threads_;
  PageCache pages_;
  CodeObjects codes_;
  LiveStacks stacks_;
  std::vector<RemoteAddress> interpreters_;
  std::unordered_map<std::uint64_t, base::Tid> idents_;  // pthread_self() of each thread
  StackOwners stack_owners_{layout_};
  std::optional<base::Deadline> locals_until_;
};

void ObjectReader::Impl::update_threads() {
  (void)threads_.update();
  idents_.clear();
  stack_owners_.clear();
  interpreters_.clear();
  for (const auto& thread : threads_.threads()) {
    if (const auto ident = memory_.read_value<std::uint64_t>(thread.address + layout_.thread_id)) {
      idents_.emplace(*ident, thread.tid);
      stack_owners_.add(*ident, thread.tid);
      if (thread.tid.value() == pid_.value()) {
        stack_owners_.set_main(thread.tid);
      }
    }
    interpreters_.push_back(thread.interpreter);
  }
  std::ranges::sort(interpreters_);
  interpreters_.erase(std::unique(interpreters_.begin(), interpreters_.end()), interpreters_.end());
}

std::optional<base::Tid> ObjectReader::Impl::tid_of(std::uint64_t ident) const {
  const auto found = idents_.find(ident);
  return ident == 0 || found == idents_.end() ? std::nullopt : std::optional{found->second};
}

// By page: an object takes many small reads.
ObjectReader::Impl::Names ObjectReader::Impl::names_now(const base::Cancellation& patience) {
  const RemoteObjects objects{pages_, layout_.stack, object_layout_};
  pages_.refresh({});
  Names names;
  std::size_t bytes = 0;
  for (const auto interpreter : interpreters_) {
    const auto threading =
        patience.stopped() ? std::nullopt : find_module(objects, interpreter, "threading");
    const auto active = threading ? objects.global(*threading, "_active") : std::nullopt;
    const auto items = active ? objects.items(*active) : std::nullopt;
    for (const auto& [key, thread] : items.value_or(std::vector<RemoteObjects::Item>{})) {
      if (patience.stopped() || bytes > kMostBytes) {
        break;
      }
      if (pages_.size() > kMostPagesAtOnce) {
        pages_.refresh({});
      }
      const auto ident = objects.number(key);
      const auto tid = ident ? tid_of(*ident) : std::nullopt;
      if (!tid || names.contains(*tid) || !objects.is_a(thread, "Thread")) {
        continue;
      }
      const auto at = objects.attribute(thread, "_name");
      if (auto name = at ? objects.text(*at) : std::nullopt) {
        bytes += name->size();
        const auto type = objects.type_name(thread);
        names.emplace(*tid, Named{.name = std::move(*name),
                                  .by_threading = type != "_MainThread" && type != "_DummyThread"});
      }
    }
  }
  return names;
}

std::vector<ThreadName> ObjectReader::Impl::thread_names() {
  const base::Cancellation patience{deadline(kPatienceForNames)};
  update_threads();
  auto before = names_now(patience);
  auto now = names_now(patience);
  for (int attempt = 2; attempt < kLooks && before != now && !patience.stopped(); ++attempt) {
    before = std::exchange(now, names_now(patience));
  }
  std::vector<ThreadName> names;
  for (auto& [tid, named] : now) {
    const auto found = before.find(tid);
    const bool certain = found != before.end() && found->second == named;
    names.push_back({.tid = tid,
                     .name = std::move(named.name),
                     .certain = certain,
                     .by_threading = named.by_threading});
  }
  return names;
}

RawTasks ObjectReader::Impl::walk(const TaskLayout& layout, const base::Cancellation& patience) {
  // Lists directly, since they are long and spread out; tasks by page.
  const RemoteObjects objects{memory_, layout_.stack, object_layout_};
  const RemoteObjects paged{pages_, layout_.stack, object_layout_};
  const TaskWalk lists{objects, layout};
  const TaskWalk reader{paged, layout};
  pages_.refresh({});
  RawTasks all;
  std::size_t bytes = 0;
  for (const auto interpreter : interpreters_) {
    TaskRoots roots{.interpreter = interpreter, .threads = {}};
    for (const auto& thread : threads_.threads()) {
      if (thread.interpreter == interpreter) {
        roots.threads.push_back(thread.address);
      }
    }
    auto found = lists.list(roots);
    bool any = found.tasks.empty();
    all.complete = all.complete && found.complete;
    for (auto& task : found.tasks) {
      if (pages_.size() > kMostPagesAtOnce) {
        pages_.refresh({});
      }
      if (patience.stopped() || bytes > kMostBytes || all.tasks.size() == kMostTasks) {
        all.complete = false;
        break;
      }
      const auto outcome = reader.read(task);
      any = any || outcome != TaskWalk::Outcome::kNoTask;
      if (outcome == TaskWalk::Outcome::kRead) {
        task.whole = task.whole && pages_.size() < PageCache::kMostPages;
        bytes += sizeof task + task.name.size() + task.awaits.size() * sizeof(RawAwait) +
                 task.awaited_by.size() * sizeof(RemoteAddress);
        all.tasks.push_back(std::move(task));
      }
    }
    // Some may have gone in the meantime. All: they are not as they should be.
    all.complete = all.complete && any;
  }
  reader.derive_awaiters(all.tasks);
  return all;
}

void ObjectReader::Impl::look_at_codes(const std::vector<RawAwait>& frames) {
  for (const auto& frame : frames) {
    if (codes_.find(frame.code) == nullptr) {
      (void)codes_.look_at(std::array{frame.code});
    }
  }
}

bool ObjectReader::Impl::knows_codes(const std::vector<RawAwait>& frames) const {
  return std::ranges::all_of(
      frames, [this](const RawAwait& frame) { return codes_.find(frame.code) != nullptr; });
}

RawGreenlets ObjectReader::Impl::walk_greenlets(const base::Cancellation& patience) {
  const RemoteObjects objects{pages_, layout_.stack, object_layout_};
  pages_.refresh({});
  GreenletWalk walk{objects, [&] {
                      if (pages_.size() > kMostPagesAtOnce) {
                        pages_.refresh({});
                      }
                      return !patience.stopped();
                    }};
  RawGreenlets all;
  for (const auto interpreter : interpreters_) {
    if (walk.has_greenlets(interpreter)) {
      auto found = walk.list(interpreter);
      all.complete = all.complete && found.complete;
      std::ranges::move(found.greenlets, std::back_inserter(all.greenlets));
    }
  }
  return all;
}

// Two looks must agree on a greenlet. One that is switched meanwhile is uncertain.
SuspendedGreenlets ObjectReader::Impl::greenlets(std::chrono::milliseconds limit) {
  const base::Cancellation patience{deadline(steady_ ? kPatienceForGreenletsOfStopped : limit)};
  update_threads();
  codes_.begin_round();
  auto before = walk_greenlets(patience);
  SuspendedGreenlets result{.greenlets = {}, .complete = before.complete};
  if (before.greenlets.empty()) {
    return result;
  }
  for (const auto& greenlet : before.greenlets) {
    look_at_codes(greenlet.frames);
  }
  auto now = image_->changes() && !steady_ ? walk_greenlets(patience) : before;
  std::unordered_map<std::uint64_t, const RawGreenlet*> earlier;
  for (const auto& greenlet : before.greenlets) {
    earlier.emplace(greenlet.address.value(), &greenlet);
  }
  result.complete = now.complete;
  const auto mappings = image_->mappings().value_or(std::vector<procfs::Mapping>{});
  std::size_t name_bytes = 0;
  for (auto& raw : now.greenlets) {
    const auto found = earlier.find(raw.address.value());
    SuspendedGreenlet greenlet{.address = raw.address.value(), .type = std::move(raw.type)};
    greenlet.thread = stack_owners_.at(raw.stack, mappings);
    const bool named = name_frames(raw.frames, name_bytes, greenlet.frames);
    greenlet.certain =
        named && raw.whole && found != earlier.end() && found->second->frames == raw.frames;
    greenlet.outer_certain =
        raw.whole && found != earlier.end() ? equal_outer(found->second->frames, raw.frames) : 0;
    std::ranges::transform(raw.frames, std::back_inserter(greenlet.activations),
                           [](const RawAwait& frame) { return frame.frame.value(); });
    result.greenlets.push_back(std::move(greenlet));
  }
  return result;
}

bool ObjectReader::Impl::name_frames(const std::vector<RawAwait>& raw, std::size_t& name_bytes,
                                     std::vector<AsyncFrame>& named) const {
  const RemoteObjects objects{memory_, layout_.stack, object_layout_};
  bool all = true;
  for (const auto& frame : raw) {
    const auto* const code = codes_.find(frame.code);
    if (code == nullptr || name_bytes > kMostBytes) {
      named.emplace_back();
      all = false;
      continue;
    }
    name_bytes += code->names.qualname.size() + code->names.file.size();
    named.push_back({.names = code->names,
                     .line = codes_.line(*code, frame.code, frame.instruction),
                     .locals = locals_of(objects, frame.frame, frame.code)});
  }
  return all;
}

std::optional<Locals> ObjectReader::Impl::locals_of(const RemoteObjects& objects,
                                                    RemoteAddress frame, RemoteAddress code) const {
  if (!locals_until_) {
    return std::nullopt;
  }
  return locals_until_->expired() ? Locals{.late = true} : frame_locals(objects, frame, code);
}

std::vector<std::optional<Locals>> ObjectReader::Impl::locals(const ThreadStack& stack) const {
  const RemoteObjects objects{memory_, layout_.stack, object_layout_};
  std::vector<std::optional<Locals>> all;
  for (const auto& frame : stack.frames) {
    all.push_back(locals_of(objects, frame.address, frame.code));
  }
  return all;
}

AsyncTasks ObjectReader::Impl::tasks() {
  if (!offsets_ && layout_.publishes_tasks) {
    offsets_ = loaded_task_offsets(*image_);  // asyncio may have been loaded since
  }
  const auto layout = task_layout(version_, object_layout_.head, offsets_);
  if (!layout) {
    return {};
  }
  const base::Cancellation patience{deadline(kPatienceForTasks)};
  update_threads();
  auto before = walk(*layout, patience);
  AsyncTasks result;
  for (int attempt = 1; attempt < kLooks; ++attempt) {
    codes_.begin_round();
    for (const auto& task : before.tasks) {
      look_at_codes(task.awaits);
    }
    auto now = walk(*layout, patience);
    std::unordered_map<std::uint64_t, const RawTask*> earlier;
    for (const auto& task : before.tasks) {
      earlier.emplace(task.address.value(), &task);
    }
    result = {.tasks = {}, .complete = now.complete};
    bool settled = now.complete;
    std::vector<bool> certain;
    for (const auto& task : now.tasks) {
      const auto found = earlier.find(task.address.value());
      certain.push_back(found != earlier.end() && *found->second == task &&
                        knows_codes(task.awaits));
      settled = settled && certain.back();
    }
    if (settled || attempt + 1 == kLooks || patience.stopped()) {
      std::size_t name_bytes = 0;
      for (std::size_t i = 0; i < now.tasks.size(); ++i) {
        result.tasks.push_back(finished(now.tasks[i], certain[i], name_bytes));
      }
      break;
    }
    before = std::move(now);
  }
  return result;
}

AsyncTask ObjectReader::Impl::finished(const RawTask& raw, bool certain, std::size_t& name_bytes) {
  AsyncTask task{.address = raw.address.value(),
                 .loop = raw.loop.value(),
                 .thread = {},
                 .name = raw.name,
                 .state = raw.current ? AsyncTask::State::kRunning : AsyncTask::State::kPending,
                 .waits_for = raw.waits_for.value(),
                 .awaited_by = values(raw.awaited_by),
                 .certain = certain && raw.whole};
  const auto& threads = threads_.threads();
  const auto found = std::ranges::find(threads, raw.thread, &KnownThread::address);
  task.thread = found != threads.end() ? std::optional{found->tid} : tid_of(raw.loop_thread);
  if (task.state == AsyncTask::State::kRunning) {
    task.certain = task.thread && read_running(raw, *task.thread, task) && task.certain;
    return task;
  }
  task.certain = name_frames(raw.awaits, name_bytes, task.awaits) && task.certain;
  return task;
}

bool ObjectReader::Impl::read_running(const RawTask& raw, base::Tid tid, AsyncTask& task) {
  const auto outermost = raw.coroutine + object_layout_.generator_frame;
  const RemoteObjects objects{memory_, layout_.stack, object_layout_};
  for (const auto& stack : stacks_.read(std::array{tid})) {
    const auto end = std::ranges::find(stack.frames, outermost, &PythonFrame::address);
    if (end == stack.frames.end() || !stack.settled) {
      continue;
    }
    for (auto frame = stack.frames.begin(); frame != end + 1; ++frame) {
      task.awaits.push_back({.names = stacks_.names(*frame).value_or(CodeNames{}),
                             .line = frame->line,
                             .locals = locals_of(objects, frame->address, frame->code)});
    }
    return true;
  }
  return false;
}

std::vector<NamedFrame> ObjectReader::Impl::named(const ThreadStack& stack) {
  constexpr std::size_t kMostNamed = 5;  // Condition.wait to Barrier.wait, and its caller
  std::vector<NamedFrame> frames;
  for (const auto& frame :
       std::span{stack.frames}.first(std::min(stack.frames.size(), kMostNamed))) {
    if (codes_.find(frame.code) == nullptr && !codes_.look_at(std::array{frame.code})) {
      return {};
    }
    frames.push_back(
        {.address = frame.address, .code = frame.code, .names = codes_.find(frame.code)->names});
  }
  return frames;
}

std::optional<RawWait> ObjectReader::Impl::wait_now(const LockWalk& locks,
                                                    const std::vector<NamedFrame>& frames,
                                                    base::Tid tid) {
  const auto before = image_->system_call(tid);
  const auto futex = before ? procfs::parse_futex_wait(*before) : std::nullopt;
  pages_.refresh({});  // LOCKS reads by page
  auto wait = futex ? locks.wait(frames, RemoteAddress{*futex}) : std::nullopt;
  return wait && image_->system_call(tid) == before ? std::move(wait) : std::nullopt;
}

// A thread that waits for LOCK may already have prepared the end of its `with` block.
std::optional<base::Tid> ObjectReader::Impl::holder(RemoteAddress lock,
                                                    std::span<const ThreadStack> stacks,
                                                    const std::vector<Wait>& waits,
                                                    const base::Cancellation& patience) const {
  const RemoteObjects objects{memory_, layout_.stack, object_layout_};
  const LockWalk locks{objects};
  std::optional<base::Tid> holder;
  for (const auto& stack : stacks) {
    const bool waiting = std::ranges::any_of(waits, [&](const Wait& wait) {
      return wait.waiter == stack.tid && wait.address == lock.value();
    });
    const bool holds = !waiting && std::ranges::any_of(stack.frames, [&](const PythonFrame& frame) {
      return !patience.stopped() && locks.holds(frame.address, frame.code, lock);
    });
    if ((holds && holder) || patience.stopped()) {
      return std::nullopt;
    }
    holder = holds ? std::optional{stack.tid} : holder;
  }
  return holder;
}

void ObjectReader::Impl::find_holders(std::span<const ThreadStack> stacks,
                                      std::vector<Wait>& waits) const {
  const base::Cancellation patience{deadline(kPatienceForHolders)};
  std::map<std::uint64_t, std::optional<base::Tid>> holders;
  for (auto& wait : waits) {
    if (wait.kind != Wait::Kind::kLock) {
      continue;
    }
    const auto [known, added] = holders.try_emplace(wait.address);
    if (added) {
      const RemoteAddress lock{wait.address};
      const auto first = holder(lock, stacks, waits, patience);
      known->second = first == holder(lock, stacks, waits, patience) ? first : std::nullopt;
    }
    wait.owner = known->second;
  }
}

std::vector<Wait> ObjectReader::Impl::waits(std::span<const ThreadStack> stacks) {
  update_threads();
  codes_.begin_round();
  // Two looks at a thread share no type that either has read.
  const RemoteObjects first{pages_, layout_.stack, object_layout_};
  const RemoteObjects second{pages_, layout_.stack, object_layout_};
  const std::array looks{LockWalk{first}, LockWalk{second}};
  std::vector<Wait> waits;
  for (const auto& stack : stacks) {
    const auto frames = stack.settled ? named(stack) : std::vector<NamedFrame>{};
    if (frames.empty()) {
      continue;
    }
    auto before = wait_now(looks[0], frames, stack.tid);
    auto now = before ? wait_now(looks[1], frames, stack.tid) : std::nullopt;
    for (std::size_t attempt = 2; attempt < kLooks && before != now; ++attempt) {
      before = std::exchange(now, wait_now(looks.at(attempt % looks.size()), frames, stack.tid));
    }
    if (now) {
      waits.push_back({.waiter = stack.tid,
                       .kind = now->kind,
                       .object = now->object,
                       .address = now->address.value(),
                       .owner = now->owner ? tid_of(*now->owner) : std::nullopt,
                       .count = now->count,
                       .certain = before == now});
    }
  }
  find_holders(stacks, waits);
  return waits;
}

std::string_view name(AsyncTask::State state) {
  return state == AsyncTask::State::kRunning ? "running" : "pending";
}

std::variant<ObjectReader, std::string> ObjectReader::of(const Target& target) {
  return of(target, std::make_shared<RunningProcess>(target.id.pid));
}

std::variant<ObjectReader, std::string> ObjectReader::of(
    const Target& target, std::shared_ptr<const ProcessImage> image) {
  const auto prepared = prepare_frame_reading(target, *image);
  if (const auto* const why = std::get_if<std::string>(&prepared)) {
    return *why;
  }
  const auto& [file, layout] = std::get<FrameReading>(prepared);
  std::vector<std::byte> head(kDebugOffsetsBytes);
  if (!image->memory()->read(target.addresses.runtime, head)) {
    return std::string{"its memory cannot be read"};
  }
  const auto objects = object_layout(target.version, head);
  if (const auto* const why = std::get_if<std::string>(&objects)) {
    return *why;
  }
  constexpr auto kType = std::to_array<std::string_view>({"PyCode_Type"});
  const auto symbols = file.find_symbols(kType);
  if (symbols.empty()) {
    return std::string{"its interpreter does not export PyCode_Type"};
  }
  const auto offsets = layout.publishes_tasks ? find_task_offsets(*image, file) : std::nullopt;
  return ObjectReader{std::make_unique<Impl>(target, std::move(image), layout,
                                             std::get<ObjectLayout>(objects), offsets,
                                             target.bias.apply(symbols.begin()->second.address))};
}

ObjectReader::ObjectReader(std::unique_ptr<Impl> impl) : impl_{std::move(impl)} {}
void ObjectReader::set_steady(bool steady) { impl_->set_steady(steady); }
void ObjectReader::want_locals(std::optional<base::Deadline> until) { impl_->want_locals(until); }

ObjectReader::ObjectReader(ObjectReader&& other) noexcept = default;
ObjectReader& ObjectReader::operator=(ObjectReader&& other) noexcept = default;
ObjectReader::~ObjectReader() = default;

std::vector<ThreadName> ObjectReader::thread_names() { return impl_->thread_names(); }
AsyncTasks ObjectReader::tasks() { return impl_->tasks(); }
SuspendedGreenlets ObjectReader::greenlets(std::optional<std::chrono::milliseconds> patience) {
  return impl_->greenlets(patience.value_or(kPatienceForGreenlets));
}
std::vector<Wait> ObjectReader::waits(std::span<const ThreadStack> stacks) {
  return impl_->waits(stacks);
}
std::vector<std::optional<Locals>> ObjectReader::locals(const ThreadStack& stack) {
  return impl_->locals(stack);
}

}  // namespace pyinject::python
