// The paths at which interpreters may be. Nothing is run to find them.
#pragma once

#include <string>
#include <vector>

namespace pyinject::test {

struct Candidate {
  std::string path;
  std::string label;  // last part of the name: "path", "pyenv", "given", "trixie_loader"
  std::string root;   // directory it is chrooted into
  bool script = false;
};

[[nodiscard]] std::vector<Candidate> interpreter_candidates();

// Changes whenever a candidate may have changed: made of the times and sizes of their files and,
// for scripts, of the files that the scripts name.
[[nodiscard]] std::string fingerprint(const std::vector<Candidate>& candidates);

}  // namespace pyinject::test
