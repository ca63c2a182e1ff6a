#include "integration/expected_stack.hpp"

#include "base/text.hpp"
#include "pyinject/base/error.hpp"

#include <ostream>

namespace pyinject::test {

void PrintTo(const ToldFrame& frame, std::ostream* stream) {
  *stream << frame.qualname << ' ' << frame.file << ':' << frame.line;
}

ToldStack read_told(PythonProcess& python) {
  ToldStack stack{.native_id = std::stol(python.read_line()), .frames = {}};
  for (auto line = python.read_line(); line != "end"; line = python.read_line()) {
    const auto fields = base::split(line, '\t');
    stack.frames.push_back(
        {.qualname = std::string{fields.at(0)},
         .file = std::string{fields.at(1)},
         .line = static_cast<std::uint32_t>(std::stoul(std::string{fields.at(2)}))});
  }
  return stack;
}

python::StackReader stack_reader(base::Pid pid) {
  auto made = python::StackReader::of(observe(pid));
  if (const auto* why = std::get_if<std::string>(&made)) {
    throw base::Error{"no stack reader: " + *why};
  }
  return std::get<python::StackReader>(std::move(made));
}

std::vector<ToldFrame> told(const python::StackReader& reader, const python::ThreadStack& stack) {
  std::vector<ToldFrame> frames;
  for (const auto& frame : stack.frames) {
    const auto names =
        reader.names(frame).value_or(python::CodeNames{.qualname = "?", .file = "?"});
    frames.push_back({.qualname = names.qualname, .file = names.file, .line = frame.line});
  }
  return frames;
}

std::vector<std::string> qualnames(const python::StackReader& reader,
                                   const python::ThreadStack& stack) {
  std::vector<std::string> names;
  for (const auto& frame : told(reader, stack)) {
    names.push_back(frame.qualname);
  }
  return names;
}

}  // namespace pyinject::test
