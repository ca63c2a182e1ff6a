// Where a picture or an export gets its samples: a file that exists, or a short recording.
#pragma once

#include "cli/verb_options.hpp"
#include "pyinject/report/profile.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pyinject::cli {

class Reporter;

// The options -p, --children, -a, -u, --comm, -G, -d, -F, --off-cpu, --engine and --perf, or -i
// FILE or one operand, FILE. Throws CommandLineError.
[[nodiscard]] ProfileSource parse_source(const VerbSpec& verb, ParsedWords& parsed);

// FILE by -i or as an operand, else perf.data. Throws CommandLineError.
[[nodiscard]] std::string parse_file(const VerbSpec& verb, const ParsedWords& parsed);

// The same for one or more.
[[nodiscard]] std::vector<std::string> parse_files(const ParsedWords& parsed);

// Records if SOURCE asks for it, and reads the file. int: the exit status after a message.
// MAY_BE_EMPTY: a new recording need not have samples.
[[nodiscard]] std::variant<report::Profile, int> load_profile(const ProfileSource& source,
                                                              const CommandLine& line,
                                                              Reporter& reporter,
                                                              const Terminal& terminal,
                                                              bool may_be_empty = false);
// Reads the recording FILE, with a progress line if that takes long and LIVE. nullopt: after a
// message.
[[nodiscard]] std::optional<report::Profile> read_recording(const std::string& file,
                                                            Reporter& reporter, bool live,
                                                            bool may_be_empty = false);

// The same of FILES, merged. One that does not exist may be a pattern, as of a shell. Of several,
// what this tool writes beside a recording is left out: NAME.names, and NAME.raw beside NAME.
[[nodiscard]] std::optional<report::Profile> read_recordings(const std::vector<std::string>& files,
                                                             Reporter& reporter, bool live);
// For messages: "perf.data", "3 recordings".
[[nodiscard]] std::string name_of_recordings(const std::vector<std::string>& files);

// "10.0 s, 2,001 samples, 70 waits, 4 threads".
[[nodiscard]] std::string facts_of(const report::Profile& profile);

// For a page's head. "python3 (pid 4711)"; "3 processes".
[[nodiscard]] std::string processes_of(const report::Profile& profile);
// "10 s, 2,001 samples, 4 threads · web1 · 2026-11-30 12:40:03 UTC · perf-pyinject 0.3.0". LIVE: of
// this host, recorded now.
[[nodiscard]] std::string page_facts(const report::Profile& profile, bool live);
// "python3 shop.py (pid 4711)", of a process that may end.
[[nodiscard]] std::string title_of_process(base::Pid pid);

}  // namespace pyinject::cli
