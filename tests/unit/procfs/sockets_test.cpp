#include "procfs/sockets.hpp"

#include <gtest/gtest.h>

#include <string>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::procfs {
namespace {

constexpr auto kTcp =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 "
    "101 1 0000000000000000 100 0 0 10 0\n"
    "   1: 0100007F:9C40 0200000A:1538 01 00000000:00000000 00:00000000 00000000  1000        0 "
    "102 1 0000000000000000 20 4 30 10 -1\n"
    "   2: 0100007F:9C41 0200000A:1538 02 00000001:00000000 01:00000000 00000000  1000        0 "
    "103 1 0000000000000000 20 4 30 10 -1\n"
    "   3: 0100007F:9C41 0200000A:1538 06 00000001:00000000 01:00000000 00000000  1000        0 "
    "0 1 0000000000000000 20 4 30 10 -1\n";

std::string of(const Sockets& sockets, std::uint64_t inode) {
  const auto found = sockets.find(inode);
  return found == sockets.end() ? "none" : to_string(found->second);
}

TEST(Sockets, NameBothEndsOfTcp) {
  Sockets sockets;
  parse_inet_sockets(kTcp, "TCP", sockets);
  EXPECT_EQ(sockets.size(), 3U);
  EXPECT_EQ(of(sockets, 101), "TCP listening on 127.0.0.1:8080");
  EXPECT_EQ(of(sockets, 102), "TCP 127.0.0.1:40000 -> 10.0.0.2:5432");
  EXPECT_EQ(of(sockets, 103), "TCP 127.0.0.1:40001 -> 10.0.0.2:5432 (connecting)");
}

TEST(Sockets, PutIpv6InBrackets) {
  Sockets sockets;
  parse_inet_sockets(
      "   0: 00000000000000000000000001000000:0035 00000000000000000000000000000000:0000 07 "
      "00000000:00000000 00:00000000 00000000     0        0 7 2 0000000000000000 0\n",
      "UDP", sockets);
  EXPECT_EQ(of(sockets, 7), "UDP [::1]:53");
}

TEST(Sockets, KeepBlanksInUnixPaths) {
  Sockets sockets;
  parse_unix_sockets(
      "Num       RefCount Protocol Flags    Type St Inode Path\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01  31 /run/a socket\n"
      "0000000000000000: 00000003 00000000 00000000 0001 03  32\n"
      "0000000000000000: 00000003 00000000 00000000 0002 01  33 @abstract\n",
      sockets);
  EXPECT_EQ(of(sockets, 31), "UNIX listening on /run/a socket");
  EXPECT_EQ(of(sockets, 32), "UNIX");
  EXPECT_EQ(of(sockets, 33), "UNIX @abstract");
}

TEST(Sockets, LinesThatAreNoSocketsAreSkipped) {
  Sockets sockets;
  parse_inet_sockets("\n 0: 0100007F 0:0 0A a b c d e 101 1\n 0: :1 :2 01 a b c d e 5 1\n:\n",
                     "TCP", sockets);
  parse_unix_sockets("a b c d e f\na b c d e f path\n", sockets);
  EXPECT_TRUE(sockets.empty());
}

TEST(Sockets, IncludeThoseOfThisProcess) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(fd, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  socklen_t size = sizeof any;
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&any), &size), 0);
  struct stat facts {};
  ASSERT_EQ(::fstat(fd, &facts), 0);
  const auto sockets = read_sockets(base::Pid{::getpid()});
  ::close(fd);
  EXPECT_EQ(of(sockets, facts.st_ino),
            "TCP listening on 127.0.0.1:" + std::to_string(ntohs(any.sin_port)));
}

}  // namespace
}  // namespace pyinject::procfs
