// A Python function of a snapshot as text: its name and line, the line of its source, its
// variables.
#pragma once

#include "pyinject/inspect/dump_text.hpp"
#include "pyinject/inspect/snapshot.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pyinject::inspect {

class FrameText {
 public:
  // Both must outlive this object.
  FrameText(const ProcessSnapshot& process, const TextOptions& options)
      : process_{process}, options_{options} {}

  // LINE: 0: unknown. INDENT comes before each line.
  [[nodiscard]] std::string lines(const std::string& function, const std::string& file,
                                  std::uint32_t line, const std::optional<python::Locals>& locals,
                                  std::string_view indent) const;
  [[nodiscard]] std::string lines(const python::AsyncFrame& frame, std::string_view indent) const {
    return lines(frame.names.qualname, frame.names.file, frame.line, frame.locals, indent);
  }
  // "/srv/shop.py:7", "json/decoder.py:337" (TextOptions::verbose: the whole path), "<string>:?".
  [[nodiscard]] std::string place(std::string_view file, std::uint32_t line) const;

 private:
  [[nodiscard]] std::string variables(const std::optional<python::Locals>& locals,
                                      std::string_view indent) const;

  const ProcessSnapshot& process_;
  const TextOptions& options_;
};

}  // namespace pyinject::inspect
