// Recognizes the code of greenlet's extension module, which switches C stacks: below the function
// in which a greenlet starts, the C stack is that of whichever greenlet was there last.
#pragma once

#include "unwind/address_spaces.hpp"
#include "unwind/objects.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace pyinject::weave {

// By its file's name: greenlet/_greenlet.cpython-313-x86_64-linux-gnu.so.
[[nodiscard]] bool is_greenlet_module(std::string_view path);

class GreenletModules {
 public:
  explicit GreenletModules(unwind::FileFinder& files) : files_{files} {}

  // Whether FILE is a mapping of the module's code.
  [[nodiscard]] static bool is_module(const unwind::MappedFile& file) {
    return file.executable && is_greenlet_module(file.path);
  }

  enum class Part : std::uint8_t {
    kOther,
    kModule,       // in the module
    kStub,         // in g_initialstub(), in which a greenlet starts, on its stack or its starter's
    kRoot,         // in inner_bootstrap(), the outermost function that is on its stack only
    kSwitch,       // in g_switch()
    kSwitchStack,  // in g_switchstack(), which that calls, and which replaces the stack
  };
  // ADDRESS lies in FILE; nullptr: in no known file.
  [[nodiscard]] Part part_of(const unwind::MappedFile* file, std::uint64_t address);
  // Whether the module in FILE has the names that tell the functions apart.
  [[nodiscard]] bool has_names(const unwind::MappedFile& file);

 private:
  struct Function {  // in the process
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    Part part = Part::kModule;
  };
  struct Module {
    bool is = false;
    std::vector<Function> functions;
  };
  [[nodiscard]] const Module& module_of(const unwind::MappedFile& file);
  [[nodiscard]] Module load(const unwind::MappedFile& file);

  unwind::FileFinder& files_;
  std::map<const unwind::MappedFile*, Module> known_;
  std::size_t opened_ = 0;
};

}  // namespace pyinject::weave
