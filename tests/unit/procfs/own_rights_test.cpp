#include "procfs/own_rights.hpp"

#include "procfs/sysctl.hpp"

#include <gtest/gtest.h>

namespace pyinject::procfs {
namespace {

TEST(OwnRights, RootIsNotToldToBecomeRoot) {
  EXPECT_EQ(how_to_get(Capability::kSysPtrace, false, 0, true),
            "run as root or grant CAP_SYS_PTRACE");
  EXPECT_EQ(how_to_get(Capability::kPerfmon, true, 1ULL << 19U, true),
            "root lacks CAP_PERFMON here: grant it (docker run --cap-add PERFMON)");
  EXPECT_EQ(
      how_to_get(Capability::kSysPtrace, true, 1ULL << 19U, true),
      "root has CAP_SYS_PTRACE only inside its user namespace: run perf-pyinject in the host's");
  EXPECT_EQ(how_to_get(Capability::kSysPtrace, true, 1ULL << 19U, false),
            "the kernel refuses although root has CAP_SYS_PTRACE: a security module may forbid it "
            "(/sys/kernel/security/lsm)");
}

TEST(OwnRights, AnEventThatMayNotBeOpenedNamesTheSysctl) {
  const auto level = read_sysctl("kernel.perf_event_paranoid").value_or("unknown");
  EXPECT_EQ(how_to_open_events("run as root", 1),
            "kernel.perf_event_paranoid is " + level +
                ": run as root, or lower it with sysctl kernel.perf_event_paranoid=1");
}

TEST(OwnRights, ProcIsOurs) { EXPECT_TRUE(proc_is_of_our_pid_namespace()); }

}  // namespace
}  // namespace pyinject::procfs
