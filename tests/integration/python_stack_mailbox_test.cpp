// The mailbox at the top of the stack, where no library has room for it: static programs, and data
// that ends with a page.
#include "integration/detection.hpp"
#include "integration/elf_image.hpp"
#include "procfs/maps.hpp"
#include "support/child_process.hpp"
#include "support/patience.hpp"

#include <gmock/gmock.h>

#include <memory>

namespace pyinject::test {
namespace {

using python::Mechanism;
using python::Reason;
using python::TrampolineState;

// Answers each line with a sum. `title` overwrites the texts of the arguments and the environment,
// as programs do that change their title; `fork` answers from a child.
constexpr const char* kProgramOfMailboxes = R"(
import ctypes, os, sys
def triangle(n):
    return n + triangle(n - 1) if n else 0
def overwrite_title():
    words = open('/proc/self/stat').read().rpartition(')')[2].split()
    begin, end = int(words[48 - 3]), int(words[51 - 3])
    ctypes.memset(begin, 0x78, end - begin)
print('ready', flush=True)
for line in sys.stdin:
    if line == 'title\n' and os.path.exists('/proc/self/stat'):  # not in a chroot
        overwrite_title()
    child = os.fork() if line == 'fork\n' else 0
    if child:
        os.waitpid(child, 0)
        continue
    print(triangle(10), sys.is_stack_trampoline_active(), flush=True)
    if line == 'fork\n':
        os._exit(0)
)";

class StackMailbox : public DetectionTest {
 protected:
  // GetParam() with copies of its libraries whose data fill their last pages.
  [[nodiscard]] Interpreter without_room() {
    const PythonProcess python{GetParam(), kIdle};
    std::string copies;
    const auto maps = procfs::read_maps(python.pid()).value();
    for (const auto& mapping : maps) {
      const auto name = mapping.path.substr(mapping.path.rfind('/') + 1);
      const bool is_libc = name == "libc.so.6" && mapping.executable;
      if (is_libc || (mapping.executable && name.starts_with("libpython3"))) {
        ElfImage image{GetParam().root.empty() || mapping.path.starts_with(GetParam().root)
                           ? mapping.path
                           : GetParam().root + mapping.path};
        image.fill_last_page();
        directory_.write(name, image.bytes());
        copies += (copies.empty() ? "" : ":") + directory_.seen(name);
      }
    }
    return copies.empty() ? GetParam() : with_preloaded(GetParam(), copies);
  }

  // In one of 46 processes, the kernel leaves less than the mailbox needs.
  [[nodiscard]] static std::unique_ptr<PythonProcess> with_a_gap(const Interpreter& interpreter) {
    constexpr int kMost = 6;
    for (int i = 0; i < kMost; ++i) {
      auto python = std::make_unique<PythonProcess>(interpreter, kProgramOfMailboxes);
      const auto detection = python::make_detector()->detect(python->pid());
      const auto* const refused = std::get_if<python::Refused>(&detection);
      if (refused == nullptr || refused->refusal.reason != Reason::kNoMailboxSpace) {
        return python;
      }
    }
    return nullptr;
  }

  SeenDirectory directory_{GetParam()};
  Attach attach_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StackMailbox);
INSTANTIATE_TEST_SUITE_P(Pythons, StackMailbox, testing::ValuesIn(interpreters()),
                         InterpreterName{});

TEST_P(StackMailbox, ServesWhereNoLibraryHasRoom) {
  const auto python = with_a_gap(without_room());
  ASSERT_NE(python, nullptr);
  const auto ask = [&python](const std::string& line) {
    python->send_line(line);
    return python->read_line();
  };
  const auto mailbox = attach_.detect(python->pid()).addresses.mailbox;
  const auto maps = procfs::read_maps(python->pid()).value();
  ASSERT_NE(procfs::find_mapping(maps, mailbox), nullptr);
  EXPECT_EQ(procfs::find_mapping(maps, mailbox)->path, "[stack]");

  EXPECT_EQ(attach_.activate(python->pid()).before, TrampolineState::kOff);
  EXPECT_EQ(ask("work"), "55 True");
  EXPECT_EQ(ask("title"), "55 True");
  EXPECT_EQ(ask("fork"), "55 True");
  EXPECT_EQ(attach_.detect(python->pid()).state, TrampolineState::kOnByUs);
  EXPECT_EQ(attach_.deactivate(python->pid()).mechanism, Mechanism::kStore);
  EXPECT_EQ(ask("fork"), "55 False");
  EXPECT_EQ(attach_.activate(python->pid()).mechanism, Mechanism::kStore) << "it was found again";
  EXPECT_EQ(ask("work"), "55 True");
  attach_.deactivate(python->pid());
  python->child().close_stdin();
  EXPECT_EQ(python->child().wait(base::Deadline::after(kPatience)), ExitStatus{});
}

// The kernel leaves no gap then.
TEST_P(StackMailbox, NeedsARandomizedAddressSpace) {
  const PythonProcess python{wrapped(without_room(), {"setarch", "-R"}), kIdle};
  expect_refused_untouched(python.pid(), Reason::kNoMailboxSpace,
                           {"top of its stack", "--engine bpf", "setarch -R"});
}

}  // namespace
}  // namespace pyinject::test
