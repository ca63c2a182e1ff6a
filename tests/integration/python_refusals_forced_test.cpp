// Refusals for which no interpreter is available: the test writes the state that detection reads
// into the memory of a running one.
#include "elf/elf_file.hpp"
#include "integration/detection.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "python/layout/runtime_layout.hpp"
#include "tracee/tracee_memory.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace pyinject::test {
namespace {

using base::RemoteAddress;
using python::Reason;

class ForcedRefusals : public DetectionTest {
 protected:
  // Also writes to read-only memory, as a tracer may.
  void write(RemoteAddress address, std::uint64_t value) const {
    const auto path = "/proc/" + std::to_string(python_.pid().value()) + "/mem";
    const base::UniqueFd memory{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
    if (::pwrite(memory.get(), &value, sizeof value, static_cast<off_t>(address.value())) !=
        sizeof value) {
      throw base::SystemError{"cannot write " + path, errno};
    }
  }
  [[nodiscard]] RemoteAddress symbol(const python::Target& target, std::string_view name) const {
    const auto path = GetParam().root.empty() || target.interpreter.starts_with(GetParam().root)
                          ? target.interpreter
                          : GetParam().root + target.interpreter;
    auto opened = elf::ElfFile::open(base::UniqueFd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)});
    const auto found = std::get<elf::ElfFile>(opened).find_symbols(std::array{name});
    return target.bias.apply(found.at(std::string{name}).address);
  }

  PythonProcess python_{GetParam(), kIdle};
  python::Target target_ = Attach{}.detect(python_.pid());
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ForcedRefusals);
INSTANTIATE_TEST_SUITE_P(Pythons, ForcedRefusals,
                         testing::ValuesIn(interpreters({.each_version = Prefer::kChrooted})),
                         InterpreterName{});

TEST_P(ForcedRefusals, NamesAnUnsafeVersion) {
  struct Case {
    std::uint64_t hex;
    Reason reason;
    const char* found;
    const char* remedy;
  };
  constexpr auto kCases = std::to_array<Case>({
      {0x031000f0, Reason::kPythonTooNew, "Python 3.16.0", "--engine bpf"},
      {0x030f00a7, Reason::kPreRelease, "Python 3.15.0a7", "use a release"},
      {0x030c00f0, Reason::kBadPatchRelease, "Python 3.12.0", "3.12.1 or later"},
      {0x030d0cf0, Reason::kBadPatchRelease, "Python 3.13.12", "gh-144766"},
      {0x030e05f0, Reason::kBadPatchRelease, "Python 3.14.5", "3.14.6 or later"},
  });
  const auto version = symbol(target_, "Py_Version");
  for (const auto& one : kCases) {
    write(version, one.hex);
    expect_refused_untouched(python_.pid(), one.reason, {one.found, one.remedy});
  }
  const auto& own = target_.version;
  write(version, std::uint64_t{own.major} << 24U | std::uint64_t{own.minor} << 16U |
                     std::uint64_t{own.micro} << 8U | std::uint64_t{own.level} << 4U | own.serial);
  expect_ready(python_.pid());
}

TEST_P(ForcedRefusals, NamesABuildThatOnlyClaimsToBeFreeThreaded) {
  if (!since(13)) {
    GTEST_SKIP() << "3.12 has no such build";
  }
  const auto flag = target_.addresses.runtime + 2 * sizeof(std::uint64_t);  // _Py_DebugOffsets
  write(flag, 1);
  expect_refused_untouched(python_.pid(), Reason::kLayoutMismatch, {"not those of this version"});
  write(flag, 0);
  expect_ready(python_.pid());
}

// The end of each library's last page is in use, and the gap of the stack.
TEST_P(ForcedRefusals, NamesMissingSpaceForTheMailbox) {
  constexpr int kMostPlaces = 3;  // behind libpython and libc, and on the stack
  std::set<std::uint64_t> places;
  for (int i = 0; i < kMostPlaces; ++i) {
    auto detection = python::make_detector()->detect(python_.pid());
    const auto* const target = std::get_if<python::Target>(&detection);
    if (target == nullptr) {
      break;
    }
    EXPECT_TRUE(places.insert(target->addresses.mailbox.value()).second) << "it was in use";
    write(target->addresses.mailbox, 1);
  }
  expect_refused_untouched(python_.pid(), Reason::kNoMailboxSpace, {"are 160 bytes unused"});
}

constexpr auto kTwoThreads =
    "import threading\n"
    "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    "print('ready', flush=True)\n"
    "threading.Event().wait()\n";

// Releases whose exit unmaps trampolines in use; the list of arenas is made invalid.
TEST_P(ForcedRefusals, NamesTrampolinesThatCannotBeKept) {
  const PythonProcess threads{GetParam(), kTwoThreads};
  for (const auto& [pid, refused] : {std::pair{python_.pid(), false}, {threads.pid(), true}}) {
    const auto target = Attach{}.detect(pid);
    std::vector<std::byte> head(python::kDebugOffsetsBytes);
    ASSERT_TRUE(tracee::TraceeMemory{pid}.read(target.addresses.runtime, head));
    const auto layout = std::get<python::RuntimeLayout>(python::parse_layout(target.version, head));
    if (layout.code_arenas == 0) {
      GTEST_SKIP() << "this release keeps them itself";
    }
    ASSERT_TRUE(tracee::TraceeMemory{pid}.write_value(target.addresses.runtime + layout.code_arenas,
                                                      std::uint64_t{8}));
    if (refused) {
      expect_refused_untouched(pid, Reason::kUnsafeExit,
                               {"2 Python threads", "gh-143228", "--engine bpf"});
    } else {
      EXPECT_THAT(Attach{}.detect(pid).warnings,
                  testing::Contains(testing::HasSubstr("gh-143228")));
    }
  }
}

}  // namespace
}  // namespace pyinject::test
