#include "cli/page_sources.hpp"

#include "unit/report/made_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace pyinject::cli {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::Field;
using testing::IsEmpty;

class PageSources : public report::MadeProfile {
 protected:
  PageSources() {
    add(1, 1);  // main
    add(5, 3);  // main, load, memcpy
    add(8, 9);  // no Python function
  }
  static report::SourceFile read(const std::string& path, std::uint32_t pid) {
    EXPECT_EQ(pid, 5U);
    return {.lines = {"of", path}};
  }
};

TEST_F(PageSources, BeginWithTheFileOfMostSamples) {
  EXPECT_THAT(page_sources(profile, read),
              ElementsAre(Field(&exports::PageSource::text, "of\n/usr/lib/json.py"),
                          Field(&exports::PageSource::text, "of\n/srv/app/main.py")));
  EXPECT_THAT(profile.notes, IsEmpty());
}

TEST_F(PageSources, SayWhichAreMissing) {
  profile.functions[0].file = "<string>";
  const auto sources = page_sources(profile, [](const std::string& path, std::uint32_t) {
    return report::SourceFile{.lines = {}, .note = path + ": it is gone"};
  });
  EXPECT_THAT(sources, IsEmpty());
  EXPECT_EQ(sources_text(sources), "");
  EXPECT_THAT(profile.notes,
              ElementsAre("without the source of 1 file, such as /usr/lib/json.py: it is gone"));
}

TEST_F(PageSources, HaveALimit) {
  const auto sources = page_sources(profile, [](const std::string&, std::uint32_t) {
    return report::SourceFile{.lines = {std::string(std::size_t{600} << 10U, 'x')}};
  });
  EXPECT_THAT(sources, ElementsAre(Field(&exports::PageSource::file, "/usr/lib/json.py")));
  EXPECT_EQ(sources_text(sources), ", with the source of 1 file (--no-source leaves it out)");
  EXPECT_THAT(profile.notes, ElementsAre(EndsWith("main.py: the page has 600 KiB of others")));
}

TEST_F(PageSources, AreOfFunctionsWithLines) {
  for (auto& frame : profile.frames) {
    frame.line = 0;
  }
  EXPECT_THAT(page_sources(profile, read), IsEmpty());
  EXPECT_THAT(profile.notes, IsEmpty());
}

}  // namespace
}  // namespace pyinject::cli
