#include "push/credentials.hpp"

#include "pyinject/base/error.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::push {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const base::Error& error) {
    return error.what();
  }
  return "";
}

TEST(PushCredentials, BecomeHeaders) {
  EXPECT_THAT(parse_credentials("# mine\n token = a b=c \ntenant=shop\n", "f").headers(),
              ElementsAre("Authorization: Bearer a b=c", "X-Scope-OrgID: shop"));
  EXPECT_THAT(parse_credentials("user=a\npassword=b", "f").headers(),
              ElementsAre("Authorization: Basic YTpi"));
  EXPECT_THAT(parse_credentials("tenant=x", "f").headers(), ElementsAre("X-Scope-OrgID: x"));
}

TEST(PushCredentials, ErrorsNameTheLineOnly) {
  for (const auto* const text :
       {"hunter2", "tokem=hunter2", "token=hunter2\x01", "token=", "token=\xc3\xbc hunter2"}) {
    const auto error = error_of([&] { (void)parse_credentials(std::string{"\n"} + text, "f"); });
    EXPECT_THAT(error, HasSubstr("f, line 2")) << text;
    EXPECT_THAT(error, Not(HasSubstr("hunter2")));
  }
  for (const auto* const text : {"", "# only\n", "password=x", "token=x\nuser=y"}) {
    EXPECT_THAT(error_of([&] { (void)parse_credentials(text, "f"); }),
                HasSubstr("expected a token"));
  }
}

TEST(PushCredentials, AreFoundInText) {
  const auto credentials = parse_credentials("user=bob\npassword=hunter2\n", "f");
  EXPECT_TRUE(credentials.appear_in("it was hunter2!"));
  EXPECT_TRUE(credentials.appear_in("Basic Ym9iOmh1bnRlcjI="));
  EXPECT_FALSE(credentials.appear_in("bob"));
  EXPECT_FALSE(Credentials{}.appear_in("anything"));
}

TEST(PushCredentials, FileMustBePrivate) {
  const test::TempDir directory;
  const auto file = directory.file("credentials", "token=hunter2\n");
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  EXPECT_EQ(read_credentials(file).token, "hunter2");
  for (const mode_t mode : {0640U, 0604U, 0660U, 0644U}) {
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    EXPECT_THAT(error_of([&] { (void)read_credentials(file); }), HasSubstr("chmod 600"));
  }
  EXPECT_THAT(error_of([&] { (void)read_credentials(directory.path()); }),
              HasSubstr("not a regular file"));
  EXPECT_THAT(error_of([&] { (void)read_credentials(directory / "none"); }),
              HasSubstr("cannot open"));
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(file.c_str(), 65534, 65534), 0);
    EXPECT_THAT(error_of([&] { (void)read_credentials(file); }), HasSubstr("belongs to uid 65534"));
  }
}

TEST(PushCredentials, TokenLeavesTheEnvironment) {
  ASSERT_EQ(::setenv("PYINJECT_PUSH_TOKEN", "secret", 1), 0);
  Credentials credentials{.token = {}, .user = "u", .password = "p", .tenant = "t"};
  take_token_from_environment(credentials);
  EXPECT_EQ(std::getenv("PYINJECT_PUSH_TOKEN"), nullptr);
  EXPECT_THAT(credentials.headers(),
              ElementsAre("Authorization: Bearer secret", "X-Scope-OrgID: t"));
  ASSERT_EQ(::setenv("PYINJECT_PUSH_TOKEN", "se\ncret", 1), 0);
  const auto error = error_of([&] { take_token_from_environment(credentials); });
  EXPECT_THAT(error, HasSubstr("not printable"));
  EXPECT_EQ(std::getenv("PYINJECT_PUSH_TOKEN"), nullptr);
}

}  // namespace
}  // namespace pyinject::push
