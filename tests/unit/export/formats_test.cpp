#include "pyinject/export/formats.hpp"

#include "export/deflate.hpp"
#include "export/flamegraph.hpp"
#include "report/moved_functions.hpp"
#include "support/decoded_message.hpp"
#include "unit/export/made_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <zlib.h>

namespace pyinject::exports {
namespace {

using report::FunctionKey;
using report::moved_functions;
using report::Profile;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

std::string inflated(std::string_view data, int format) {
  z_stream stream{};
  std::string in{data};
  std::string out(std::size_t{1} << 20U, '\0');
  EXPECT_EQ(::inflateInit2(&stream, format), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::inflate(&stream, Z_FINISH), Z_STREAM_END);
  ::inflateEnd(&stream);
  out.resize(stream.total_out);
  return out;
}

std::string decoded(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  unsigned bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') {
      break;
    }
    bits = (bits << 6U | static_cast<unsigned>(kDigits.find(c))) & 0xFFFFU;
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> static_cast<unsigned>(count) & 0xFFU);
    }
  }
  return out;
}

TEST(Deflate, CanBeInflatedAgain) {
  constexpr int kZlib = 15;
  constexpr int kGzip = 31;
  const std::string text(200'000, 'x');
  EXPECT_EQ(inflated(deflated(text), kZlib), text);
  EXPECT_EQ(inflated(gzipped("abc"), kGzip), "abc");
  EXPECT_EQ(inflated(gzipped(""), kGzip), "");
}

TEST(Base64, HasTheTestVectorsOfRfc4648) {
  const std::vector<std::string> encoded{base64(""),    base64("f"),    base64("fo"),
                                         base64("foo"), base64("foob"), base64("foobar")};
  EXPECT_THAT(encoded, ElementsAre("", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmFy"));
}

TEST(Folded, HasTheStacksOfTheCpuEventOnly) {
  EXPECT_EQ(text_of(two_threads(), "folded"),
            "web;[GIL held];py::outer:/srv/a.py;py::Cart.add:<lambda>:/srv/b 12:7;memcpy 2\n"
            "worker_3;[task fetch 1];py::outer:/srv/a.py 1\n");
}

TEST(Folded, CountsWaitsInNanosecondsIfThereIsNothingElse) {
  auto profile = two_threads();
  std::erase_if(profile.samples, [](const auto& sample) { return sample.event == 0; });
  EXPECT_EQ(text_of(profile, "folded"),
            "worker_3;py::outer:/srv/a.py;[python3.15];do_idle_[k] 700\n");
}

TEST(Folded, HasNoFileOfTheGarbageCollector) {
  auto profile = two_threads();
  profile.functions[0].name = "[gc]";
  profile.functions[0].file.clear();
  EXPECT_THAT(text_of(profile, "folded"), HasSubstr("[task fetch 1];py::[gc] 1\n"));
}

// Numbers of fields: proto/profile.proto of pprof.
TEST(Pprof, SaysWhatTheTimeOfASampleWasUsedFor) {
  constexpr int kGzip = 31;
  auto profile = two_threads();
  profile.samples[1].does = sample::Does::kByteCode;
  const test::DecodedMessage message{inflated(text_of(profile, "pprof"), kGzip)};
  const auto strings = message.texts(6);
  std::vector<std::string> uses;
  for (const auto& sample : message.messages(2)) {
    std::string use;
    for (const auto& label : sample.messages(3)) {
      if (strings.at(label.number(1)) == "use") {
        use = strings.at(label.number(2));
      }
    }
    uses.push_back(std::to_string(sample.numbers(2).front()) + " " + use);
  }
  EXPECT_THAT(uses, UnorderedElementsAre("1 c", "1 python", "0 ", "1 python"))
      << "memcpy, memcpy for byte code, a wait, a Python function";
}

TEST(Pprof, SumsOfForgedPeriodsStayInRange) {
  constexpr int kGzip = 31;
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  auto profile = two_threads();
  profile.samples[0].period = std::numeric_limits<std::uint64_t>::max();
  profile.samples[1].period = std::numeric_limits<std::uint64_t>::max();
  profile.samples[3].period = kMost;
  const test::DecodedMessage message{inflated(text_of(profile, "pprof"), kGzip)};
  std::vector<std::vector<std::uint64_t>> values;
  for (const auto& sample : message.texts(2)) {
    values.push_back(test::DecodedMessage{sample}.numbers(2));
  }
  EXPECT_THAT(values, UnorderedElementsAre(ElementsAre(2, kMost, 0, 0), ElementsAre(0, 0, 1, 700),
                                           ElementsAre(1, kMost, 0, 0)));
}

TEST(Speedscope, HasAProfileForEachThreadAndEvent) {
  const auto json = nlohmann::json::parse(text_of(two_threads(), "speedscope"));
  const auto& profiles = json.at("profiles");
  ASSERT_EQ(profiles.size(), 3U);
  EXPECT_EQ(profiles[0].at("name"), "web 10/10, cpu-clock");
  EXPECT_EQ(profiles[0].at("endValue"), 2);
  EXPECT_EQ(profiles[0].at("samples"), nlohmann::json::parse("[[0,1,2,3],[0,1,2,3]]"));
  EXPECT_EQ(profiles[2].at("unit"), "nanoseconds");
  EXPECT_EQ(profiles[2].at("weights"), nlohmann::json::parse("[700]"));
  EXPECT_EQ(json.at("shared").at("frames").at(2),
            nlohmann::json::parse(R"({"name":"Cart.add;<lambda>","file":"/srv/b 12","line":7})"));
}

TEST(Gecko, HasSamplesWithStacksAndMarkersOfStates) {
  const auto json = nlohmann::json::parse(text_of(two_threads(), "gecko"));
  const auto& web = json.at("threads").at(0);
  EXPECT_EQ(web.at("samples").at("data").size(), 2U);
  const auto& strings = web.at("stringTable");
  const auto& marker = web.at("markers").at("data").at(0);
  EXPECT_EQ(strings.at(marker.at(0).get<std::size_t>()), "GIL held");
  EXPECT_EQ(marker.at(1), 0.0);
  EXPECT_EQ(marker.at(2), 1.0);
  // Only the samples of the CPU are samples; a wait is a marker.
  const auto& worker = json.at("threads").at(1);
  EXPECT_EQ(worker.at("samples").at("data").size(), 1U);
  ASSERT_EQ(worker.at("markers").at("data").size(), 2U);
  EXPECT_EQ(worker.at("markers").at("data").at(0).at(1), 2.0);
  EXPECT_EQ(worker.at("markers").at("data").at(0).at(2), 2.0007);
}

TEST(Gecko, HasAMarkerOfEachCollection) {
  const auto json = nlohmann::json::parse(text_of(collections(), "gecko"));
  const auto& thread = json.at("threads").at(0);
  const auto& schemas = json.at("meta").at("markerSchema");
  using Found = std::tuple<std::string, double, double, std::string>;
  std::vector<Found> found;
  for (const auto& marker : thread.at("markers").at("data")) {
    const auto& data = marker.at(5);
    EXPECT_TRUE(std::ranges::any_of(schemas, [&](const auto& schema) {
      return schema.at("name") == data.at("type");
    })) << data;
    if (data.at("type") == "GC") {
      const auto category = marker.at(4).get<std::size_t>();
      EXPECT_EQ(json.at("meta").at("categories").at(category).at("name"), "GC");
      found.emplace_back(thread.at("stringTable").at(marker.at(0).get<std::size_t>()), marker.at(1),
                         marker.at(2), data.at("seen"));
    }
  }
  // From the first sample, at 5 ms.
  EXPECT_THAT(found,
              ElementsAre(Found{"GC", 0, 15, "3 samples"}, Found{"GC", 20, 22, "1 sample"},
                          Found{"GC", 25, 67, "2 samples"}, Found{"GC", 995, 1000, "1 sample"},
                          Found{"GC", 1995, 1995, "1 sample"}));
}

TEST(JsonLines, HaveAnObjectForEachSample) {
  const auto text = text_of(two_threads(), "jsonl");
  std::vector<nlohmann::json> lines;
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(rest.find('\n') + 1)) {
    lines.push_back(nlohmann::json::parse(rest.substr(0, rest.find('\n'))));
  }
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[2].at("event"), "context-switches");
  EXPECT_EQ(lines[2].at("comm"), "worker 3");
  EXPECT_EQ(lines[2].at("stack").at(0).at("kind"), "kernel");
  EXPECT_EQ(lines[2].at("stack").at(1).at("function"), "[python3.15]");
  EXPECT_TRUE(lines[2].at("stack").at(1).at("line").is_null());
  EXPECT_EQ(lines[0].at("stack").at(1).at("line"), 7);
}

TEST(Formats, WriteSomethingForAnEmptyProfile) {
  for (const auto& format : formats()) {
    EXPECT_NO_THROW((void)text_of(Profile{}, format.name)) << format.name;
  }
}

TEST(Formats, ReplaceInvalidUtf8) {
  auto profile = two_threads();
  profile.functions[0].name = "\xFF";
  EXPECT_TRUE(nlohmann::json::accept(text_of(profile, "speedscope")));
  EXPECT_TRUE(nlohmann::json::accept(text_of(profile, "gecko")));
}

class Page : public testing::Test {
 protected:
  static nlohmann::json data_of(const std::string& page) {
    constexpr std::string_view kBegin = R"(type="application/octet-stream">)";
    constexpr int kZlib = 15;
    const auto begin = page.find(kBegin) + kBegin.size();
    const auto data = page.substr(begin, page.find('<', begin) - begin);
    return nlohmann::json::parse(inflated(decoded(data), kZlib));
  }
};

TEST_F(Page, HasItsDataAndNothingOfTheNetwork) {
  const auto page = flamegraph(two_threads(), nullptr, {.title = "</script>", .facts = "1 s"});
  EXPECT_THAT(page, Not(HasSubstr("http:")));
  EXPECT_THAT(page, Not(HasSubstr("https:")));
  const auto data = data_of(page);
  EXPECT_EQ(data.at("title"), "</script>");
  EXPECT_EQ(data.at("samples").at("weight"), nlohmann::json::parse("[2,1,700]"));
  EXPECT_EQ(data.at("events").at(1).at("unit"), "ns");
  EXPECT_EQ(data.at("events").at(0).at("seconds"), 0.005);
  EXPECT_FALSE(data.at("compares").get<bool>());
}

TEST_F(Page, SaysWhatTheTimeWasUsedFor) {
  auto profile = two_threads();
  profile.samples[1].does = sample::Does::kByteCode;
  const auto data = data_of(flamegraph(profile, nullptr, {}));
  const auto uses = data.at("uses").get<std::vector<std::string>>();
  std::vector<std::string> shown;
  for (const auto& use : data.at("samples").at("use")) {
    shown.push_back(uses.at(use.get<std::size_t>()));
  }
  EXPECT_THAT(shown, ElementsAre("c", "python", "python", ""));
}

TEST_F(Page, HasBothRecordingsToCompare) {
  auto before = two_threads();
  before.functions[0].name = "gone";
  before.samples.resize(1);
  const auto profile = two_threads();
  const auto data = data_of(flamegraph(profile, &before, {}));
  EXPECT_TRUE(data.at("compares").get<bool>());
  EXPECT_EQ(data.at("samples").at("old"), nlohmann::json::parse("[0,0,0,1]"));
  EXPECT_THAT(data.at("functions").at("name").dump(), HasSubstr("gone"));
  EXPECT_EQ(data.at("events").at(0).at("before"), 0.005);
  // Functions that both have are there once.
  const auto names = data.at("functions").at("name").get<std::vector<std::string>>();
  EXPECT_EQ(std::ranges::count(names, "memcpy"), 1);
}

// Each release has a directory of its own.
TEST_F(Page, ComparesFunctionsWhoseFilesAreElsewhere) {
  auto before = two_threads();
  before.functions[0].file = "/srv/v1/a.py";
  before.objects[0].path = "/opt/v1/lib/libc.so.6";
  const auto profile = two_threads();
  const auto data = data_of(flamegraph(profile, &before, {}));
  const auto same = data_of(flamegraph(profile, &profile, {}));
  EXPECT_EQ(data.at("functions"), same.at("functions"));
  EXPECT_EQ(data.at("samples"), same.at("samples"));
  EXPECT_THAT(
      data.at("notes").dump(),
      HasSubstr("2 functions have their files in other directories in the older recording"));
}

TEST(MovedFunctions, HaveTheLongestCommonEndOfTheirPaths) {
  const std::vector<FunctionKey> before{{0, "main", "/srv/v1/web/app.py"},
                                        {0, "main", "/srv/v1/job/app.py"},
                                        {0, "work", "/srv/v1/web/app.py"},
                                        {0, "same", "/usr/lib/json.py"},
                                        {0, "lib", "/v1/xapp.py"}};
  const std::vector<FunctionKey> after{
      {0, "main", "/srv/v2/job/app.py"}, {0, "main", "/srv/v2/web/app.py"},
      {1, "work", "/srv/v2/web/app.py"}, {0, "same", "/usr/lib/json.py"},
      {0, "same", "/other/json.py"},     {0, "lib", "/v2/app.py"}};
  const auto moved = moved_functions(before, after);
  EXPECT_EQ(moved.size(), 2U);
  EXPECT_EQ(moved.at(before[0]), after[1]);
  EXPECT_EQ(moved.at(before[1]), after[0]);
}

TEST(MovedFunctions, AreNotGuessed) {
  const std::vector<FunctionKey> one{{0, "main", "/srv/v1/app.py"}};
  const std::vector<FunctionKey> two{{0, "main", "/a/app.py"}, {0, "main", "/b/app.py"}};
  EXPECT_TRUE(moved_functions(one, two).empty());
  EXPECT_TRUE(moved_functions(two, one).empty());
}

}  // namespace
}  // namespace pyinject::exports
