#include "report/machinery.hpp"

#include "report/marks.hpp"

#include <algorithm>
#include <cstddef>
#include <regex>
#include <string>

namespace pyinject::report {

namespace {

// What compilers append to a function's name when they split or clone it.
std::string_view without_clone(std::string_view name) {
  static const std::regex clone{R"(\.(cold|part|constprop|isra|lto_priv|llvm|localalias)\b)"};
  std::cmatch match;
  return std::regex_search(name.data(), name.data() + name.size(), match, clone)
             ? name.substr(0, static_cast<std::size_t>(match.position()))
             : name;
}

// Names of CPython's functions, 3.12 to 3.15.
const std::regex& machinery() {
  static const std::regex names{
      "_?PyEval_(EvalFrame|EvalCode|Vector|Frame)\\w*|_PyEvalFrame\\w+|_TAIL_CALL_\\w+"
      "|\\w*trampoline_evaluator|_?PyObject_(Fast)?(Call|Vectorcall|MakeTpCall)\\w*"
      "|_?PyVectorcall_\\w+|_?PyFunction_Vectorcall\\w*|_?PyCFunction_(Fast)?Call\\w*"
      "|_?Py_\\w*Call\\w*_StackRef\\w*"
      "|c?(function|method|methoddescr|wrapperdescr|classmethoddescr)_(vectorcall|call)\\w*"
      "|_?vectorcall\\w*|object_vacall|call_method\\w*|lookup_maybe_method|slot_tp_\\w+|type_call"
      "|gen_(send|iternext|close|throw)\\w*|_?PyGen_\\w+|_?PyIter_Send"
      // From the start of the process or thread to its first Python function.
      "|Py_(Main|BytesMain|RunMain)|pymain_\\w+|_?PyRun_\\w+|pyrun_\\w+|run_mod|run_eval_code_obj"
      "|thread_run|pythread_wrapper|builtin_exec(_impl)?",
      std::regex::ECMAScript | std::regex::optimize};
  return names;
}

bool is_interpreter_file(std::string_view path) {
  const auto name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libpython3") || name.starts_with("python3.") || name == "python3" ||
         name == "python";
}

}  // namespace

bool is_machinery_name(std::string_view name) {
  name = without_clone(name);
  return std::regex_match(name.data(), name.data() + name.size(), machinery());
}

Leaves::Leaves(const Profile& profile) : profile_{profile}, machinery_(profile.functions.size()) {
  for (const auto& object : profile.objects) {
    interpreter_files_.push_back(is_interpreter_file(object.path));
  }
}

bool Leaves::is_machinery(std::uint32_t function) {
  auto& known = machinery_[function];
  if (known == Known::kNot) {
    known = is_machinery_name(profile_.functions[function].name) ? Known::kYes : Known::kNo;
  }
  return known == Known::kYes;
}

// A trampoline's caller is always the interpreter.
bool Leaves::is_interpreters(std::uint32_t object, const std::vector<std::uint32_t>& frames) const {
  if (profile_.objects[object].path.empty()) {
    return false;
  }
  if (interpreter_files_[object]) {
    return true;
  }
  for (std::size_t i = 1; i < frames.size(); ++i) {
    const auto& function = function_of(profile_, frames[i]);
    if (function.kind == Kind::kNative && function.object == object &&
        function_of(profile_, frames[i - 1]).kind == Kind::kPython) {
      return true;
    }
  }
  return false;
}

// Below the innermost Python function: a frame in the interpreter's file is machinery if its name
// says so, or if it has no name and the Python function calls it directly.
Leaf Leaves::leaf_of(const std::vector<std::uint32_t>& frames) {
  const auto is_python = [&](std::uint32_t frame) {
    return function_of(profile_, frame).kind == Kind::kPython;
  };
  if (function_of(profile_, frames.front()).kind == Kind::kKernel) {
    return Leaf::kKernel;
  }
  const auto innermost = std::ranges::find_if(frames, is_python);
  if (innermost == frames.end()) {
    return Leaf::kNative;
  }
  for (auto frame = frames.begin(); frame != innermost; ++frame) {
    const auto& function = function_of(profile_, *frame);
    const bool machinery =
        function.kind == Kind::kNative &&
        (function.name.empty() ? frame + 1 == innermost
                               : is_machinery(profile_.frames[*frame].function)) &&
        is_interpreters(function.object, frames);
    if (!machinery) {
      return Leaf::kNative;
    }
  }
  return Leaf::kPython;
}

}  // namespace pyinject::report
