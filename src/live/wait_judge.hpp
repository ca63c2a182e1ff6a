// What threads that are off the CPU wait for, read from outside.
#pragma once

#include "inspect/gil_view.hpp"
#include "memory/process_memory.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/stack_reader.hpp"
#include "pyinject/python/target.hpp"
#include "python/layout/process_image.hpp"
#include "python/layout/runtime_layout.hpp"
#include "python/objects/object_reader.hpp"
#include "sample/use.hpp"

#include <map>
#include <memory>
#include <span>
#include <vector>

namespace pyinject::live {

class WaitJudge {
 public:
  // nullptr: what Python has cannot be read.
  [[nodiscard]] static std::unique_ptr<WaitJudge> of(const python::Target& target);
  WaitJudge(const WaitJudge&) = delete;
  WaitJudge& operator=(const WaitJudge&) = delete;

  // By thread of TIDS, all of which are blocked: as the functions of the kernel tell; for a futex,
  // whether it is the GIL's or an object's by which it waits for a lock or another thread; for a
  // socket, whether the peer is a client.
  // kUnknown: the kernel does not tell, or the thread runs by now. STACKS: those that it has.
  [[nodiscard]] std::map<base::Tid, sample::Use> judge(std::span<const base::Tid> tids,
                                                       std::span<const python::ThreadStack> stacks);

 private:
  WaitJudge(base::Pid pid, std::shared_ptr<const python::ProcessImage> image,
            const python::RuntimeLayout& layout, base::RemoteAddress runtime,
            python::ObjectReader objects);
  [[nodiscard]] bool waits_for_gil(base::Tid tid) const;

  base::Pid pid_;
  std::shared_ptr<const python::ProcessImage> image_;
  std::unique_ptr<memory::MemoryReader> memory_;
  python::RuntimeLayout layout_;
  inspect::GilView gils_;
  python::ObjectReader objects_;
};

}  // namespace pyinject::live
