// Unexpected builds, made from the installed interpreters: a build that does not fit is refused,
// and the message says what was found.
#include "base/file.hpp"
#include "integration/detection.hpp"
#include "integration/elf_image.hpp"
#include "procfs/maps.hpp"
#include "pyinject/base/error.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;
using base::Deadline;
using base::Pid;
using python::Reason;
using testing::HasSubstr;

class LayoutRefusals : public DetectionTest {
 protected:
  // In the host's file system: map_elf runs there.
  SeenDirectory directory_{Interpreter{}};
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LayoutRefusals);
INSTANTIATE_TEST_SUITE_P(Pythons, LayoutRefusals, testing::ValuesIn(interpreters()),
                         InterpreterName{});

// A process that maps FILE as an interpreter would, but does not run it.
class Mapped {
 public:
  explicit Mapped(const std::string& file, bool partly = false)
      : child_{partly ? std::vector<std::string>{targets_dir() + "/map_elf", file, "partly"}
                      : std::vector<std::string>{targets_dir() + "/map_elf", file}} {
    const auto line = child_.read_line(Deadline::after(kPatience));
    EXPECT_EQ(line, "ready") << child_.err();
  }
  [[nodiscard]] Pid pid() const { return child_.pid(); }

 private:
  ChildProcess child_;
};

// The offset of the evaluator's pointer in the interpreter state, detected in an intact one.
std::uint32_t field_offset(const Interpreter& interpreter) {
  const PythonProcess python{interpreter, kIdle};
  const auto at = Attach{}.detect(python.pid()).addresses;
  return static_cast<std::uint32_t>(at.eval_frame.value() - at.main_interpreter.value());
}

std::string as_bytes(std::uint32_t value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// Replaces the last WAS in CODE.
void patch(std::span<char> code, std::uint32_t was, std::uint32_t now) {
  const auto pattern = as_bytes(was);
  const auto found = std::find_end(code.begin(), code.end(), pattern.begin(), pattern.end());
  ASSERT_NE(found, code.end());
  std::ranges::copy(as_bytes(now), found);
}

TEST_P(LayoutRefusals, NamesAnAccessorWithAnotherOffset) {
  const auto right = field_offset(GetParam());
  const SeenDirectory directory{GetParam()};
  {
    const PythonProcess python{with_copy(GetParam(), directory, "python3-good"), kIdle};
    expect_ready(python.pid());
  }
  ElfImage image{interpreter_file(GetParam())};
  patch(image.code("_PyInterpreterState_GetEvalFrameFunc"), right, right + 8);
  directory.write("python3-bad", image.bytes());
  const PythonProcess python{with_copy(GetParam(), directory, "python3-bad"), kIdle};
  expect_refused_untouched(
      python.pid(), Reason::kLayoutMismatch,
      {fmt::format("at {}", right), fmt::format("at {}", right + 8), "report this build"});
}

TEST_P(LayoutRefusals, NamesAnAccessorThatIsNoCode) {
  ElfImage image{interpreter_file(GetParam())};
  std::ranges::fill(image.code("_PyInterpreterState_GetEvalFrameFunc"), '\x06');  // invalid opcode
  const SeenDirectory directory{GetParam()};
  directory.write("python3-bad", image.bytes());
  const PythonProcess python{with_copy(GetParam(), directory, "python3-bad"), kIdle};
  expect_refused_untouched(python.pid(), Reason::kLayoutMismatch,
                           {fmt::format("at {}", field_offset(GetParam())), "unknown offset"});
}

TEST_P(LayoutRefusals, NamesAQueueAtAnotherOffset) {
  ElfImage image{interpreter_file(GetParam())};
  // Overwrites the whole function; an idle program never calls it.
  const auto code = image.code("_PyEval_AddPendingCall");
  std::ranges::fill(code, '\x90');
  code.back() = '\xc3';
  const SeenDirectory directory{GetParam()};
  directory.write("python3-bad", image.bytes());
  const PythonProcess python{with_copy(GetParam(), directory, "python3-bad"), kIdle};
  expect_refused_untouched(python.pid(), Reason::kLayoutMismatch,
                           {"pending calls", "_PyRuntime + ", "_PyEval_AddPendingCall"});
}

// The following files are only mapped: a loader would refuse some of them.
TEST_P(LayoutRefusals, TakesAMappedFileForUninitialized) {
  const Mapped process{interpreter_file(GetParam())};
  expect_refused_untouched(process.pid(), Reason::kNotInitialized, {"not initialized"});
}

// Its loader has only mapped it up to its code.
TEST_P(LayoutRefusals, TakesAPartlyMappedFileForBeingLoaded) {
  const Mapped process{interpreter_file(GetParam()), true};
  expect_refused_untouched(process.pid(), Reason::kNotInitialized, {"being loaded"});
  EXPECT_FALSE(refused(process.pid()).initialized);
  const auto observer = python::make_detector(python::Purpose::kObserve);
  expect_refused(observer->detect(process.pid()), Reason::kNotInitialized, {"being loaded"});
}

TEST_P(LayoutRefusals, NamesATrampolineWithoutAnEnd) {
  ElfImage image{interpreter_file(GetParam())};
  image.rename_symbol("_Py_trampoline_func_end");
  directory_.write("python3-bad", image.bytes());
  const Mapped process{directory_.here("python3-bad")};
  expect_refused_untouched(process.pid(), Reason::kNoPerfTrampoline,
                           {"python3-bad", "without the perf trampoline"});
}

TEST_P(LayoutRefusals, NamesATrampolineWithADistantEnd) {
  for (const std::int64_t delta : {std::int64_t{1} << 20, -(std::int64_t{1} << 12)}) {
    ElfImage image{interpreter_file(GetParam())};
    image.move_symbol("_Py_trampoline_func_end", delta);
    directory_.write("python3-bad", image.bytes());
    const Mapped process{directory_.here("python3-bad")};
    expect_refused_untouched(process.pid(), Reason::kBrokenTrampoline,
                             {"bytes long", "BOLT", delta > 0 ? "be 1048" : "be -4"});
  }
}

TEST_P(LayoutRefusals, NamesAMissingSymbol) {
  for (const auto* const symbol :
       {"_PyRuntime", "PyRun_SimpleString", "Py_AddPendingCall", "_PyEval_AddPendingCall",
        "PyGILState_Ensure", "PyGILState_Release", "_PyInterpreterState_GetEvalFrameFunc"}) {
    ElfImage image{interpreter_file(GetParam())};
    image.rename_symbol(symbol);
    directory_.write("python3-bad", image.bytes());
    const Mapped process{directory_.here("python3-bad")};
    expect_refused_untouched(process.pid(), Reason::kNoLibpythonSymbols,
                             {"python3-bad", std::string{"not export "} + symbol, "symbol table"});
  }
}

// The interpreter contains its C library, but the process also has glibc mapped, as for
// getaddrinfo().
TEST_P(LayoutRefusals, NamesAStaticInterpreter) {
  ElfImage image{interpreter_file(GetParam())};
  image.rename_symbol("PyObject_GetAIter", "__libc_start_main");
  directory_.write("python3-bad", image.bytes());
  const Mapped process{directory_.here("python3-bad")};
  expect_refused_untouched(process.pid(), Reason::kNoMailboxSpace,
                           {"statically linked", "python3-bad"});
}

// The path of PID's C library for this test.
std::string c_library(Pid pid) {
  const auto maps = procfs::read_maps(pid).value();
  for (const auto& mapping : maps) {
    if (mapping.path.ends_with("/libc.so.6")) {
      return mapping.path;
    }
  }
  throw base::Error{"it has no libc.so.6"};
}

// Independent of the file's name: musl's library can be libc.so.
TEST_P(LayoutRefusals, NamesALibraryOtherThanGlibc) {
  const SeenDirectory directory{GetParam()};
  {
    const PythonProcess python{GetParam(), kIdle};
    ElfImage image{c_library(python.pid())};
    image.rename_symbol("__pthread_unwind_next");
    directory.write("libc.so", image.bytes());
  }
  const PythonProcess python{with_preloaded(GetParam(), directory.seen("libc.so")), kIdle};
  expect_refused_untouched(python.pid(), Reason::kNoMailboxSpace,
                           {"not glibc", directory.seen("libc.so")});
}

TEST_P(LayoutRefusals, NamesAnInterpreterWithoutExports) {
  ElfImage image{interpreter_file(GetParam())};
  image.rename_symbol("Py_Initialize");
  directory_.write("python3-bad", image.bytes());
  directory_.write("something-else", image.bytes());
  const Mapped named{directory_.here("python3-bad")};
  expect_refused_untouched(named.pid(), Reason::kNoLibpythonSymbols,
                           {"python3-bad", "exports no CPython symbols"});
  const Mapped nameless{directory_.here("something-else")};
  expect_refused(python::make_detector()->detect(nameless.pid()), Reason::kNotPython, {});
}

// Any user can create a file whose name ends up in our messages.
TEST_P(LayoutRefusals, MakesFileNamesPrintable) {
  const std::string name = "python3\n\x1b[2J\x07";
  ElfImage image{interpreter_file(GetParam())};
  image.rename_symbol("_Py_trampoline_func_end");
  directory_.write(name, image.bytes());
  const Mapped process{directory_.here(name)};
  const auto detection = python::make_detector()->detect(process.pid());
  expect_refused(detection, Reason::kNoPerfTrampoline, {"[2J"});
  const auto* refused = std::get_if<python::Refused>(&detection);
  ASSERT_NE(refused, nullptr);
  EXPECT_TRUE(std::ranges::all_of(refused->interpreter, [](unsigned char c) { return c >= ' '; }));
}

// Cached facts about a file must not be used for its replacement.
TEST_P(LayoutRefusals, ReadsAReplacedFileAgain) {
  const auto detector = python::make_detector();
  ElfImage image{interpreter_file(GetParam())};
  const auto good = image.bytes();
  image.rename_symbol("_Py_trampoline_func_end");
  directory_.write("python3-some", image.bytes());
  {
    const Mapped process{directory_.here("python3-some")};
    expect_refused(detector->detect(process.pid()), Reason::kNoPerfTrampoline, {});
  }
  directory_.write("python3-some", good);  // the same inode
  const Mapped process{directory_.here("python3-some")};
  expect_refused(detector->detect(process.pid()), Reason::kNotInitialized, {});
}

}  // namespace
}  // namespace pyinject::test
