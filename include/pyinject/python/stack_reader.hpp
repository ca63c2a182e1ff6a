// The Python stacks of a target's threads, read while it runs.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"
#include "pyinject/python/target.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::python {

// A code object's names, as CPython's perf map has them: "py::QUALNAME:FILE". UTF-8 (a lone
// surrogate becomes U+FFFD), with all that the program chose, line feeds included.
struct CodeNames {
  std::string qualname;
  std::string file;
  std::uint32_t first_line = 0;  // 0: unknown
  bool operator==(const CodeNames&) const = default;
};

struct PythonFrame {
  base::RemoteAddress address;   // of the _PyInterpreterFrame
  base::RemoteAddress code;      // of the code object
  base::RemoteAddress previous;  // an entry frame's address when this is the outermost of its group
  std::uint32_t line = 0;        // 0: unknown
  // The outermost of the frames that share one C activation of the evaluator: the frame before it
  // is an entry frame.
  bool outermost = false;
  // Of the code object: a number that no other object of this reader has. An address is given away
  // again when an object dies.
  std::uint64_t code_serial = 0;
  bool operator==(const PythonFrame&) const = default;
};

// At least one frame; innermost first, entry frames left out.
struct ThreadStack {
  base::Tid tid;
  std::vector<PythonFrame> frames;
  bool complete = true;  // false: there are more than 4096, and the outermost are missing
  // False: the stack changed whenever it was read. FRAMES are the outermost ones, which did not
  // change; there may be more inside them.
  bool settled = true;
};

class StackReader {
 public:
  // What could not be read so far.
  struct Losses {
    std::uint64_t changed = 0;       // stacks of which no part was the same twice
    std::uint64_t unreadable = 0;    // stacks that make no sense
    std::uint64_t interpreters = 0;  // the most of them whose threads could not be listed
  };

  // The layout is taken from TARGET's debug offsets (3.13 and later) or a table (3.12), and tried.
  // A string says what does not fit.
  [[nodiscard]] static std::variant<StackReader, std::string> of(const Target& target);

  // The threads of all interpreters that have Python frames now. Nothing is stopped: a stack that
  // changes while it is read is read again a few times; then only its outer part is returned, or,
  // when that cannot be told apart either, nothing.
  [[nodiscard]] std::vector<ThreadStack> read();
  // Only these threads: some microseconds for each.
  [[nodiscard]] std::vector<ThreadStack> read(std::span<const base::Tid> tids);

  // Those of the code object at CODE: as the latest read() met it, else as it is now. nullopt: it
  // is none (any more).
  [[nodiscard]] std::optional<CodeNames> names(base::RemoteAddress code);
  // Those of a frame of the latest read(): nothing is read for it.
  [[nodiscard]] std::optional<CodeNames> names(const PythonFrame& frame) const;

  [[nodiscard]] const Losses& losses() const;
  // The threads of the latest read() that have frames of which none could be read.
  [[nodiscard]] const std::vector<base::Tid>& unread() const;

  StackReader(StackReader&& other) noexcept;
  StackReader& operator=(StackReader&& other) noexcept;
  ~StackReader();

 private:
  class Impl;
  explicit StackReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pyinject::python
