#include "serve/listening_socket.hpp"

#include "pyinject/base/error.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

#include <sys/stat.h>

namespace pyinject::serve {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

template <typename Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const base::Error& error) {
    return error.what();
  }
  return {};
}

TEST(ListenAddressTest, IsAnAddressWithAPortOrAUnixSocket) {
  EXPECT_TRUE(parse_listen_address("127.0.0.1:6060").is_loopback());
  EXPECT_TRUE(parse_listen_address("localhost:6060").is_loopback());
  EXPECT_TRUE(parse_listen_address("[::1]:6060").is_loopback());
  EXPECT_FALSE(parse_listen_address("0.0.0.0:6060").is_loopback());
  EXPECT_FALSE(parse_listen_address("[::]:6060").is_loopback());
  EXPECT_FALSE(parse_listen_address("[::ffff:127.0.0.1]:6060").is_loopback());
  EXPECT_TRUE(parse_listen_address("unix:/run/a.sock").is_unix());
  for (const auto* const text : {"", "6060", ":6060", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
                                 "127.0.0.1:-1", "::1:6060", "[::1]", "[127.0.0.1]:6060",
                                 "example.com:6060", "unix:", "unix:/run/", "[]:1"}) {
    EXPECT_THAT(error_of([&] { (void)parse_listen_address(text); }), HasSubstr("expected ADDRESS"))
        << text;
  }
}

TEST(ListeningSocketTest, TakesAFreePort) {
  const ListeningSocket one{{.address = "127.0.0.1"}};
  const ListeningSocket other{{.address = "127.0.0.1"}};
  EXPECT_THAT(one.name(), StartsWith("http://127.0.0.1:"));
  EXPECT_NE(one.name(), other.name());
}

class UnixSocket : public testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return directory_ / "a.sock"; }
  [[nodiscard]] const test::TempDir& directory() const { return directory_; }

 private:
  test::TempDir directory_{"/tmp"};  // the path of a socket is short
};

TEST_F(UnixSocket, IsForItsUserOnlyAndIsRemoved) {
  {
    const ListeningSocket socket{{.path = path()}};
    EXPECT_EQ(socket.name(), "unix:" + path());
    struct stat facts {};
    ASSERT_EQ(::lstat(path().c_str(), &facts), 0);
    EXPECT_TRUE(S_ISSOCK(facts.st_mode));
    EXPECT_EQ(facts.st_mode & 0777U, 0600U);
    EXPECT_THAT(error_of([&] { const ListeningSocket second{{.path = path()}}; }),
                HasSubstr("another process listens to"));
    EXPECT_TRUE(std::filesystem::exists(path()));
  }
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(UnixSocket, ReplacesOnlyASocketThatIsNotUsed) {
  const auto file = directory().file("a.sock", "precious");
  EXPECT_THAT(error_of([&] { const ListeningSocket socket{{.path = path()}}; }),
              HasSubstr("exists and is not a socket"));
  EXPECT_EQ(test::contents_of(file), "precious");
  std::filesystem::remove(file);
  std::filesystem::create_symlink(directory() / "elsewhere", path());
  EXPECT_THAT(error_of([&] { const ListeningSocket socket{{.path = path()}}; }),
              HasSubstr("exists and is not a socket"));
  EXPECT_FALSE(std::filesystem::exists(directory() / "elsewhere"));
  std::filesystem::remove(path());
  {
    // As a killed server leaves it: the name outlives the socket.
    const ListeningSocket killed{{.path = path()}};
    std::filesystem::rename(path(), directory() / "left");
  }
  std::filesystem::rename(directory() / "left", path());
  EXPECT_EQ(error_of([&] { const ListeningSocket socket{{.path = path()}}; }), "");
}

TEST_F(UnixSocket, IsNotRemovedIfAnotherServerOwnsIt) {
  std::optional<ListeningSocket> first;
  first.emplace(ListenAddress{.path = path()});
  std::filesystem::remove(path());
  const ListeningSocket second{{.path = path()}};
  first.reset();
  EXPECT_TRUE(std::filesystem::exists(path()));
}

}  // namespace
}  // namespace pyinject::serve
