#include "live/use_judge.hpp"

#include "base/import_system.hpp"

#include <cstddef>

namespace pyinject::live {

void UseJudge::note(const sample::Code& code) {
  constexpr std::size_t kMost = 4096;  // it has some hundred
  if (code.file == base::kImportSystem && import_system_.size() < kMost) {
    import_system_.insert(code.number);
  }
}

void UseJudge::add(const python::Target& target) {
  remove(target.id.pid);
  programs_.emplace(target.id.pid,
                    Program{.files = bpf::CodeFiles{target}, .serial = ++programs_so_far_});
}

UseJudge::Found UseJudge::of(const sample::Stack& stack) {
  if (stack.address == 0) {
    return {.use = Use::kKernel};
  }
  bool imports = false;
  for (const auto& frame : stack.frames) {
    if (frame.code == sample::kGarbageCollector) {
      return {.use = Use::kCollector};
    }
    imports = imports || import_system_.contains(frame.code);
  }
  const auto program = programs_.find(base::Pid{static_cast<pid_t>(stack.pid)});
  if (imports || program == programs_.end()) {
    return {.use = imports ? Use::kImport : Use::kUnknown};
  }
  auto& [files, serial, named] = program->second;
  if (!bpf::is_of_c(files.kind_of(stack.address), stack.does())) {
    return {.use = Use::kPython};
  }
  const auto code = files.find(stack.address).code;
  return {.use = Use::kC, .c_function = code == 0 ? 0 : serial << kHalf | code};
}

void UseJudge::name_c_functions(Profile& profile) {
  for (auto& [pid, program] : programs_) {
    if (const auto count = program.files.count(); count != program.named) {
      const auto names = program.files.names();
      for (std::size_t code = program.named; code < names.size(); ++code) {
        profile.name_c_function(program.serial << kHalf | code, names[code]);
      }
      program.named = count;
    }
  }
}

}  // namespace pyinject::live
