#include "report/machinery.hpp"

#include "base/c_library.hpp"
#include "base/import_system.hpp"
#include "report/marks.hpp"
#include "report/names.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

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

// What the evaluator calls by pointers for byte code: ends of the names of static functions, the
// slots of types (Objects/*.c).
constexpr auto kSlots = std::to_array<std::string_view>(
    {"_add",      "_sub",         "_mul",      "_div",       "_true_divide",   "_rem",
     "_mod",      "_pow",         "_neg",      "_invert",    "_lshift",        "_rshift",
     "_and",      "_or",          "_xor",      "_bool",      "_hash",          "_concat",
     "_repeat",   "_richcompare", "_item",     "_subscript", "_ass_subscript", "_ass_item",
     "_contains", "_iter",        "_iternext", "iter_next",  "_length",        "_getattro",
     "_setattro", "_descr_get",   "dealloc",   "_negative",  "_positive",      "_concatenate"});

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

bool is_byte_code_name(std::string_view name) {
  name = without_clone(name);
  const auto plain = name.substr(name.starts_with('_') ? 1 : 0);
  // What the evaluator calls for str(x), tuple(x), len(x), isinstance(x, C) without their wrappers
  // (CALL_STR_1, CALL_TUPLE_1, CALL_LEN, CALL_ISINSTANCE in Python/bytecodes.c).
  constexpr auto kCalled = std::to_array<std::string_view>(
      {"PyObject_Str", "PySequence_Tuple", "PyObject_Size", "PyObject_IsInstance"});
  const bool published = plain.starts_with("Py") && !plain.starts_with("Py_Builtin") &&
                         std::ranges::find(kCalled, name) == kCalled.end();
  // The evaluator jumps to some functions through one that is named like CPython's API.
  constexpr auto kOthers = std::to_array<std::string_view>(
      {"insertdict", "dictresize", "import_name", "import_from", "initialize_locals"});
  return published || std::ranges::find(kOthers, name) != kOthers.end() ||
         std::ranges::any_of(kSlots, [&](std::string_view end) {
           return name.ends_with(end) && name.size() > end.size();
         });
}

Interpreters::Interpreters(const Profile& profile) : profile_{profile} {
  for (const auto& object : profile.objects) {
    files_.push_back(is_interpreter_file(object.path));
  }
}

// A trampoline's caller is always the interpreter.
bool Interpreters::have(std::uint32_t object, const std::vector<std::uint32_t>& frames) const {
  if (profile_.objects[object].path.empty()) {
    return false;
  }
  if (files_[object]) {
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

std::vector<Part> parts_of(const Profile& profile) {
  std::vector<bool> calls(profile.functions.size());  // Python functions
  for (std::size_t i = 1; i < profile.nodes.size(); ++i) {
    const auto& [caller, frame] = profile.nodes[i];
    if (caller != 0 && function_of(profile, frame).kind == Kind::kPython) {
      calls[profile.frames[profile.nodes[caller].frame].function] = true;
    }
  }
  std::vector<bool> interpreters;  // by object
  std::ranges::transform(profile.objects, std::back_inserter(interpreters),
                         [](const Object& object) { return is_interpreter_file(object.path); });
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto& function = profile.functions[i];
    if (calls[i] && function.kind == Kind::kNative &&
        !profile.objects[function.object].path.empty()) {
      interpreters[function.object] = true;
    }
  }
  std::vector<Part> parts;
  std::ranges::transform(profile.functions, std::back_inserter(parts),
                         [&](const Function& function) {
                           if (function.kind == Kind::kMark) {
                             return is_start_of_greenlet(function) ? Part::kGreenlet
                                    : is_state_mark(function)      ? Part::kInterpreter
                                                                   : Part::kProgram;
                           }
                           if (function.kind != Kind::kNative || !interpreters[function.object]) {
                             return Part::kProgram;
                           }
                           return function.name.empty()              ? Part::kNameless
                                  : is_machinery_name(function.name) ? Part::kInterpreter
                                  : is_byte_code_name(function.name) ? Part::kByteCode
                                                                     : Part::kProgram;
                         });
  return parts;
}

Leaves::Leaves(const Profile& profile)
    : profile_{profile}, interpreters_{profile}, machinery_(profile.functions.size()) {}

bool Leaves::is_machinery(std::uint32_t function) {
  auto& known = machinery_[function];
  if (known == Known::kNot) {
    known = is_machinery_name(profile_.functions[function].name) ? Known::kYes : Known::kNo;
  }
  return known == Known::kYes;
}

// Whether FRAME, one of FRAMES outside of PYTHON, their innermost Python function, is the
// evaluator.
bool Leaves::is_evaluator(const std::vector<std::uint32_t>& frames, std::size_t frame,
                          std::size_t python) {
  const auto& function = function_of(profile_, frames[frame]);
  const auto& name = function.name;
  return function.kind == Kind::kNative && interpreters_.have(function.object, frames) &&
         (name.empty() ? frame + 1 == python
                       : name.starts_with("_PyEval_EvalFrame") || name.starts_with("_TAIL_CALL_") ||
                             name.ends_with("trampoline_evaluator"));
}

// What the names of the C functions say that PYTHON, the innermost Python function, has led to: the
// outermost one but the evaluator was called for byte code, or by the machinery of calls.
Leaf Leaves::leaf_by_names(const std::vector<std::uint32_t>& frames, std::size_t python) {
  bool all_machinery = true;
  for (std::size_t i = 0; i < python; ++i) {
    all_machinery =
        all_machinery && (is_evaluator(frames, i, python) ||
                          (interpreters_.have(function_of(profile_, frames[i]).object, frames) &&
                           is_machinery(profile_.frames[frames[i]].function)));
  }
  if (all_machinery) {
    return Leaf::kPython;
  }
  auto outermost = python;
  while (outermost > 0 && is_evaluator(frames, outermost - 1, python)) {
    --outermost;
  }
  const auto function = profile_.frames[frames[outermost - 1]].function;
  if (profile_.functions[function].name.empty() &&
      interpreters_.have(profile_.functions[function].object, frames)) {
    return Leaf::kUndecided;
  }
  return !is_machinery(function) && is_byte_code_name(profile_.functions[function].name)
             ? Leaf::kPython
             : Leaf::kNative;
}

Leaf Leaves::leaf_of(const std::vector<std::uint32_t>& frames, sample::Does does) {
  if (function_of(profile_, frames.front()).kind == Kind::kKernel) {
    return Leaf::kKernel;
  }
  std::size_t python = 0;
  while (python < frames.size() && function_of(profile_, frames[python]).kind != Kind::kPython) {
    ++python;
  }
  if (python == frames.size() || is_garbage_collector(function_of(profile_, frames[python]))) {
    return Leaf::kNative;
  }
  bool only_evaluator = true;
  for (std::size_t i = 0; i < python; ++i) {
    const auto& function = function_of(profile_, frames[i]);
    const auto& file = profile_.objects[function.object].path;
    const bool own = file.empty() || interpreters_.have(function.object, frames);
    // Byte code, too, leads to extension modules: a + b of arrays.
    if (function.kind == Kind::kNative && !own && !base::is_c_library(file)) {
      return Leaf::kNative;
    }
    only_evaluator = only_evaluator && is_evaluator(frames, i, python);
  }
  if (only_evaluator || does == sample::Does::kByteCode) {
    return Leaf::kPython;
  }
  return does == sample::Does::kCall ? Leaf::kNative : leaf_by_names(frames, python);
}

sample::Use Leaves::use_of(const std::vector<std::uint32_t>& frames, sample::Does does) {
  const auto leaf = leaf_of(frames, does);
  if (leaf == Leaf::kKernel) {
    return sample::Use::kKernel;
  }
  // The functions of a greenlet's parents do not run.
  const auto end = std::ranges::find_if(frames, [&](std::uint32_t frame) {
    return is_start_of_greenlet(function_of(profile_, frame));
  });
  const auto has = [&](auto is) {
    return std::any_of(frames.begin(), end,
                       [&](std::uint32_t frame) { return is(function_of(profile_, frame)); });
  };
  if (has(is_garbage_collector)) {
    return sample::Use::kCollector;
  }
  if (has([](const Function& function) {
        return function.kind == Kind::kPython && function.file == base::kImportSystem;
      })) {
    return sample::Use::kImport;
  }
  return leaf == Leaf::kPython      ? sample::Use::kPython
         : leaf == Leaf::kUndecided ? sample::Use::kUnknown
                                    : sample::Use::kC;
}

std::string_view Uses::of(const Sample& sample) {
  if (profile_.events[sample.event].unit == Unit::kWaits) {
    return {};
  }
  const auto [known, fresh] = known_.try_emplace({sample.stack, sample.does});
  if (fresh) {
    auto frames = frames_of(profile_, sample.stack);
    (void)take_marks(profile_, frames);
    if (!frames.empty()) {
      const auto use = leaves_.use_of(frames, sample.does);
      known->second = use == sample::Use::kUnknown ? "undecided" : sample::facts(use).name;
    }
  }
  return known->second;
}

}  // namespace pyinject::report
