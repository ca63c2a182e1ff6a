#include "unit/weave/made_process.hpp"

#include "elf/elf_file.hpp"
#include "support/paths.hpp"
#include "weave/weaver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace pyinject::weave {

namespace {

// Finds only the two libraries of the tests.
class TwoFiles : public unwind::FileFinder {
 public:
  [[nodiscard]] std::vector<base::UniqueFd> candidates(const unwind::MappedFile& file) override {
    std::vector<base::UniqueFd> found;
    if (file.path.starts_with(test::targets_dir())) {
      found.emplace_back(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC));
    }
    return found;
  }
};

std::string library(const char* name) { return test::targets_dir() + name; }

// An address in the middle of one of its functions.
std::uint64_t inside(const std::string& path, std::string_view function = "three") {
  const std::array names{function};
  auto opened = elf::ElfFile::open(base::UniqueFd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)});
  const auto symbol = std::get<elf::ElfFile>(opened).find_symbols(names).begin()->second;
  return symbol.address.value() + symbol.size / 2;
}

constexpr auto kOfGreenlet = std::to_array<std::pair<char, std::string_view>>(
    {{'s', "_ZN8greenlet12UserGreenlet13g_initialstubEPv"},
     {'r', "_ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object"},
     {'w', "_ZN8greenlet12UserGreenlet8g_switchEv"},
     {'v', "_ZN8greenlet8Greenlet13g_switchstackEv"},
     {'m', "other_function"}});

// The offset in greenlet's module of the function that LETTER stands for; nullopt: of none.
std::optional<std::uint64_t> in_greenlet(char letter) {
  const auto* const found =
      std::ranges::find(kOfGreenlet, letter, &decltype(kOfGreenlet)::value_type::first);
  return found == kOfGreenlet.end()
             ? std::nullopt
             : std::optional{inside(library("/_greenlet.names.so"), found->second)};
}

}  // namespace

MadeProcess::MadeProcess() {
  data_.events = {test::made_event(kType, {kClock}), test::made_event(kType, {kSwitches})};
  data_.events[0].attr.context_switch = 1;
  auto& switches = data_.events[1].attr;
  switches.type = PERF_TYPE_SOFTWARE;
  switches.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
  switches.sample_period = 1;
  map(kCode, kCodeSize, "/usr/bin/python");
  map(kArena, kCodeSize, "//anon");
  map(kWithout, kCodeSize, library("/frames_omit.so"));
  map(kWith, kCodeSize, library("/frames_keep.so"));
  for (const char letter : std::string_view{"abxyz"}) {
    stacks_.name({.number = static_cast<std::uint64_t>(letter),
                  .qualname = std::string(1, letter),
                  .file = "f.py",
                  .first_line = 10});
  }
  context_.stacks = &stacks_;
  context_.interpreters = {
      {kPid, {{.evaluator = {{.begin = kEvaluator, .end = kEvaluator + 0x1000}}}}}};
  options_.image_path = [](std::uint32_t pid) { return fmt::format("/names/{}", pid); };
}

std::string MadeProcess::greenlet_module() { return library("/_greenlet.names.so"); }

void MadeProcess::map(std::uint64_t begin, std::uint64_t size, const std::string& file,
                      std::uint32_t pid, std::uint64_t time) {
  data_.data += test::made_record(
      PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER,
      test::words(pid | std::uint64_t{pid} << 32U, begin, size, 0, 0, 0, 0, PROT_READ | PROT_EXEC) +
          test::padded(file) + behind(time));
}

std::vector<std::uint64_t> MadeProcess::chain(std::string_view letters) {
  std::vector<std::uint64_t> result;
  bool user = false;
  for (const char letter : letters) {
    if (letter == 'k') {
      result.push_back(PERF_CONTEXT_KERNEL);
      result.push_back(kKernel);
      continue;
    }
    if (!user) {
      result.push_back(PERF_CONTEXT_USER);
      user = true;
    }
    if (const auto offset = in_greenlet(letter)) {
      result.push_back(kGreenlet + *offset);
      continue;
    }
    result.push_back(letter == 'E'   ? kEvaluator + 0x10
                     : letter == 'T' ? kArena + 0x10
                     : letter == 'o' ? kWithout + inside(library("/frames_omit.so"))
                     : letter == 'f' ? kWith + inside(library("/frames_keep.so"))
                     : letter == 'd' ? kCode + 0x20
                                     : kCode + 0x10);
  }
  return result;
}

void MadeProcess::fork(std::uint64_t time, std::uint32_t parent, std::uint32_t child) {
  data_.data += test::made_record(PERF_RECORD_FORK, 0,
                                  test::packed(child, parent, child, parent, time) + behind(time));
}

void MadeProcess::exec(std::uint64_t time, std::uint32_t pid) {
  data_.data += test::made_record(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC,
                                  test::packed(pid, pid) + test::padded("x") + behind(time));
}

void MadeProcess::sample(std::uint64_t time, std::string_view letters, std::uint64_t event,
                         std::uint32_t pid) {
  const auto addresses = chain(letters);
  auto payload = test::words(event, kCode, pid | std::uint64_t{pid} << 32U, time, addresses.size());
  for (const auto address : addresses) {
    payload += test::words(address);
  }
  data_.data += test::made_record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, payload);
}

sample::Stack MadeProcess::python(std::initializer_list<std::string_view> groups,
                                  std::uint32_t line) {
  sample::Stack stack;
  for (const auto group : groups) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      stack.frames.push_back(
          {.code = static_cast<std::uint64_t>(group[i]), .line = line, .outermost = i == 0});
    }
  }
  std::ranges::reverse(stack.frames);
  return stack;
}

void MadeProcess::weave() {
  auto input = std::get<perfdata::Input>(perfdata::Input::open(data_.file(), "made"));
  TwoFiles files;
  file_ = test::memory_file("");
  Weaver weaver{options_, context_, files, input};
  EXPECT_TRUE(weaver.learn() && weaver.rewrite(file_.get()));
  summary_ = weaver.take_summary();
}

std::vector<std::string> MadeProcess::woven() {
  weave();
  std::vector<std::string> result;
  auto input = output();
  perfdata::Sample sample;
  while (const auto record = input.next()) {
    if (input.parse(*record, sample)) {
      std::string text;
      for (const auto address : sample.chain) {
        text += word(address);
      }
      result.push_back(text);
    }
  }
  return result;
}

std::string MadeProcess::woven_one(std::string_view letters, const sample::Stack& stack) {
  sample(100, letters);
  record(100, stack);
  return woven().at(0);
}

std::string MadeProcess::word(std::uint64_t address) const {
  if (address == PERF_CONTEXT_KERNEL || address == PERF_CONTEXT_USER) {
    return "";
  }
  if (address == kKernel) {
    return "k";
  }
  if (address == kEvaluator + 0x10) {
    return "E";
  }
  if (kArena <= address && address < kArena + kCodeSize) {
    return "T";
  }
  for (const auto& [letter, name] : kOfGreenlet) {
    if (address == kGreenlet + *in_greenlet(letter)) {
      return {letter};
    }
  }
  if (kWithout <= address && address < kWithout + kCodeSize) {
    return "o";
  }
  if (kWith <= address && address < kWith + kCodeSize) {
    return "f";
  }
  if (kCode <= address && address < kCode + kCodeSize) {
    return address == kCode + 0x20 ? "d" : "c";
  }
  const auto name = name_at(address);
  return name.starts_with("py::") ? name.substr(4, name.find(":f.py") - 4) : name;
}

std::string MadeProcess::name_at(std::uint64_t address) const {
  static constexpr std::array<std::string_view, 17> kNames{"py::a:f.py",
                                                           "py::b:f.py",
                                                           "py::x:f.py",
                                                           "py::y:f.py",
                                                           "py::z:f.py",
                                                           "py::[unknown]",
                                                           "[GIL held]",
                                                           "[waiting for the GIL]",
                                                           "[task main]",
                                                           "[preempted]",
                                                           "[truncated: python stack]",
                                                           "[no deferred callchain]",
                                                           "[greenlet]",
                                                           "[greenlet switch]",
                                                           "[unnamed Python functions]",
                                                           "py::<module>:f.py",
                                                           "[no unwind info: /usr/bin/python]"};
  for (const auto& image : summary_.images) {
    auto opened = elf::ElfFile::open(test::memory_file(
        {reinterpret_cast<const char*>(image.image.bytes.data()), image.image.bytes.size()}));
    for (const auto& [name, symbol] : std::get<elf::ElfFile>(opened).find_symbols(kNames)) {
      if (symbol.address.value() <= address && address < symbol.address.value() + symbol.size) {
        return std::string{name};
      }
    }
  }
  return fmt::format("?{:x}?", address);
}

perfdata::Input MadeProcess::output() const {
  return std::get<perfdata::Input>(
      perfdata::Input::open(base::UniqueFd{::dup(file_.get())}, "woven"));
}

}  // namespace pyinject::weave
