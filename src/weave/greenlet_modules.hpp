// Recognizes the code of greenlet's extension module, which switches C stacks: below the function
// in which a greenlet starts, the C stack is that of whichever greenlet was there last.
#pragma once

#include "elf/greenlet_functions.hpp"
#include "unwind/address_spaces.hpp"
#include "unwind/objects.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace pyinject::weave {

class GreenletModules {
 public:
  explicit GreenletModules(unwind::FileFinder& files) : files_{files} {}

  // Whether FILE is a mapping of the module's code.
  [[nodiscard]] static bool is_module(const unwind::MappedFile& file) {
    return file.executable && elf::is_greenlet_module(file.path);
  }

  using Part = elf::GreenletPart;
  // ADDRESS lies in FILE; nullptr: in no known file.
  [[nodiscard]] Part part_of(const unwind::MappedFile* file, std::uint64_t address);
  // Whether the module in FILE has the names that tell the functions apart.
  [[nodiscard]] bool has_names(const unwind::MappedFile& file);

 private:
  struct Module {
    bool is = false;
    std::vector<elf::GreenletFunction> functions;
  };
  [[nodiscard]] const Module& module_of(const unwind::MappedFile& file);
  [[nodiscard]] Module load(const unwind::MappedFile& file);

  unwind::FileFinder& files_;
  std::map<const unwind::MappedFile*, Module> known_;
  std::size_t opened_ = 0;
};

}  // namespace pyinject::weave
