// The names of an image in each perf: from the file, from the build-id cache, on another machine.
#include "pyinject/weave/symbol_image.hpp"

#include "e2e/perf_recording.hpp"
#include "e2e/sampled_image_data.hpp"
#include "support/child_process.hpp"
#include "support/temp_dir.hpp"
#include "weave/build_id_cache.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using weave::AddressRange;
using weave::ImageSymbol;

// Never a process: pid_max is at most 4194304.
constexpr std::uint32_t kPid = 4194305;
constexpr std::uint64_t kArena = 0x7f0000010000;
constexpr std::uint64_t kOther = 0x10000000000;
const std::string image_name = fmt::format("/nonexistent/python-{}", kPid);

const std::array known_ranges = {AddressRange{kArena, kArena + 0x10000},
                                 AddressRange{kOther, kOther + 0x1000}};
const std::array known_symbols = {
    ImageSymbol{.address = kArena, .size = 32, .name = "py::leaf:/a b/c.py"},
    ImageSymbol{.address = kArena + 32, .size = 0, .name = "py::A.<lambda>:/x.py:12"},
    ImageSymbol{.address = kArena + 64, .size = 32, .name = "py::<module>:/x.py"},
    ImageSymbol{.address = kOther, .size = 16, .name = "py::of<<(int, A):" + std::string(500, 'n')},
    ImageSymbol{.address = kOther + 0xff0, .size = 0, .name = "py::f\u00fcnf:/z.py"}};

// An image, a recording with samples in it, and their own build-id cache.
class MadeRecording {
 public:
  // FILE: the image's path in the recording; empty: the actual one.
  MadeRecording(std::string perf, const std::string& file,
                const std::string& leaf = known_symbols[0].name)
      : perf_{std::move(perf)} {
    std::vector<ImageSymbol> symbols{known_symbols.begin(), known_symbols.end()};
    symbols[0].name = leaf;
    const auto image = weave::make_symbol_image(symbols, known_ranges);
    const std::string_view bytes{
        reinterpret_cast<const char*>(image.bytes.data()),  // NOLINT: bytes as text
        image.bytes.size()};
    image_ = directory_.file("image", bytes);
    SampledImageData data;
    data.add_comm(kPid, "served");
    for (const AddressRange& range : known_ranges) {
      data.add_mapping(kPid, range.begin, range.end - range.begin, file.empty() ? image_ : file,
                       image.build_id);
    }
    for (const std::uint64_t inside : {0U, 13U}) {
      std::vector<std::uint64_t> chain;
      chain.reserve(known_symbols.size());
      for (const ImageSymbol& symbol : known_symbols) {
        chain.push_back(symbol.address + inside);
      }
      data.add_sample(kPid, chain);
    }
    data_ = directory_.file("perf.data", data.bytes());
    use_cache("cache");
  }

  // Creates a script that runs perf with NAME as its build-id cache.
  void use_cache(const std::string& name) {
    with_cache_ =
        directory_.file("perf-with-cache", "#!/bin/sh\nexec '" + perf_ + "' --buildid-dir '" +
                                               directory_ / name + "' \"$@\"\n");
    fs::permissions(with_cache_, fs::perms::owner_all);
  }
  [[nodiscard]] const std::string& perf() const { return with_cache_; }
  [[nodiscard]] const std::string& image() const { return image_; }
  [[nodiscard]] const TempDir& directory() const { return directory_; }
  [[nodiscard]] std::optional<std::string> add() const {
    return weave::add_to_build_id_cache(with_cache_, image_, base::Deadline::after(60s));
  }
  [[nodiscard]] std::string run_perf(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), with_cache_);
    RunOptions options;
    options.child.directory = directory_.path();
    options.deadline = 60s;
    const RunResult result = run(arguments, options);
    EXPECT_EQ(result.status, ExitStatus{}) << result.err;
    return result.out;
  }
  [[nodiscard]] std::string script() const {
    return run_perf({"script", "-i", data_, "-F", "ip,sym,dso"});
  }
  [[nodiscard]] std::string report() const {
    return run_perf({"report", "-i", data_, "--stdio", "--no-children", "-g", "caller"});
  }

 private:
  std::string perf_;
  TempDir directory_;
  std::string image_;
  std::string data_;
  std::string with_cache_;
};

void expect_names(const MadeRecording& made, const std::string& file) {
  const std::string script = made.script();
  for (const std::uint64_t inside : {0U, 13U}) {
    for (const ImageSymbol& symbol : known_symbols) {
      EXPECT_THAT(script, HasSubstr(fmt::format("{:x} {} ({})\n", symbol.address + inside,
                                                symbol.name, file)));
    }
  }
  const std::string report = made.report();
  EXPECT_THAT(report, HasSubstr(" " + fs::path{file}.filename().string() + " "));
  for (const ImageSymbol& symbol : known_symbols) {
    EXPECT_THAT(report, HasSubstr(symbol.name));
  }
}

class SymbolImage : public testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] const std::string& perf() const { return perf_; }

 private:
  void SetUp() override {
    const auto found = find_perf(GetParam());
    if (!found) {
      GTEST_SKIP() << "no " << GetParam() << " (scripts/pythons)";
    }
    perf_ = *found;
  }
  std::string perf_;
};

TEST_P(SymbolImage, IsReadWhereTheRecordingSaysItIs) {
  const MadeRecording made{perf(), ""};
  expect_names(made, made.image());
}

TEST_P(SymbolImage, IsReadFromTheCacheWhenTheFileIsGone) {
  const MadeRecording made{perf(), image_name};
  EXPECT_THAT(made.script(), Not(HasSubstr("py::")));
  EXPECT_EQ(made.add(), std::nullopt);
  EXPECT_EQ(made.add(), std::nullopt) << "it is there already";
  fs::remove(made.image());
  expect_names(made, image_name);
}

TEST_P(SymbolImage, IsNotReadIfSomebodyElsePutItThere) {
  const MadeRecording made{perf(), "python-1"};
  const MadeRecording planted{perf(), "python-1", "py::planted:/a.py"};
  fs::copy(planted.image(), made.directory() / "python-1");
  EXPECT_THAT(made.script(), Not(HasSubstr("py::")));
  EXPECT_EQ(made.add(), std::nullopt);
  expect_names(made, "python-1");
}

TEST_P(SymbolImage, GoesToAnotherMachineByPerfArchive) {
  const auto archiving = find_perf("perf");
  if (!archiving) {
    GTEST_SKIP() << "no perf";
  }
  MadeRecording made{*archiving, image_name};
  ASSERT_EQ(made.add(), std::nullopt);
  (void)made.run_perf({"archive", "perf.data"});
  fs::remove_all(made.directory() / "cache");
  fs::create_directory(made.directory() / "there");
  const RunResult unpacked =
      run({"tar", "-xf", made.directory() / "perf.data.tar.bz2", "-C", made.directory() / "there"});
  ASSERT_EQ(unpacked.status, ExitStatus{}) << unpacked.err;
  const MadeRecording reader{perf(), image_name};
  fs::copy(made.directory() / "there", reader.directory() / "cache",
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  expect_names(reader, image_name);
}

TEST_P(SymbolImage, IsNotInTheCacheWhenPerfSaysSo) {
  MadeRecording made{perf(), image_name};
  EXPECT_THAT(weave::add_to_build_id_cache(made.perf(), made.directory().file("text", "no image"),
                                           base::Deadline::after(60s)),
              testing::Optional(HasSubstr("Couldn't add " + made.directory() / "text")));
  made.use_cache("perf.data/cache");  // no directory can exist below a file
  EXPECT_THAT(made.add(), testing::Optional(HasSubstr("Couldn't add " + made.image())));
}

INSTANTIATE_TEST_SUITE_P(Perfs, SymbolImage, testing::Values("perf", "perf6.12", "perf7"),
                         [](const auto& one) {
                           std::string text = one.param;
                           std::ranges::replace(text, '.', '_');
                           return text;
                         });

TEST(BuildIdCache, SaysWhyPerfCouldNotBeRun) {
  const TempDir directory;
  const auto add = [&](const std::string& perf, std::chrono::nanoseconds span) {
    return weave::add_to_build_id_cache(perf, directory / "image", base::Deadline::after(span));
  };
  EXPECT_THAT(add(directory / "none", 60s), testing::Optional(HasSubstr("cannot run")));
  EXPECT_THAT(add("/bin/false", 60s), testing::Optional(HasSubstr("exit status 1")));
  EXPECT_THAT(add("/bin/true", 60s), testing::Optional(HasSubstr("exit status 0")));
  const std::string hangs = directory.file("hangs", "#!/bin/sh\nexec tail -f /dev/null\n");
  fs::permissions(hangs, fs::perms::owner_all);
  EXPECT_THAT(add(hangs, 100ms), testing::Optional(HasSubstr("did not end in time")));
}

}  // namespace
}  // namespace pyinject::test
