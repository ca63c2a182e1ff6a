#include "push/destination.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace pyinject::push {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Destination valid(const std::string& text) {
  auto parsed = parse_destination(text);
  if (const auto* const error = std::get_if<DestinationError>(&parsed)) {
    ADD_FAILURE() << error->why;
    return {};
  }
  return std::get<Destination>(parsed);
}

std::string refusal_of(const std::string& text) {
  const auto parsed = parse_destination(text);
  const auto* const error = std::get_if<DestinationError>(&parsed);
  return error == nullptr ? "" : error->why;
}

TEST(PushDestination, IsAKindWithAUrlOrADirectory) {
  const auto local = valid("pyroscope=http://127.0.0.1:4040//");
  EXPECT_EQ(local.store->kind, "pyroscope");
  EXPECT_EQ(local.place, "http://127.0.0.1:4040");
  EXPECT_EQ(local.name(), "pyroscope=http://127.0.0.1:4040");
  EXPECT_FALSE(local.is_directory());
  EXPECT_EQ(valid("parca=https://parca.example/x").place, "https://parca.example/x");
  const auto directory = valid("pprof-dir=/srv/a=b@c");
  EXPECT_TRUE(directory.is_directory());
  EXPECT_EQ(directory.place, "/srv/a=b@c");
}

TEST(PushDestination, HasOtlpsPathUnlessItHasItsOwn) {
  EXPECT_EQ(valid("otlp=http://[::1]:4318").place, "http://[::1]:4318/v1development/profiles");
  EXPECT_EQ(valid("otlp=http://host//").place, "http://host/v1development/profiles");
  EXPECT_EQ(valid("otlp=https://host/otlp/x/").place, "https://host/otlp/x");
}

TEST(PushDestination, IsEncryptedOrOnThisMachine) {
  for (const auto* const url : {"http://127.0.0.1:1", "http://127.8.9.1", "http://localhost:1/",
                                "http://[::1]:80", "https://store.example"}) {
    EXPECT_TRUE(valid(std::string{"parca="} + url).encrypted) << url;
  }
  for (const auto* const url :
       {"http://store.example", "http://10.0.0.1:4040", "http://localhost.example",
        "http://127.0.0.1.example", "http://[::2]:80", "http://127.1.example"}) {
    EXPECT_FALSE(valid(std::string{"parca="} + url).encrypted) << url;
  }
}

TEST(PushDestination, RefusesSecretsWithoutPrintingThem) {
  for (const auto* const text :
       {"pyroscope=http://user:hunter2@host", "pyroscope=https://hunter2@host/x",
        "pyroscope=http:hunter2", "hunter2", "pyroscop=http://u:hunter2@host",
        "pyroscope=http://host/?key=hunter2", "pyroscope=http://host:hunter2/"}) {
    const auto error = refusal_of(text);
    EXPECT_NE(error, "") << text;
    if (std::string{text} != "hunter2") {  // given as the kind
      EXPECT_THAT(error, Not(HasSubstr("hunter2")));
    }
  }
  EXPECT_THAT(refusal_of("pyroscope=http://user:hunter2@host"),
              AllOf(HasSubstr("--push-credentials FILE"), HasSubstr("PYINJECT_PUSH_TOKEN")));
  EXPECT_THAT(refusal_of("x=y"),
              HasSubstr("expected pyroscope=URL, parca=URL, otlp=URL, pprof-dir=DIR"));
}

TEST(PushDestination, OtherUrlsAreRefused) {
  for (const auto* const url : {"", "ftp://host", "http://", "http:///x", "http://host:0",
                                "http://host:99999", "http://[::1", "http://ho st", "http://h\\x",
                                "http://host/#x", "http://host\n", "//host", "file:///etc"}) {
    EXPECT_NE(refusal_of(std::string{"parca="} + url), "") << url;
  }
  EXPECT_NE(refusal_of("parca=http://" + std::string(4000, 'x')), "");
  EXPECT_NE(refusal_of("pprof-dir="), "");
}

}  // namespace
}  // namespace pyinject::push
