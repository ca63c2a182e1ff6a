// A Python program that prints its own stack and then waits.
#pragma once

#include "pyinject/python/stack_reader.hpp"
#include "support/attach.hpp"
#include "support/python_process.hpp"

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace pyinject::test {

// The start of a program: `pause()`, a single line, prints the stack and waits for a line.
inline constexpr auto kTelling = R"(
import os, sys, threading
def told():
    frame, text = sys._getframe(1), ''
    while frame is not None:
        code = frame.f_code
        text += f'{code.co_qualname}\t{code.co_filename}\t{frame.f_lineno}\n'
        frame = frame.f_back
    text = f'ready\n{threading.get_native_id()}\n{text}end\n'
    return text.encode(errors='replace')
def pause():
    os.write(1, told()); sys.stdin.readline()
)";

struct ToldFrame {
  std::string qualname;
  std::string file;
  std::uint32_t line = 0;
  bool operator==(const ToldFrame&) const = default;
};
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const ToldFrame& frame, std::ostream* stream);

struct ToldStack {
  long native_id = 0;
  std::vector<ToldFrame> frames;  // innermost first
};

// Call it after `ready`; PythonProcess reads the first one.
ToldStack read_told(PythonProcess& python);

// Throws base::Error if it cannot be read.
[[nodiscard]] python::StackReader stack_reader(base::Pid pid);

// Converts the frames that READER has read.
[[nodiscard]] std::vector<ToldFrame> told(const python::StackReader& reader,
                                          const python::ThreadStack& stack);
// The names of the frames, innermost first.
[[nodiscard]] std::vector<std::string> qualnames(const python::StackReader& reader,
                                                 const python::ThreadStack& stack);

}  // namespace pyinject::test
