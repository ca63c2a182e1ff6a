// How the BPF program finds a thread's state, and what it does if there is none.
#include "base/file.hpp"
#include "base/text.hpp"
#include "integration/bpf_sampling.hpp"
#include "pyinject/base/error.hpp"
#include "support/covering.hpp"
#include "tracee/tracee_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <linux/bpf.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pyinject::test {
namespace {

class BpfThreadStates : public BpfSampling {
 protected:
  [[nodiscard]] std::ptrdiff_t with_frames() const {
    return std::ranges::count_if(stacks_, [](const auto& stack) { return !stack.frames.empty(); });
  }
};

// The kernel's count of the time that this process's perf event programs run, while such an object
// exists.
class ProgramTime {
 public:
  ProgramTime() {
    bpf_attr attributes{};
    attributes.enable_stats.type = BPF_STATS_RUN_TIME;
    counting_.reset(
        static_cast<int>(::syscall(SYS_bpf, BPF_ENABLE_STATS, &attributes, sizeof(attributes))));
    if (!counting_.valid()) {
      throw base::Error{"the kernel does not count the time of programs"};
    }
  }
  // Nanoseconds since the last call.
  [[nodiscard]] std::uint64_t since() {
    const auto before = std::exchange(known_, 0);
    for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fdinfo"}) {
      std::map<std::string_view, std::uint64_t> fields;
      const auto text = base::read_file(entry.path().string()).value_or("");
      for (const auto line : base::split(text, '\n')) {
        const auto name = line.substr(0, line.find(':'));
        const auto value = base::trim(line.substr(std::min(name.size() + 1, line.size())));
        fields.emplace(name, base::parse_number<std::uint64_t>(value).value_or(0));
      }
      // Other programs run when any process of the machine starts or exits.
      if (fields["prog_type"] == BPF_PROG_TYPE_PERF_EVENT) {
        known_ += fields["run_time_ns"];
      }
    }
    return known_ - before;
  }

 private:
  std::uint64_t known_ = 0;
  base::UniqueFd counting_;
};

// The processor does nothing else while the program walks a list.
TEST_P(BpfThreadStates, AListWithoutAnEndCostsLittleAndIsReadAgainWhenItHasOne) {
  if (is_newer(GetParam())) {
    GTEST_SKIP() << "such a list disproves the layout of an untested version";
  }
  // On a single processor, so that the walks take a share of its time.
  PythonProcess python{wrapped(GetParam(), {"taskset", "-c", std::to_string(::sched_getcpu())}),
                       std::string{kReady} + R"(
import threading
begun = threading.Event()
def newest():
    begun.set()
    threading.Event().wait()
threading.Thread(target=newest, daemon=True).start()
begun.wait()
spin()
)"};
  const auto layout = layout_of(python.pid());
  const tracee::TraceeMemory memory{python.pid()};
  const auto interpreter = memory.read_pointer(layout.interpreters);
  ASSERT_TRUE(interpreter);
  const auto newest = memory.read_pointer(*interpreter + layout.threads_head);
  ASSERT_TRUE(newest);
  const auto next = memory.read_pointer(*newest + layout.next_thread);
  ASSERT_TRUE(next && !next->is_null());
  ASSERT_TRUE(memory.write_value(*newest + layout.next_thread, newest->value()));
  open();
  ProgramTime time;
  sample(python.pid());
  // The best of several: a run's time includes time in which this virtual machine has no processor.
  // Relative to the elapsed time: on a busy machine it has few samples.
  double part = 1;
  for (int i = 0; i < 4; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    let_run(std::chrono::milliseconds{200});
    const std::chrono::duration<double, std::nano> span = std::chrono::steady_clock::now() - begin;
    part = std::min(part, static_cast<double>(time.since()) / span.count());
  }
  EXPECT_LT(part, 0.125);  // nearly all of the target's time if each sample walked the list
  collect(200);
  EXPECT_EQ(std::ranges::count(stacks_, true, &sample::Stack::unreadable), std::ssize(stacks_));
  EXPECT_EQ(with_frames(), 0);
  EXPECT_EQ(std::ranges::count(stacks_, false, &sample::Stack::python_thread), 0);
  ASSERT_TRUE(memory.write_value(*newest + layout.next_thread, next->value()));
  collect(20, [this](const auto& stack) { return text(stack) == "spin <module> | "; });
}

// io_uring's kernel threads share the memory and the thread pointer of the thread that created
// them, whose frames change in the meantime.
TEST_P(BpfThreadStates, ShowNoPythonStackOfAWorkerOfIoUring) {
  PythonProcess python{GetParam(), std::string{kReady} + R"(
import ctypes, mmap, struct
call = ctypes.CDLL(None, use_errno=True).syscall
parameters = (ctypes.c_uint32 * 30)()
def read_by_ring():
    ring = call(425, 4, parameters)  # io_uring_setup
    print('ring' if ring >= 0 else os.strerror(ctypes.get_errno()), flush=True)
    tail, array = parameters[11], parameters[16]
    queue = mmap.mmap(ring, array + 4 * parameters[0])
    entries = mmap.mmap(ring, 64 * parameters[0], offset=0x10000000)
    size = 1 << 26
    buffer = ctypes.create_string_buffer(size)
    file = os.open('/dev/urandom', os.O_RDONLY)
    # IORING_OP_READ, IOSQE_ASYNC
    entries[0:64] = struct.pack('<BBHiQQIIQ24x', 22, 16, 0, file, 0, ctypes.addressof(buffer), size, 0, 1)
    for i in range(1, 100):
        struct.pack_into('<I', queue, tail, i)
        call(426, ring, 1, 1, 1, None, 0)  # io_uring_enter, which waits for its end
ready()
sys.stdin.readline()
read_by_ring()
)"};
  open();
  sample(python.pid());
  python.send_line("go");
  if (const auto answer = python.read_line(); answer != "ring") {
    GTEST_SKIP() << "io_uring: " << answer;
  }
  const auto of_worker = [](const sample::Stack& stack) { return stack.tid != stack.pid; };
  collect(100, of_worker);
  std::erase_if(stacks_, [&](const auto& stack) { return !of_worker(stack); });
  EXPECT_EQ(std::ranges::count(stacks_, false, &sample::Stack::python_thread), std::ssize(stacks_));
  EXPECT_EQ(with_frames(), 0);
}

COVER(BpfThreadStates, kEveryVersion);
INSTANTIATE_TEST_SUITE_P(Pythons, BpfThreadStates,
                         testing::ValuesIn(interpreters({.only_read = true})), InterpreterName{});

}  // namespace
}  // namespace pyinject::test
