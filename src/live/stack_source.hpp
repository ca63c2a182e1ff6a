// Where the stacks of a live view come from. Nothing in a process is run, written or stopped.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/python/target.hpp"
#include "sample/stack.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

namespace pyinject::live {

// Called by collect(). A code object is reported before the first stack that contains it.
struct StackReceiver {
  std::function<void(sample::Code)> code;
  // COUNT: how many samples, of one period each, the stack stands for. IN_GREENLET: it is that of a
  // greenlet, not of the thread itself.
  std::function<void(const sample::Stack&, std::uint64_t count, bool in_greenlet)> stack;
};

class StackSource {
 public:
  StackSource() = default;
  virtual ~StackSource() = default;
  StackSource(const StackSource&) = delete;
  StackSource& operator=(const StackSource&) = delete;

  // A string says why not.
  [[nodiscard]] virtual std::optional<std::string> add(const python::Target& target) = 0;
  virtual void remove(base::Pid pid) = 0;
  // Starts to sample; call it after the first add(). A string says why not.
  [[nodiscard]] virtual std::optional<std::string> begin() = 0;
  // Also for greenlets. Call it about once a second if tasks are requested.
  virtual void look_for_modules() = 0;
  // Readable when collect() has something to do.
  [[nodiscard]] virtual int fd() const = 0;
  virtual void collect() = 0;
  [[nodiscard]] virtual std::uint64_t lost() const = 0;
};

struct SourceOptions {
  std::chrono::nanoseconds period{};
  bool gil = false;
  bool tasks = false;
};

// A BPF program that runs at each sample of each processor. A string says why there is none.
[[nodiscard]] std::variant<std::unique_ptr<StackSource>, std::string> make_bpf_source(
    const SourceOptions& options, StackReceiver receiver);

// Reads the stacks of threads that run, from outside, at most once per PERIOD and so rarely that
// all processes together take no more than a twentieth of a processor, and each its equal part of
// that. A stack counts for the processor time that its thread has used since the one before. Knows
// no tasks and no greenlets. Throws base::Error.
[[nodiscard]] std::unique_ptr<StackSource> make_reading_source(const SourceOptions& options,
                                                               StackReceiver receiver);

}  // namespace pyinject::live
