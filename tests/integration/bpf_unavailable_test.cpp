// Kernels that lack something that the BPF engine needs, simulated by files mounted over the
// kernel's own in a mount namespace.
#include "integration/rights.hpp"
#include "support/bpf_engine.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"
#include "support/untouched.hpp"

#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <vector>

namespace pyinject::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

struct Kernel {
  std::string reason;
  std::string mounts;  // shell commands
  std::string remedy;
};

// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest looks for
void PrintTo(const Kernel& kernel, std::ostream* stream) { *stream << kernel.reason; }

constexpr auto kNoBtf = "mount -t tmpfs none /sys/kernel/btf";

// BTF without any types: the kernel refuses the program with EINVAL, as a kernel does that lacks
// one of its helpers or locks it down.
constexpr auto kNoTypes =
    "mount -t tmpfs none /sys/kernel/btf && "
    R"(printf '\237\353\1\0\30\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0' > /sys/kernel/btf/vmlinux)";

constexpr auto kLockdown =
    " && mount -t tmpfs none /sys/kernel/security && "
    "echo 'none integrity [confidentiality]' > /sys/kernel/security/lockdown";

class BpfUnavailable : public testing::TestWithParam<Kernel> {
 protected:
  void SetUp() override {
    if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    const auto found = interpreters({.root = false});
    if (found.empty()) {
      GTEST_SKIP() << "no interpreter outside of a chroot is here";
    }
    python_ = found.back();
    if (const auto mounted = run(there({"true"})); mounted.status != ExitStatus{}) {
      GTEST_SKIP() << "nothing can be mounted: " << mounted.err;
    }
  }
  // Wraps COMMAND to run on such a kernel.
  [[nodiscard]] static std::vector<std::string> there(const std::vector<std::string>& command) {
    std::vector<std::string> argv{
        "unshare", "--mount", "sh", "-c", GetParam().mounts + " && exec \"$@\"", "sh"};
    argv.insert(argv.end(), command.begin(), command.end());
    return argv;
  }
  [[nodiscard]] RunResult record(const PythonProcess& target, const std::string& engine) const {
    return run(there({tool(), "record", "--engine", engine, "-e", "cpu-clock", "-F", "499", "-p",
                      std::to_string(target.pid().value()), "-o", directory_ / "data", "--",
                      "sleep", "0.3"}));
  }
  [[nodiscard]] const Interpreter& python() const { return *python_; }

 private:
  TempDir directory_;
  std::optional<Interpreter> python_;
};

TEST_P(BpfUnavailable, IsToldAndNothingHappens) {
  const PythonProcess target{python(), kIdle};
  const Untouched before{target.pid()};
  const auto refused = record(target, "bpf");
  EXPECT_EQ(refused.status, (ExitStatus{.code = 125}));
  EXPECT_THAT(refused.err, AllOf(HasSubstr("error: --engine bpf: the kernel "),
                                 HasSubstr("(" + GetParam().reason + "): " + GetParam().remedy)));
  EXPECT_THAT(before.differences(), IsEmpty());
}

TEST_P(BpfUnavailable, TheChoiceIsTheTrampoline) {
  const PythonProcess target{python(), kBusy};
  const auto recorded = record(target, "auto");
  EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  EXPECT_THAT(recorded.err, AllOf(HasSubstr("warning: --engine auto: the kernel "),
                                  HasSubstr("(" + GetParam().reason + "): "),
                                  HasSubstr("trampoline on, stopped")));
}

INSTANTIATE_TEST_SUITE_P(Cases, BpfUnavailable,
                         testing::Values(Kernel{"no_btf", kNoBtf,
                                                "use a kernel with CONFIG_DEBUG_INFO_BTF"},
                                         Kernel{"kernel_too_old", kNoTypes, "Linux 5.17 or later"},
                                         Kernel{"lockdown", std::string{kNoTypes} + kLockdown,
                                                "use a kernel that is not"}),
                         [](const auto& one) { return one.param.reason; });

}  // namespace
}  // namespace pyinject::test
