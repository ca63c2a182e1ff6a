#include "integration/detection.hpp"

#include "base/file.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "support/untouched.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <system_error>

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::test {

namespace fs = std::filesystem;

SeenDirectory::SeenDirectory(const Interpreter& interpreter) : root_{interpreter.root} {
  auto name = root_ + "/tmp/pyinject-test-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr || ::chmod(name.c_str(), 0755) != 0) {
    throw base::SystemError{"cannot make a directory like " + name, errno};
  }
  path_ = name.substr(root_.size());
}

SeenDirectory::~SeenDirectory() {
  std::error_code ignored;
  fs::remove_all(root_ + path_, ignored);
}

std::string SeenDirectory::here(std::string_view name) const {
  return root_ + path_ + "/" + std::string{name};
}

std::string SeenDirectory::seen(std::string_view name) const {
  return path_ + "/" + std::string{name};
}

void SeenDirectory::write(std::string_view name, std::string_view content) const {
  const auto path = here(name);
  const base::UniqueFd fd{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755)};
  if (!fd.valid()) {
    throw base::SystemError{"cannot write " + path, errno};
  }
  if (::fchmod(fd.get(), 0755) != 0) {  // whatever the umask is
    throw base::SystemError{"cannot make " + path + " executable", errno};
  }
  base::write_all(fd.get(), content, path);
}

Interpreter wrapped(Interpreter interpreter, std::vector<std::string> wrapper) {
  wrapper.insert(wrapper.end(), interpreter.command.begin(), interpreter.command.end());
  interpreter.command = std::move(wrapper);
  return interpreter;
}

Interpreter with_variable(const Interpreter& interpreter, const std::string& variable) {
  return wrapped(interpreter, {"env", variable});
}

std::string interpreter_file(const Interpreter& interpreter) {
  static std::map<std::string, std::string> known;
  auto& file = known[interpreter.name];
  if (file.empty()) {
    const PythonProcess python{interpreter, kIdle};
    file = Attach{}.detect(python.pid()).interpreter;
  }
  return file;
}

bool is_library(const std::string& interpreter_file) {
  return fs::path{interpreter_file}.filename().string().starts_with("lib");
}

Interpreter with_executable(const Interpreter& interpreter, const std::string& program) {
  auto result = interpreter;
  // A wrapper script ends with: exec ... PROGRAM "$@"
  auto script = base::read_file(interpreter.command.back()).value_or("");
  const auto arguments = script.find(" \"$@\"");
  if (!script.starts_with("#!") || arguments == std::string::npos) {
    result.command = {program};
    return result;
  }
  const auto begin = script.rfind(' ', arguments - 1) + 1;
  script.replace(begin, arguments - begin, "'" + program + "'");
  result.command = {"sh", "-c", script, "sh"};
  return result;
}

Interpreter with_copy(const Interpreter& interpreter, const SeenDirectory& directory,
                      const std::string& name) {
  const auto file = interpreter_file(interpreter);
  if (!fs::exists(directory.here(name))) {
    fs::copy_file(file, directory.here(name));
  }
  if (is_library(file)) {
    // It has the soname that the executable needs, so the original library is not loaded.
    return with_variable(interpreter, "LD_PRELOAD=" + directory.seen(name));
  }
  return with_executable(interpreter, directory.seen(name));
}

Interpreter with_preloaded(const Interpreter& interpreter, const std::string& library) {
  auto script = base::read_file(interpreter.command.back()).value_or("");
  const auto options = script.find(" --argv0 ");
  if (!script.starts_with("#!") || options == std::string::npos) {
    return with_variable(interpreter, "LD_PRELOAD=" + library);
  }
  auto result = interpreter;
  result.command = {"sh", "-c", script.insert(options, " --preload '" + library + "'"), "sh"};
  return result;
}

std::string detect_as(uid_t uid, base::Pid pid) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw base::SystemError{"cannot make a pipe", errno};
  }
  const base::UniqueFd read{ends[0]};
  base::UniqueFd write{ends[1]};
  const pid_t child = ::fork();
  if (child < 0) {
    throw base::SystemError{"cannot fork", errno};
  }
  if (child == 0) {
    if (::setgroups(0, nullptr) == 0 && ::setresgid(uid, uid, uid) == 0 &&
        ::setresuid(uid, uid, uid) == 0) {
      const auto detection = python::make_detector()->detect(pid);
      const auto* refused = std::get_if<python::Refused>(&detection);
      base::write_all(write.get(),
                      refused == nullptr ? "ready" : python::describe(refused->refusal), "a pipe");
    }
    ::_exit(0);
  }
  write.reset();
  auto text = base::read_fd(read.get(), 65536, "a pipe");
  ::waitpid(child, nullptr, 0);
  return text;
}

void expect_refused(const python::Detection& detection, python::Reason reason,
                    std::initializer_list<std::string> parts) {
  const auto* refused = std::get_if<python::Refused>(&detection);
  if (refused == nullptr) {
    ADD_FAILURE() << "ready, instead of " << python::name(reason);
    return;
  }
  const auto text = python::describe(refused->refusal);
  EXPECT_EQ(python::name(refused->refusal.reason), python::name(reason)) << text;
  for (const auto& part : parts) {
    EXPECT_THAT(text, testing::HasSubstr(part));
  }
  for (const char letter : text) {
    EXPECT_TRUE(static_cast<unsigned char>(letter) >= ' ') << text;
  }
}

void expect_refused_untouched(base::Pid pid, python::Reason reason,
                              std::initializer_list<std::string> parts) {
  const Untouched before{pid};
  expect_refused(python::make_detector()->detect(pid), reason, parts);
  EXPECT_THAT(before.differences(), testing::IsEmpty());
}

python::Refused refused(base::Pid pid) {
  auto detection = python::make_detector()->detect(pid);
  auto* const refused = std::get_if<python::Refused>(&detection);
  return refused != nullptr ? std::move(*refused) : python::Refused{};
}

void expect_ready(base::Pid pid) {
  const auto detection = python::make_detector()->detect(pid);
  if (const auto* refused = std::get_if<python::Refused>(&detection)) {
    ADD_FAILURE() << "refused: " << python::describe(refused->refusal);
  }
}

}  // namespace pyinject::test
