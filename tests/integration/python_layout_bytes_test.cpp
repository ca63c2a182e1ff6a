// The offsets that an interpreter publishes, each byte of them changed: they are refused, or what
// is read with them is the same.
#include "elf/elf_file.hpp"
#include "memory/process_memory.hpp"
#include "pyinject/python/detector.hpp"
#include "python/layout/layout_facts.hpp"
#include "python/layout/layout_proof.hpp"
#include "python/layout/object_layout.hpp"
#include "support/covering.hpp"
#include "support/interpreters.hpp"
#include "support/patience.hpp"
#include "support/python_process.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <fcntl.h>

namespace pyinject::test {
namespace {

using python::ObjectLayout;
using python::RuntimeLayout;

constexpr auto kProgram =
    "import threading\n"
    "def wait(): threading.Event().wait()\n"
    "for i in range(3): threading.Thread(target=wait, daemon=True).start()\n"
    "print('ready', flush=True)\n"
    "wait()\n";

class LayoutBytes : public testing::TestWithParam<Interpreter> {
 protected:
  LayoutBytes() {
    auto detection = python::make_detector(python::Purpose::kObserve)->detect(python_.pid());
    target_ = std::get<python::Target>(std::move(detection));
    head_.resize(python::kDebugOffsetsBytes);
    EXPECT_TRUE(memory_.read(target_.addresses.runtime, head_));
  }

  [[nodiscard]] base::RemoteAddress code_type() const {
    const auto path = GetParam().root.empty() || target_.interpreter.starts_with(GetParam().root)
                          ? target_.interpreter
                          : GetParam().root + target_.interpreter;
    auto opened = elf::ElfFile::open(base::UniqueFd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)});
    constexpr std::string_view kName = "PyCode_Type";
    const auto found = std::get<elf::ElfFile>(opened).find_symbols(std::array{kName});
    return target_.bias.apply(found.at(std::string{kName}).address);
  }

  // What is used of the layout to read stacks.
  static RuntimeLayout used(RuntimeLayout layout, const RuntimeLayout& right) {
    layout.runtime_size = layout.interpreter_size = 0;  // only their plausibility
    if (layout.gc_collecting == 0) {                    // it is not read
      layout.gc_collecting = right.gc_collecting;
    }
    return layout;
  }

  PythonProcess python_{GetParam(), kProgram};
  memory::ProcessMemory memory_{python_.pid()};
  python::Target target_;
  std::vector<std::byte> head_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LayoutBytes);
COVER(LayoutBytes, kEveryVersion);
INSTANTIATE_TEST_SUITE_P(Pythons, LayoutBytes, testing::ValuesIn(interpreters({.only_read = true})),
                         InterpreterName{});

TEST_P(LayoutBytes, AreRefusedOrWithoutEffect) {
  if (GetParam().minor == 12) {
    GTEST_SKIP() << "3.12 publishes no offsets";
  }
  // As itself, and as a version that this release does not know.
  auto future = target_.version;
  future.minor = python::all_layout_facts().back().minor + 1;
  for (const auto& version : {target_.version, future}) {
    auto bytes = head_;
    bytes.at(8 + 2) = std::byte{version.minor};  // _Py_DebugOffsets.version
    const auto parsed = python::parse_layout(version, bytes);
    const auto* const right = std::get_if<RuntimeLayout>(&parsed);
    if (right == nullptr) {
      // The table of an older version.
      EXPECT_NE(version.minor, target_.version.minor) << std::get<std::string>(parsed);
      continue;
    }
    const auto right_objects = std::get<ObjectLayout>(python::object_layout(version, bytes));
    EXPECT_FALSE(python::disprove(memory_, *right, target_.addresses.runtime, code_type()));
    int refused = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      for (unsigned change = 1; change < 256; ++change) {
        const auto was = bytes[i];
        bytes[i] ^= std::byte{static_cast<unsigned char>(change)};
        const auto changed = python::parse_layout(version, bytes);
        const auto objects = python::object_layout(version, bytes);
        bytes[i] = was;
        const auto* const layout = std::get_if<RuntimeLayout>(&changed);
        const bool tested = python::is_tested(version);
        const bool same = layout != nullptr && used(*layout, *right) == used(*right, *right);
        const bool disproved =
            layout != nullptr && !same && !tested &&
            python::disprove(memory_, *layout, target_.addresses.runtime, code_type());
        refused += layout == nullptr || disproved ? 1 : 0;
        EXPECT_TRUE(layout == nullptr || same || disproved)
            << "byte " << i << " (word " << i / 8 << ") changed by " << change;
        if (const auto* const known = std::get_if<ObjectLayout>(&objects)) {
          EXPECT_EQ(*known, right_objects) << "byte " << i << " changed by " << change;
        }
      }
    }
    EXPECT_GT(refused, 30 * 8 * 255) << "most words are used";
  }
}

// By the interpreter's own table.
TEST_P(LayoutBytes, KnowsTheOpcodesThatCallC) {
  if (python::layout_facts(target_.version) == nullptr) {
    GTEST_SKIP() << "a newer version has others";
  }
  PythonProcess python{GetParam(), R"(
import dis, opcode
try:
    from _opcode_metadata import _specialized_opmap
    opcodes = {**opcode.opmap, **_specialized_opmap}
except ImportError:  # 3.12
    opcodes = dis._all_opmap
def calls_c(name):
    python = "_PY" in name.replace("NON_PY", "") or "BOUND_METHOD" in name or "INIT" in name
    return "CALL" in name and not python and "INTRINSIC" not in name
print("ready")
print(sorted(number for name, number in opcodes.items() if calls_c(name)), flush=True)
input()
)"};
  std::vector<unsigned> found;
  const auto parsed = python::parse_layout(target_.version, head_);
  const auto& known = std::get<RuntimeLayout>(parsed).calls_c;
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    if ((known.at(opcode / 64) >> opcode % 64 & 1U) != 0) {
      found.push_back(opcode);
    }
  }
  EXPECT_EQ(fmt::format("[{}]", fmt::join(found, ", ")), python.read_line());
}

}  // namespace
}  // namespace pyinject::test
