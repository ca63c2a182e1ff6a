#include "weave/weave.hpp"

#include "pyinject/base/directory.hpp"
#include "pyinject/base/error.hpp"
#include "weave/weaver.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

namespace pyinject::weave {

namespace {

// Opens INPUT, once: it is read through this descriptor.
base::UniqueFd open_input(const WeaveOptions& options, const base::Place& output) {
  if (options.input == options.output) {
    return output.directory.open(output.name);
  }
  const auto place = base::Place::behind(options.input);
  return place.directory.open(place.name);
}

struct stat facts_of(int fd, const std::string& name) {
  struct stat facts {};
  if (::fstat(fd, &facts) != 0) {
    throw base::SystemError{"cannot inspect " + name, errno};
  }
  return facts;
}

void check_replaceable(const base::Place& place, const std::string& path) {
  struct stat facts {};
  if (::fstatat(place.directory.fd(), place.name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
      !S_ISREG(facts.st_mode)) {  // must not replace a device or a FIFO by a file
    throw base::Error{path + " is not a regular file"};
  }
}

// Why a directory of perf, FD, does not become a file; empty: it does.
std::string why_not(int fd, const WeaveOptions& options) {
  if (options.unfinished) {
    return "perf record died, and it is a directory (--threads)";
  }
  if (options.input == options.output && !options.recorded) {
    return "it is a directory (--threads): weave DIRECTORY -o FILE makes a file of it";
  }
  struct stat facts {};
  const bool kernel = ::fstatat(fd, "kcore_dir", &facts, AT_SYMLINK_NOFOLLOW) == 0;
  return kernel && options.recorded ? "it has the kernel's code (--kcore), and a file cannot" : "";
}

}  // namespace

std::variant<WeaveSummary, Untouched> weave(const WeaveOptions& options,
                                            const RecordingContext& context,
                                            unwind::FileFinder& files) {
  const auto place = base::Place::behind(options.output);
  auto file = open_input(options, place);
  auto facts = facts_of(file.get(), options.input);
  const auto read = facts;
  const bool replaces_directory = S_ISDIR(facts.st_mode) && options.input == options.output;
  if (const auto why = S_ISDIR(facts.st_mode) ? why_not(file.get(), options) : ""; !why.empty()) {
    return Untouched{.why = why};
  }
  if (S_ISDIR(facts.st_mode)) {
    constexpr mode_t kOfFiles = 0666;
    facts.st_mode = S_IFREG | (facts.st_mode & kOfFiles);
  }
  auto opened = perfdata::Input::open(std::move(file), options.input, options.unfinished);
  if (auto* const not_treatable = std::get_if<perfdata::UnsupportedFile>(&opened)) {
    return Untouched{.why = std::move(not_treatable->why)};
  }
  auto& input = std::get<perfdata::Input>(opened);
  if (!replaces_directory) {
    check_replaceable(place, options.output);
  }
  base::NewFile output{place};
  if (options.recorded && facts.st_uid != facts_of(output.fd(), options.output).st_uid) {
    return Untouched{
        .why = fmt::format("it belongs to uid {}: it is not the file that perf record wrote",
                           facts.st_uid)};
  }
  Weaver weaver{options, context, files, input};
  if (!weaver.learn()) {
    return Untouched{.why = "cancelled", .cancelled = true};
  }
  if (!weaver.rewrite(output.fd())) {
    return Untouched{.why = "cancelled", .cancelled = true};
  }
  auto summary = weaver.take_summary();
  if (options.keep) {
    options.keep(summary.images, weaver.replaced(), facts);
  }
  output.resemble(facts);
  if (!replaces_directory) {
    output.take_place();
    return summary;
  }
  const auto directory = output.take_place_of_directory();
  try {
    place.directory.remove_with_files(directory, &read);
  } catch (const base::Error& error) {
    summary.left_over = error.what();
  }
  return summary;
}

}  // namespace pyinject::weave
