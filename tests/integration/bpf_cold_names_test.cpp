// Names and lines that are not in memory when a sample hits their function.
#include "integration/bpf_sampling.hpp"
#include "support/covering.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <string>

namespace pyinject::test {
namespace {

using testing::AnyOf;
using testing::Each;

// Moves copies of the PARTS of the code of `spin` to untouched pages, as if they had been swapped
// out. PROTECTION: 1, readable with a page fault; 0, only after a line on stdin.
std::string program(const std::string& parts, int protection) {
  return std::string{kReady} + fmt::format(R"(
import ctypes, threading
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
code = spin.__code__
count = 16 + object.__basicsize__ // 8  # 18 with the GIL
words = (ctypes.c_uint64 * count).from_address(id(code))
moved = []
for thing in {}:
    raw = ctypes.string_at(id(thing), sys.getsizeof(thing))
    file = os.memfd_create('cold')
    os.write(file, raw)
    address = libc.mmap(None, len(raw), {}, 2, file, 0)
    for i in range(count):
        if words[i] == id(thing):
            words[i] = address
    moved.append((address, len(raw)))
def warm():
    sys.stdin.readline()
    for address, size in moved:
        libc.mprotect(address, size, 1)
threading.Thread(target=warm, daemon=True).start()
spin()
)",
                                           parts, protection);
}

constexpr auto kAll = "(code.co_qualname, code.co_filename, code.co_linetable)";

class BpfColdNames : public BpfSampling {};

TEST_P(BpfColdNames, AreReadAfterwards) {
  PythonProcess python{GetParam(), program(kAll, 1)};
  open();
  sample(python.pid());
  collect(20);
  EXPECT_THAT(texts(), Each(std::string{"spin <module> | "}));
  for (const auto& stack : stacks_) {
    EXPECT_THAT(stack.frames.front().line, AnyOf(7U, 8U));
  }
  EXPECT_EQ(sampler_->counters().lost_names, 0U);
}

TEST_P(BpfColdNames, AreReadWhenTheyCanBe) {
  PythonProcess python{GetParam(), program(kAll, 0)};
  open();
  sample(python.pid());
  collect(20);
  EXPECT_THAT(texts(), Each(std::string{" <module> | "}));
  EXPECT_EQ(sampler_->counters().lost_names, 1U);
  python.send_line("now");
  collect(20, [this](const auto& stack) { return text(stack) == "spin <module> | "; });
  EXPECT_THAT(stacks_.back().frames.front().line, AnyOf(7U, 8U));
  EXPECT_EQ(sampler_->counters().lost_names, 0U);
}

TEST_P(BpfColdNames, HaveTheirLinesWhenTheseCanBeRead) {
  PythonProcess python{GetParam(), program("(code.co_linetable,)", 0)};
  open();
  sample(python.pid());
  collect(20);
  EXPECT_THAT(texts(), Each(std::string{"spin <module> | "}));
  const auto number = stacks_.front().frames.front().code;
  EXPECT_EQ(stacks_.front().frames.front().line, 0U);
  python.send_line("now");
  collect(20, [](const auto& stack) { return stack.frames.front().line != 0; });
  for (const auto& stack : stacks_) {
    EXPECT_EQ(stack.frames.front().code, number);
    EXPECT_THAT(stack.frames.front().line, AnyOf(0U, 7U, 8U));
  }
}

// Their line table is longer than what the program copies.
TEST_P(BpfColdNames, AreReadAfterwardsOfAFunctionOfManyLines) {
  constexpr auto kLong = R"py(
lines = ['def long():']
for i in range(20000):
    lines.append(f'    y{i % 50} = {i}')
lines.append('    while True: y0 += 1')
lines.append("print('ready', flush=True); long()")
exec(compile('\n'.join(lines), 'long.py', 'exec'))
)py";
  PythonProcess python{GetParam(), kLong};
  open();
  sample(python.pid());
  collect(20, [](const auto& stack) { return stack.frames.front().line == 20'002; });
  EXPECT_EQ(text(stacks_.back()), "long <module> | <module> | ");
}

COVER(BpfColdNames, kEveryVersion);
INSTANTIATE_TEST_SUITE_P(Pythons, BpfColdNames,
                         testing::ValuesIn(interpreters({.only_read = true})), InterpreterName{});

}  // namespace
}  // namespace pyinject::test
