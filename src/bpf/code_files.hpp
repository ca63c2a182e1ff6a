// Whose code a thread ran in a sample, and what its function is called.
#pragma once

#include "bpf/sampler.hpp"
#include "procfs/maps.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/python/evaluator.hpp"
#include "pyinject/python/target.hpp"
#include "pyinject/sample/states.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyinject::bpf {

// kInterpreter: in the interpreter's file, outside of the evaluator.
enum class CodeKind : std::uint8_t { kEvaluator, kInterpreter, kCLibrary, kC, kKernel };

// Whether code of KIND, not kKernel, is a C function that Python called, or what one calls, and not
// what the interpreter does for byte code. As src/report/machinery.hpp divides; where it is not
// known what the Python function DOES, the file decides.
[[nodiscard]] bool is_of_c(CodeKind kind, sample::Does does);

class CodeFiles {
 public:
  explicit CodeFiles(python::Target target)
      : target_{std::move(target)}, evaluator_{python::evaluator_ranges(target_)} {}

  struct Place {
    CodeKind kind = CodeKind::kInterpreter;
    std::uint32_t code = 0;  // a number for names(); 0: none
  };
  // ADDRESS is one of user space. Code without a file (a JIT's, a trampoline's) is taken for the
  // evaluator.
  [[nodiscard]] Place find(std::uint64_t address);
  // The same without a number.
  [[nodiscard]] CodeKind kind_of(std::uint64_t address);

  // By number: "sre_ucs1_match" in the interpreter's file, "deflate in libz.so.1.2.13" in others,
  // "libz.so.1.2.13" without a symbol; empty: not known. Reads the symbols of the first files of
  // which code was found, through the process or, once it has exited, not at all.
  [[nodiscard]] std::vector<std::string> names() const;
  // One more than the largest number.
  [[nodiscard]] std::size_t count() const { return codes_.size(); }

 private:
  static constexpr std::size_t kMostCodes = 65536;
  static constexpr std::size_t kMostFiles = 64;  // whose symbols are read: each can be large

  // Null: code of the evaluator, or without a file.
  [[nodiscard]] const procfs::Mapping* mapping_of(base::RemoteAddress address);
  [[nodiscard]] CodeKind kind_in(base::RemoteAddress address, const procfs::Mapping& mapping) const;
  [[nodiscard]] std::uint32_t number(std::uint64_t address, const procfs::Mapping& mapping);
  [[nodiscard]] bool is_interpreters(const procfs::Mapping& mapping) const;
  void name_in(std::size_t file, std::vector<std::string>& names) const;

  struct Code {
    std::uint64_t address = 0;
    std::size_t file = 0;  // index in files_
  };
  const python::Target target_;
  std::vector<python::CodeRange> evaluator_;
  std::vector<procfs::Mapping> maps_;
  base::Deadline again_ = base::Deadline::after(std::chrono::nanoseconds{0});
  std::vector<procfs::Mapping> files_;  // those with code that was found
  std::vector<Code> codes_{Code{}};
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  // by address
};

}  // namespace pyinject::bpf
