#include "report/machinery.hpp"

#include "report/marks.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace pyinject::report {

namespace {

// Names come from programs that are recorded: no regular expressions, whose time and stack grow
// with the name.
bool is_word(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '_';
}

// What compilers append to a function's name when they split or clone it.
constexpr auto kClones = std::to_array<std::string_view>(
    {"cold", "part", "constprop", "isra", "lto_priv", "llvm", "localalias"});

std::string_view without_clone(std::string_view name) {
  for (auto dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    const auto rest = name.substr(dot + 1);
    const auto end = std::ranges::find_if_not(rest, is_word) - rest.begin();
    if (std::ranges::find(kClones, rest.substr(0, static_cast<std::size_t>(end))) !=
        kClones.end()) {
      return name.substr(0, dot);
    }
  }
  return name;
}

// Names of CPython's functions, 3.12 to 3.15.
constexpr auto kWhole = std::to_array<std::string_view>(
    {"object_vacall", "lookup_maybe_method", "type_call", "run_mod", "run_eval_code_obj",
     // From the start of the process or thread to its first Python function.
     "Py_Main", "Py_BytesMain", "Py_RunMain", "thread_run", "pythread_wrapper", "builtin_exec",
     "builtin_exec_impl"});
constexpr auto kBegins = std::to_array<std::string_view>({"_PyEvalFrame",
                                                          "_TAIL_CALL_",
                                                          "function_vectorcall",
                                                          "function_call",
                                                          "cfunction_vectorcall",
                                                          "cfunction_call",
                                                          "method_vectorcall",
                                                          "method_call",
                                                          "cmethod_vectorcall",
                                                          "cmethod_call",
                                                          "methoddescr_vectorcall",
                                                          "methoddescr_call",
                                                          "wrapperdescr_vectorcall",
                                                          "wrapperdescr_call",
                                                          "classmethoddescr_vectorcall",
                                                          "classmethoddescr_call",
                                                          "call_method",
                                                          "slot_tp_",
                                                          "gen_send",
                                                          "gen_iternext",
                                                          "gen_close",
                                                          "gen_throw",
                                                          "pymain_",
                                                          "pyrun_"});
// These with or without an underscore in front.
constexpr auto kBeginsAfterUnderscore = std::to_array<std::string_view>(
    {"PyEval_EvalFrame", "PyEval_EvalCode", "PyEval_Vector", "PyEval_Frame", "PyObject_Call",
     "PyObject_Vectorcall", "PyObject_MakeTpCall", "PyObject_FastCall", "PyObject_FastVectorcall",
     "PyObject_FastMakeTpCall", "PyVectorcall_", "PyFunction_Vectorcall", "PyCFunction_Call",
     "PyCFunction_FastCall", "vectorcall", "PyGen_", "PyIter_Send", "PyRun_"});

bool is_interpreter_file(std::string_view path) {
  const auto name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libpython3") || name.starts_with("python3.") || name == "python3" ||
         name == "python";
}

}  // namespace

bool is_machinery_name(std::string_view name) {
  name = without_clone(name);
  if (!std::ranges::all_of(name, is_word)) {
    return false;
  }
  const auto begins = [](std::string_view text) {
    return [text](std::string_view begin) { return text.starts_with(begin); };
  };
  const auto plain = name.substr(name.starts_with('_') ? 1 : 0);
  const auto call = plain.starts_with("Py_") ? plain.find("Call") : std::string_view::npos;
  return std::ranges::find(kWhole, name) != kWhole.end() ||
         std::ranges::any_of(kBegins, begins(name)) ||
         std::ranges::any_of(kBeginsAfterUnderscore, begins(plain)) ||
         name.ends_with("trampoline_evaluator") ||
         (call != std::string_view::npos &&
          plain.find("_StackRef", call) != std::string_view::npos);
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
