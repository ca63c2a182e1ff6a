// Reads the Python stacks of a target's threads while the target runs.
//
// For example:
//   auto opened = python::StackReader::of(target);
//   if (auto* const reader = std::get_if<python::StackReader>(&opened)) {
//     for (const auto& stack : reader->read()) {
//       const auto names = reader->names(stack.frames.front());
//       std::cout << stack.tid.value() << ' ' << (names ? names->qualname : "?") << '\n';
//     }
//   }
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

// Names of a code object, as in CPython's perf map: "py::QUALNAME:FILE". UTF-8 (a lone surrogate
// becomes U+FFFD) with every character that the program chose, including line feeds.
struct CodeNames {
  std::string qualname;
  std::string file;
  std::uint32_t first_line = 0;  // 0: unknown
  bool operator==(const CodeNames&) const = default;
};

struct PythonFrame {
  base::RemoteAddress address;   // of the _PyInterpreterFrame
  base::RemoteAddress code;      // of the code object
  base::RemoteAddress previous;  // address of an entry frame if this is the outermost of its group
  std::uint32_t line = 0;        // 0: unknown
  // The outermost of the frames that share one C activation of the evaluator: the previous frame is
  // an entry frame.
  bool outermost = false;
  // Serial number of the code object, unique within this reader: addresses are reused after an
  // object dies.
  std::uint64_t code_serial = 0;
  bool operator==(const PythonFrame&) const = default;
};

// At least one frame; innermost first, without entry frames.
struct ThreadStack {
  base::Tid tid;
  std::vector<PythonFrame> frames;
  bool complete = true;  // false: more than 4096 frames, the outermost are missing
  // False: the stack changed during every read. FRAMES are the outermost ones, which did not
  // change; there may be more frames inside them.
  bool settled = true;
};

class StackReader {
 public:
  // What could not be read so far.
  struct Losses {
    std::uint64_t changed = 0;       // stacks that had no part equal in two reads
    std::uint64_t unreadable = 0;    // stacks that are not valid
    std::uint64_t interpreters = 0;  // highest number of interpreters with unreadable threads
  };

  // Takes the layout from TARGET's debug offsets (3.13 and later) or from a table (3.12), and tests
  // it. Returns a string that says what does not fit.
  [[nodiscard]] static std::variant<StackReader, std::string> of(const Target& target);

  // All threads of all interpreters that have Python frames now. Stops nothing: a stack that
  // changes while it is read is read again a few times; then only its outer part is returned, or
  // nothing if that part cannot be determined either.
  [[nodiscard]] std::vector<ThreadStack> read();
  // The same for TIDS only: some microseconds per thread.
  [[nodiscard]] std::vector<ThreadStack> read(std::span<const base::Tid> tids);

  // Names of the code object at CODE: as the latest read() saw it, else as it is now. nullopt: no
  // code object is there (any more).
  [[nodiscard]] std::optional<CodeNames> names(base::RemoteAddress code);
  // Names of a frame of the latest read(). Does not read the target.
  [[nodiscard]] std::optional<CodeNames> names(const PythonFrame& frame) const;

  [[nodiscard]] const Losses& losses() const;
  // Threads of the latest read() that have frames, none of which could be read.
  [[nodiscard]] const std::vector<base::Tid>& unread() const;
  // The thread that runs pending calls and signal handlers, as of the latest read(); nullopt: it
  // has no thread state any more.
  [[nodiscard]] std::optional<base::Tid> main_thread() const;

  StackReader(StackReader&& other) noexcept;
  StackReader& operator=(StackReader&& other) noexcept;
  ~StackReader();

 private:
  class Impl;
  explicit StackReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pyinject::python
