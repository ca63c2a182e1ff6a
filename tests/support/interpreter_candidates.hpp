// Where interpreters may be: nothing is run to find out.
#pragma once

#include <string>
#include <vector>

namespace pyinject::test {

struct Candidate {
  std::string path;
  std::string label;  // the last part of the name: "path", "pyenv", "given", "trixie_loader"
  std::string root;   // the folder it is chrooted into
  bool script = false;
};

[[nodiscard]] std::vector<Candidate> interpreter_candidates();

// Changes whenever an answer of one of them may change: their files' times and sizes, for scripts
// also those of the files that they name.
[[nodiscard]] std::string fingerprint(const std::vector<Candidate>& candidates);

}  // namespace pyinject::test
