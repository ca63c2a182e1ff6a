#include "procfs/proc_mount.hpp"

#include <gtest/gtest.h>

#include <string>

namespace pyinject::procfs {
namespace {

constexpr auto kRoot = "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n";
constexpr auto kProc = "22 21 0:20 / /proc rw,nosuid shared:2 - proc proc rw";

TEST(HiddenProcesses, AreAnOptionOfTheMount) {
  EXPECT_EQ(parse_hidden_processes(std::string{kRoot} + kProc + ",hidepid=invisible,gid=4\n"),
            "invisible");
  EXPECT_EQ(parse_hidden_processes(std::string{kProc} + ",hidepid=2\n" + kRoot), "2");
}

TEST(HiddenProcesses, AreNoneWithoutTheOptionOrIfItIsOff) {
  EXPECT_EQ(parse_hidden_processes(std::string{kRoot} + kProc + "\n"), "");
  EXPECT_EQ(parse_hidden_processes(std::string{kProc} + ",hidepid=off\n"), "");
}

TEST(HiddenProcesses, DependOnTheLastMount) {
  EXPECT_EQ(parse_hidden_processes(std::string{kProc} + ",hidepid=2\n" + kProc + "\n"), "");
}

TEST(HiddenProcesses, AreUnknownWithoutProc) {
  EXPECT_EQ(parse_hidden_processes(kRoot), std::nullopt);
  EXPECT_EQ(parse_hidden_processes("21 1 8:1 / /proc"), std::nullopt);
}

}  // namespace
}  // namespace pyinject::procfs
