// The stacks of this process, compared with the compiler's own unwinder.
#include "elf/call_frame_info.hpp"
#include "procfs/maps.hpp"
#include "unwind/unwinder.hpp"

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

namespace pyinject::unwind {
namespace {

constexpr ProcessNumber kUnwound = 10;

struct Snapshot {
  Registers registers;
  std::vector<std::byte> stack;
  std::vector<void*> returns;  // from backtrace(3)
};

Snapshot* wanted = nullptr;

std::uint64_t end_of_stack() {
  pthread_attr_t attributes;
  void* begin = nullptr;
  std::size_t size = 0;
  EXPECT_EQ(::pthread_getattr_np(::pthread_self(), &attributes), 0);
  EXPECT_EQ(::pthread_attr_getstack(&attributes, &begin, &size), 0);
  (void)::pthread_attr_destroy(&attributes);
  return reinterpret_cast<std::uint64_t>(begin) + size;
}

// The state that a sample in the middle of this function would have.
[[gnu::noinline]] void take_snapshot() {
  auto& registers = wanted->registers;
  asm volatile(
      "movq %%rbx, 24(%0)\n\t"
      "movq %%rbp, 48(%0)\n\t"
      "movq %%rsp, 56(%0)\n\t"
      "movq %%r12, 96(%0)\n\t"
      "movq %%r13, 104(%0)\n\t"
      "movq %%r14, 112(%0)\n\t"
      "movq %%r15, 120(%0)\n\t"
      "leaq 0f(%%rip), %%rax\n\t"
      "0: movq %%rax, 128(%0)"
      :
      : "r"(registers.values.data())
      : "rax", "memory");
  registers.known = preserved_by_calls() | 1U << elf::kReturnAddress;
  wanted->returns.resize(200);
  const auto found = ::backtrace(wanted->returns.data(), 200);
  wanted->returns.resize(static_cast<std::size_t>(found));
  wanted->stack.resize(end_of_stack() - registers.sp());
  // Read by the kernel: a sanitizer forbids reading other functions' variables.
  const iovec into{.iov_base = wanted->stack.data(), .iov_len = wanted->stack.size()};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it is an address
  const iovec from{.iov_base = reinterpret_cast<void*>(registers.sp()),
                   .iov_len = wanted->stack.size()};
  EXPECT_EQ(::process_vm_readv(::getpid(), &into, 1, &from, 1, 0),
            static_cast<ssize_t>(wanted->stack.size()));
}

class OwnFiles : public FileFinder {
 public:
  [[nodiscard]] std::vector<base::UniqueFd> candidates(const MappedFile& file) override {
    std::vector<base::UniqueFd> files;
    files.emplace_back(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC));
    return files;
  }
};

class NoTrampolines : public TrampolineFinder {
 public:
  [[nodiscard]] std::optional<Trampoline> find(ProcessNumber /*pid*/,
                                               std::uint64_t /*address*/) const override {
    return std::nullopt;
  }
};

class OwnStack : public testing::Test {
 protected:
  OwnStack() {
    wanted = &snapshot_;
    const auto maps = procfs::read_maps(base::Pid{::getpid()});
    for (const auto& mapping : *maps) {
      spaces_.map(0, kUnwound,
                  {.begin = mapping.begin.value(),
                   .end = mapping.end.value(),
                   .offset = mapping.offset,
                   .executable = mapping.executable,
                   .path = mapping.path,
                   .device_major = static_cast<std::uint32_t>(mapping.device_major),
                   .device_minor = static_cast<std::uint32_t>(mapping.device_minor),
                   .inode = mapping.inode});
    }
    spaces_.complete();
  }

  // INTERRUPTED: functions whose address is not a return address.
  void expect_same(std::size_t interrupted) {
    std::vector<std::uint64_t> chain;
    const auto unwound =
        unwinder_.unwind(kUnwound, 0, snapshot_.registers,
                         {.begin = snapshot_.registers.sp(), .bytes = snapshot_.stack}, chain);
    EXPECT_EQ(unwound.end, EndOfStack::kWhole);
    EXPECT_EQ(unwound.by_frame_pointer, 0U);
    // A sanitizer wraps backtrace(3) in its own function.
    const auto extra = snapshot_.returns.size() - chain.size();
    ASSERT_LE(extra, 1U);
    std::size_t exact = 0;
    for (std::size_t i = 1; i < chain.size(); ++i) {  // the first one continues in this function
      const auto address = reinterpret_cast<std::uint64_t>(snapshot_.returns[i + extra]);
      exact += chain[i] == address ? 1 : 0;
      EXPECT_TRUE(chain[i] == address || chain[i] == address - 1) << i;
    }
    EXPECT_EQ(exact, interrupted);
    // Again, with the cached rules.
    std::vector<std::uint64_t> again;
    (void)unwinder_.unwind(kUnwound, 0, snapshot_.registers,
                           {.begin = snapshot_.registers.sp(), .bytes = snapshot_.stack}, again);
    EXPECT_EQ(again, chain);
  }

  Snapshot snapshot_;
  AddressSpaces spaces_;
  OwnFiles files_;
  NoTrampolines trampolines_;
  Objects objects_{files_};
  Unwinder unwinder_{spaces_, objects_, trampolines_};
};

TEST_F(OwnStack, IsUnwoundFromHere) {
  take_snapshot();
  EXPECT_GT(snapshot_.returns.size(), 5U);
  expect_same(0);
}

int compare_and_look(const void* /*a*/, const void* /*b*/) {
  take_snapshot();
  return 0;
}

TEST_F(OwnStack, IsUnwoundThroughALibraryWithoutFramePointers) {
  std::array<int, 2> numbers{1, 2};
  std::qsort(numbers.data(), numbers.size(), sizeof(int), compare_and_look);
  expect_same(0);
}

void look_at_signal(int /*signal*/) { take_snapshot(); }

TEST_F(OwnStack, IsUnwoundThroughASignalHandler) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = look_at_signal;
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  EXPECT_EQ(::raise(SIGUSR1), 0);
  ASSERT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
  expect_same(1);
}

TEST_F(OwnStack, IsTheSameInAnotherThread) {
  std::thread{take_snapshot}.join();
  expect_same(0);
}

TEST_F(OwnStack, IsCutWhereTheCopyEnds) {
  take_snapshot();
  std::vector<std::uint64_t> whole;
  const auto unwind = [&](std::size_t size, std::vector<std::uint64_t>& chain) {
    return unwinder_.unwind(kUnwound, 0, snapshot_.registers,
                            {.begin = snapshot_.registers.sp(),
                             .bytes = std::span{snapshot_.stack}.first(size),
                             .cut = true},
                            chain);
  };
  ASSERT_EQ(unwind(snapshot_.stack.size(), whole).end, EndOfStack::kWhole);
  const auto step = std::max<std::size_t>(snapshot_.stack.size() / 100, 8);
  for (std::size_t size = 0; size < snapshot_.stack.size(); size += step) {
    std::vector<std::uint64_t> part;
    const auto unwound = unwind(size, part);
    if (unwound.end == EndOfStack::kWhole) {
      EXPECT_EQ(part, whole);
    } else {
      EXPECT_EQ(unwound.end, EndOfStack::kCut) << size;
      ASSERT_LT(part.size(), whole.size());
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin())) << size;
    }
  }
}

// The vdso has no file.
TEST_F(OwnStack, TheVdsoHasRules) {
  for (const auto& file : spaces_.files()) {
    if (file.path == "[vdso]") {
      base::Allowance steps;
      const auto mapped = objects_.of(file, 0, steps);
      ASSERT_NE(mapped.object, nullptr);
      std::size_t rules = 0;
      for (std::uint64_t at = file.begin; at < file.end; ++at) {
        const auto pc = mapped.bias.remove(base::RemoteAddress{at});
        const auto found =
            mapped.object->rule_at(pc, steps, [](std::size_t /*bytes*/) { return true; });
        rules += found.rule->kind != Rule::Kind::kNone ? 1 : 0;
      }
      EXPECT_GT(rules, 100U);
      return;
    }
  }
  FAIL() << "no vdso is mapped";
}

}  // namespace
}  // namespace pyinject::unwind
