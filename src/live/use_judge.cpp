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

Use UseJudge::of(const sample::Stack& stack) {
  if (stack.address == 0) {
    return Use::kKernel;
  }
  bool imports = false;
  for (const auto& frame : stack.frames) {
    if (frame.code == sample::kGarbageCollector) {
      return Use::kCollector;
    }
    imports = imports || import_system_.contains(frame.code);
  }
  const auto files = code_files_.find(base::Pid{static_cast<pid_t>(stack.pid)});
  return imports                                                            ? Use::kImport
         : files == code_files_.end()                                       ? Use::kUnknown
         : bpf::is_of_c(files->second.kind_of(stack.address), stack.does()) ? Use::kC
                                                                            : Use::kPython;
}

}  // namespace pyinject::live
