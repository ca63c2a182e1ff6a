// record --push KIND=URL --label K=V --push-credentials FILE --spool DIR.
#pragma once

#include "cli/command_line.hpp"
#include "cli/verb_options.hpp"
#include "push/pusher.hpp"

#include <memory>

namespace pyinject::cli {

class Reporter;

// Sets COMMAND's options of pushing, if there are any. Throws CommandLineError.
void parse_push_options(const ParsedWords& parsed, RecordCommand& command);

// COMMAND has push options. Reads the credentials. Throws base::Error, before anything is recorded.
[[nodiscard]] std::unique_ptr<push::Pusher> start_pushing(const RecordCommand& command,
                                                          Reporter& reporter);

// These do nothing for nullptr. The first one copies the counts into the statistics; the second one
// waits until the profiles are sent, for some seconds at most, and prints the counts.
void note_pushed(const push::Pusher* pusher, Reporter& reporter);
void finish_pushing(push::Pusher* pusher, Reporter& reporter);

}  // namespace pyinject::cli
