#include "serve/access.hpp"

#include "pyinject/base/error.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::serve {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr auto kSecret = "0123456789abcdefghij";

TEST(TokenTest, AllowsItsOwnSecretOnly) {
  const Token token{kSecret};
  const std::string secret = kSecret;
  EXPECT_TRUE(token.allows("Bearer " + secret));
  EXPECT_TRUE(token.allows("bearer " + secret)) << "a scheme has no case";
  for (const auto& wrong :
       {std::string{}, std::string{"Bearer"}, std::string{"Bearer "}, secret,
        "Bearer " + secret + secret, "Bearer " + secret + "k", "Bearer " + secret.substr(0, 19),
        std::string{"Bearer 0123456789abcdefghiJ"}, "Basic " + secret, "Bearer  " + secret}) {
    EXPECT_FALSE(token.allows(wrong)) << wrong;
  }
}

std::string refusal_of(const std::string& path) {
  try {
    (void)Token::read(path);
  } catch (const base::Error& error) {
    return error.what();
  }
  return {};
}

TEST(TokenTest, ComesFromAFileThatOthersCannotRead) {
  const test::TempDir directory;
  const auto path = directory.file("token", std::string{kSecret} + "\n");
  ::chmod(path.c_str(), 0600);
  EXPECT_TRUE(Token::read(path).allows(std::string{"Bearer "} + kSecret));
  ::chmod(path.c_str(), 0640);
  EXPECT_EQ(refusal_of(path), "") << "a group may read it";
  for (const mode_t mode : {0604U, 0602U, 0620U, 0644U}) {
    ::chmod(path.c_str(), mode);
    EXPECT_THAT(refusal_of(path), HasSubstr("others can read or change")) << std::oct << mode;
    EXPECT_THAT(refusal_of(path), Not(HasSubstr(kSecret)));
  }
}

TEST(TokenTest, RefusesWhatIsNoSecret) {
  const test::TempDir directory;
  EXPECT_THAT(refusal_of(directory / "missing"), HasSubstr("cannot open the token file"));
  EXPECT_THAT(refusal_of(directory.path().string()), HasSubstr("is not a regular file"));
  for (const auto& text :
       {std::string{}, std::string{"short"}, std::string(5000, 'a'),
        std::string{"0123456789 abcdefghij"}, std::string{"0123456789\n0123456"}}) {
    const auto path = directory.file("token", text);
    ::chmod(path.c_str(), 0600);
    EXPECT_THAT(refusal_of(path), HasSubstr("a token has 16 to 4096")) << text;
  }
}

TEST(LocalHost, IsThisMachineByNameOrAddress) {
  for (const auto* const host : {"localhost", "LocalHost:6060", "127.0.0.1", "127.0.0.1:6060",
                                 "127.1.2.3:1", "[::1]", "[::1]:6060"}) {
    EXPECT_TRUE(is_local_host(host)) << host;
  }
  for (const auto* const host :
       {"", "evil.example", "evil.example:6060", "127.0.0.1.evil.example", "localhost.evil.example",
        "10.0.0.1", "[::2]:6060", "[::1", "[::1]evil.example", "localhost:evil",
        "localhost:", "127.0.0.1:6060@evil.example", "0.0.0.0"}) {
    EXPECT_FALSE(is_local_host(host)) << host;
  }
}

}  // namespace
}  // namespace pyinject::serve
