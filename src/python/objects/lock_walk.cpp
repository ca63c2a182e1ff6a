#include "python/objects/lock_walk.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace pyinject::python {

namespace {

using base::RemoteAddress;

// The fields of lockobject and rlockobject (Modules/_threadmodule.c) follow the object's head: a
// pointer to a semaphore, or a PyMutex. Their size tells which: 3.13 changed lockobject in a patch
// release.
constexpr std::uint64_t kMutexLockBytes = 8;        // PyMutex
constexpr std::uint64_t kSemaphoreLockBytes = 24;   // semaphore, weak references, locked
constexpr std::uint64_t kMutexRLockBytes = 24;      // _PyRecursiveMutex: PyMutex, thread, level
constexpr std::uint64_t kSemaphoreRLockBytes = 32;  // semaphore, owner, count, weak references
constexpr std::uint64_t kOwner = 8;
constexpr std::uint64_t kCount = 16;

// A thread that waits for a PyMutex waits for a semaphore in a struct wait_entry on its own stack
// (Python/parking_lot.c), after the address of the PyMutex.
constexpr std::uint64_t kAddressBeforeSemaphore = 8;

// ThreadHandle (Modules/_threadmodule.c, 3.13 and later): the event for which join() waits. The
// first field of a PyThreadHandleObject points to it.
constexpr std::uint64_t kThreadExits = 57;

struct Purpose {
  std::string_view file;
  std::string_view qualname;
  Wait::Kind kind;
  std::string_view type;  // of the first argument
};
constexpr auto kThreading = "threading.py";
constexpr auto kFutures = "concurrent/futures/_base.py";
constexpr auto kGevent = "gevent/_threading.py";
constexpr std::array kPurposes = std::to_array<Purpose>({
    {kThreading, "Condition.wait", Wait::Kind::kCondition, "Condition"},
    {kThreading, "Condition.wait_for", Wait::Kind::kCondition, "Condition"},
    {kThreading, "Event.wait", Wait::Kind::kEvent, "Event"},
    {kThreading, "Semaphore.acquire", Wait::Kind::kSemaphore, "Semaphore"},
    {kThreading, "Barrier._wait", Wait::Kind::kBarrier, "Barrier"},
    {kThreading, "Barrier._enter", Wait::Kind::kBarrier, "Barrier"},
    {kThreading, "Barrier.wait", Wait::Kind::kBarrier, "Barrier"},
    {kThreading, "Thread.join", Wait::Kind::kJoin, "Thread"},
    {kThreading, "Thread._wait_for_tstate_lock", Wait::Kind::kJoin, "Thread"},
    {"queue.py", "Queue.get", Wait::Kind::kQueue, "Queue"},
    {"queue.py", "Queue.put", Wait::Kind::kQueue, "Queue"},
    {"queue.py", "Queue.join", Wait::Kind::kQueue, "Queue"},
    {kFutures, "Future.result", Wait::Kind::kFuture, "Future"},
    {kFutures, "Future.exception", Wait::Kind::kFuture, "Future"},
    // The threads of gevent's pool, which wait for work.
    {kGevent, "acquire_with_timeout", Wait::Kind::kLock, "_thread.lock"},
    {kGevent, "_Condition.wait", Wait::Kind::kCondition, "_Condition"},
    {kGevent, "Queue.get", Wait::Kind::kQueue, "Queue"},
});

bool is_file(std::string_view path, std::string_view file) {
  return path == file || (path.ends_with(file) && path.at(path.size() - file.size() - 1) == '/');
}

const Purpose* purpose_of(const CodeNames& names) {
  const auto* const found = std::ranges::find_if(kPurposes, [&names](const Purpose& purpose) {
    return names.qualname == purpose.qualname && is_file(names.file, purpose.file);
  });
  return found == kPurposes.end() ? nullptr : found;
}

// The depth of the evaluation stack to which an exception of the instruction at OFFSET (in code
// units) would cut it: that depth is live. TABLE: co_exceptiontable, entries of four numbers
// (InternalDocs/exception_handling.md of CPython). 0: no handler, or TABLE is invalid.
std::uint64_t handled_depth(std::span<const std::byte> table, std::uint64_t offset) {
  constexpr std::uint8_t kMore = 0x40;
  constexpr unsigned kBits = 6;
  constexpr std::size_t kMostBytes = 5;  // of a number
  const auto take = [&table]() -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < kMostBytes && !table.empty(); ++i) {
      const auto byte = std::to_integer<std::uint8_t>(table.front());
      table = table.subspan(1);
      value = value << kBits | (byte & (kMore - 1U));
      if ((byte & kMore) == 0) {
        return value;
      }
    }
    return std::nullopt;
  };
  while (!table.empty()) {
    const auto start = take();
    const auto length = take();
    const auto target = take();
    const auto depth = take();
    if (!start || !length || !target || !depth) {
      return 0;
    }
    if (offset >= *start && offset - *start < *length) {
      return *depth >> 1U;  // the lowest bit says that the instruction is pushed, too
    }
  }
  return 0;
}

}  // namespace

std::optional<LockWalk::Lock> LockWalk::lock_at(RemoteAddress object) const {
  const auto name = objects_.type_name(object);
  const bool recursive = name == "_thread.RLock";
  if (!recursive && name != "_thread.lock") {
    return std::nullopt;
  }
  const auto bytes = objects_.instance_size(object) - objects_.layout().head;
  const bool mutex = bytes == (recursive ? kMutexRLockBytes : kMutexLockBytes);
  if (!mutex && bytes != (recursive ? kSemaphoreRLockBytes : kSemaphoreLockBytes)) {
    return std::nullopt;
  }
  return Lock{.address = object, .recursive = recursive, .mutex = mutex};
}

std::optional<LockWalk::Lock> LockWalk::find_lock(const NamedFrame& frame,
                                                  RemoteAddress futex) const {
  const auto& memory = objects_.memory();
  const auto head = objects_.layout().head;
  const auto mutex = memory.read_pointer(futex - kAddressBeforeSemaphore);
  if (mutex && mutex->value() % RemoteObjects::kWord == 0 && mutex->value() > head) {
    const auto lock = lock_at(*mutex - head);
    if (lock && lock->mutex) {
      return lock;
    }
  }
  // A semaphore: that of a lock among the frame's local variables and on its evaluation stack, dead
  // entries included. The semaphore's address proves that it is this lock.
  constexpr std::int32_t kMostWords = 1024;
  const auto& layout = objects_.layout();
  const auto locals = memory.read_value<std::int32_t>(frame.code + layout.local_count);
  const auto stack = memory.read_value<std::int32_t>(frame.code + layout.stack_size);
  if (!locals || !stack || *locals < 0 || *stack < 0 || *locals > kMostWords ||
      *stack > kMostWords) {
    return std::nullopt;
  }
  std::vector<std::uint64_t> words(static_cast<std::size_t>(*locals + *stack));
  if (words.empty() ||
      !memory.read(frame.address + layout.locals, std::as_writable_bytes(std::span{words}))) {
    return std::nullopt;
  }
  std::ranges::sort(words);
  words.erase(std::unique(words.begin(), words.end()), words.end());
  for (const auto word : words) {
    RemoteAddress object{word};
    if (word % RemoteObjects::kWord != 0 || word == 0) {
      continue;
    }
    if (objects_.is_static(object, "builtin_function_or_method")) {  // lock.acquire
      object = objects_.object_at(object + layout.builtin_self).value_or(object);
    }
    if (memory.read_pointer(object + head) == futex) {
      const auto lock = lock_at(object);
      if (lock && !lock->mutex) {
        return lock;
      }
    }
  }
  return std::nullopt;
}

RawWait LockWalk::owned(const Lock& lock) const {
  RawWait wait{.kind = Wait::Kind::kRLock, .object = "RLock", .address = lock.address, .owner = {}};
  const auto fields = lock.address + objects_.layout().head;
  const auto owner = objects_.memory().read_value<std::uint64_t>(fields + kOwner);
  const auto count = objects_.memory().read_value<std::uint64_t>(fields + kCount);
  if (owner && count && *owner != 0) {
    wait.owner = owner;
    wait.count = *count + (lock.mutex ? 1 : 0);  // a level of 0: acquired once
  }
  return wait;
}

std::optional<RemoteAddress> LockWalk::first_argument(const NamedFrame& frame) const {
  const auto word =
      objects_.memory().read_value<std::uint64_t>(frame.address + objects_.layout().locals);
  const auto tags = objects_.stack().executable_tags;
  const RemoteAddress argument{word.value_or(0) & ~tags};
  if (objects_.is_static(argument, "cell")) {  // an inner function uses it, too
    return objects_.object_at(argument + objects_.layout().cell_content);
  }
  return argument.is_null() ? std::nullopt : std::optional{argument};
}

std::optional<RawWait> LockWalk::find_purpose(std::span<const NamedFrame> frames) const {
  std::optional<RawWait> found;
  for (const auto& frame : frames) {
    const auto* const purpose = purpose_of(frame.names);
    const auto self = purpose != nullptr ? first_argument(frame) : std::nullopt;
    if (!self || !objects_.is_a(*self, purpose->type)) {
      break;
    }
    found = RawWait{
        .kind = purpose->kind, .object = objects_.type_name(*self), .address = *self, .owner = {}};
    if (purpose->kind == Wait::Kind::kJoin) {
      const auto ident = objects_.attribute(*self, "_ident");
      found->owner = ident ? objects_.number(*ident) : std::nullopt;
    }
  }
  return found;
}

std::vector<RemoteAddress> LockWalk::live_words(RemoteAddress frame, RemoteAddress code) const {
  constexpr std::uint64_t kMostDepth = 1024;
  constexpr std::uint64_t kMostTable = std::uint64_t{1} << 16U;
  const auto& memory = objects_.memory();
  const auto& layout = objects_.layout();
  const auto& stack = objects_.stack();
  const auto locals = memory.read_value<std::int32_t>(code + layout.local_count);
  if (!locals || *locals < 0) {
    return {};
  }
  const auto begin =
      frame + (layout.locals + static_cast<std::uint64_t>(*locals) * RemoteObjects::kWord);
  std::uint64_t depth = 0;
  if (!stack.stack_end_is_index) {
    const auto end = memory.read_value<std::uint64_t>(frame + stack.stack_end).value_or(0);
    depth = end > begin.value() ? (end - begin.value()) / RemoteObjects::kWord : 0;
  } else if (const auto end = memory.read_value<std::int32_t>(frame + stack.stack_end);
             end && *end >= 0) {
    depth = *end > *locals ? static_cast<std::uint64_t>(*end - *locals) : 0;
  } else {
    // It runs C code: its depth is not saved.
    const auto table = objects_.object_at(code + layout.exception_table);
    const auto size = table ? memory.read_value<std::uint64_t>(*table + stack.item_count)
                            : std::optional<std::uint64_t>{};
    const auto at = memory.read_value<std::uint64_t>(frame + stack.instruction);
    std::vector<std::byte> bytes(size && *size <= kMostTable ? *size : 0);
    if (!at || !memory.read(*table + stack.bytes_data, bytes)) {
      return {};
    }
    depth = handled_depth(bytes, (*at - (code + stack.byte_code).value()) / 2);
  }
  std::vector<std::uint64_t> words(depth <= kMostDepth ? depth : 0);
  std::vector<RemoteAddress> live;
  if (memory.read(begin, std::as_writable_bytes(std::span{words}))) {
    for (const auto word : words) {
      live.emplace_back(word & ~stack.executable_tags);
    }
  }
  return live;
}

bool LockWalk::holds(RemoteAddress frame, RemoteAddress code, RemoteAddress lock) const {
  const auto& memory = objects_.memory();
  const auto& layout = objects_.layout();
  const auto words = live_words(frame, code);
  for (std::size_t i = 0; i < words.size(); ++i) {
    // A bound method (3.12, 3.13), or a method and the lock (later).
    if (i > 0 && words[i] == lock && objects_.is_static(words[i - 1], "method_descriptor")) {
      const auto name = objects_.object_at(words[i - 1] + layout.descriptor_name);
      if (name && objects_.text(*name) == "__exit__") {
        return true;
      }
    }
    if (memory.read_pointer(words[i] + layout.builtin_self) == lock &&
        objects_.is_static(words[i], "builtin_function_or_method")) {
      const auto method = objects_.object_at(words[i] + layout.builtin_method);
      const auto name = method ? memory.read_pointer(*method) : std::nullopt;
      const auto text = name ? memory.read_value<std::array<char, 9>>(*name) : std::nullopt;
      if (text && *text == std::to_array("__exit__")) {
        return true;
      }
    }
  }
  return false;
}

bool LockWalk::joins(const NamedFrame& frame, RemoteAddress futex) const {
  const auto event = objects_.memory().read_pointer(futex - kAddressBeforeSemaphore);
  const auto self = frame.names.qualname == "Thread.join" ? first_argument(frame) : std::nullopt;
  if (!event || !self) {
    return false;
  }
  auto handle = objects_.attribute(*self, "_handle");  // 3.13
  if (!handle) {
    handle = objects_.attribute(*self, "_os_thread_handle");
  }
  const auto inner = handle && objects_.type_name(*handle) == "_thread._ThreadHandle"
                         ? objects_.object_at(*handle + objects_.layout().head)
                         : std::nullopt;
  return inner && *inner + kThreadExits == *event;
}

std::optional<RawWait> LockWalk::wait(std::span<const NamedFrame> frames,
                                      RemoteAddress futex) const {
  const auto tags = objects_.stack().executable_tags;
  for (const auto& frame : frames) {
    const auto code =
        objects_.memory().read_value<std::uint64_t>(frame.address + objects_.stack().executable);
    if (!code || (*code & ~tags) != frame.code.value()) {
      return std::nullopt;
    }
  }
  if (frames.empty()) {
    return std::nullopt;
  }
  const auto lock = find_lock(frames.front(), futex);
  if (lock && lock->recursive) {
    return owned(*lock);
  }
  if (!lock && !joins(frames.front(), futex)) {
    return std::nullopt;
  }
  if (auto purpose = find_purpose(frames); purpose && purpose->kind != Wait::Kind::kLock) {
    return purpose;
  }
  return lock ? std::optional{RawWait{.kind = Wait::Kind::kLock,
                                      .object = "Lock",
                                      .address = lock->address,
                                      .owner = {}}}
              : std::nullopt;
}

}  // namespace pyinject::python
