#include "procfs/namespaces.hpp"

#include "procfs/own_rights.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

namespace pyinject::procfs {
namespace {

using base::Pid;

TEST(Namespaces, AreOursForThisProcess) {
  const Pid self{::getpid()};
  for (const auto kind : {Namespace::kMount, Namespace::kPid, Namespace::kUser}) {
    EXPECT_EQ(in_our_namespace(self, kind), true);
    ASSERT_TRUE(own_namespace_number(kind).has_value());
    EXPECT_EQ(namespace_number(self, kind), own_namespace_number(kind));
  }
  EXPECT_EQ(root_is_ours(self), true);
}

TEST(Namespaces, DifferByTheirKind) {
  EXPECT_NE(own_namespace_number(Namespace::kPid), own_namespace_number(Namespace::kUser));
  EXPECT_NE(own_namespace_number(Namespace::kPid), own_namespace_number(Namespace::kMount));
}

TEST(Namespaces, AreUnknownForNoProcess) {
  EXPECT_EQ(namespace_number(Pid{0x7fffffff}, Namespace::kPid), std::nullopt);
  EXPECT_EQ(in_our_namespace(Pid{0x7fffffff}, Namespace::kPid), std::nullopt);
  EXPECT_EQ(root_is_ours(Pid{0x7fffffff}), std::nullopt);
}

TEST(Namespaces, TheFirstOneHasAFixedNumber) {
  EXPECT_EQ(in_first_pid_namespace(), own_namespace_number(Namespace::kPid) == kFirstPidNamespace);
}

TEST(InnerPid, IsTheLastOfTheNamespaces) {
  Status status;
  status.process = Pid{4711};
  EXPECT_EQ(inner_pid(status), Pid{4711});
  status.namespace_pids = {4711, 12, 3};
  EXPECT_EQ(inner_pid(status), Pid{3});
}

}  // namespace
}  // namespace pyinject::procfs
