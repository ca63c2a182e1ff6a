// A snapshot of the process in a core file.
#pragma once

#include "inspect/core_image.hpp"
#include "pyinject/inspect/snapshot.hpp"
#include "pyinject/python/target.hpp"

#include <memory>
#include <string>

namespace pyinject::inspect {

// What the core holds and nothing else: a core has no names of the kernel's for threads but the
// first, no states, no kernel functions, no files and no processors. FILE: its name. TARGET:
// nullptr if its Python stacks cannot be read. LOCALS: SnapshotOptions::locals.
[[nodiscard]] ProcessSnapshot take_core_snapshot(const std::shared_ptr<CoreImage>& image,
                                                 const std::string& file,
                                                 const python::Target* target, bool locals);

// The pid that the core names; that of the first thread if it names none.
[[nodiscard]] base::Pid pid_of(const elf::CoreFile& core);

}  // namespace pyinject::inspect
