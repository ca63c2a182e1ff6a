// `functions`, and what `record --functions` has over an ordinary recording.
#pragma once

#include "cli/command_line.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/record/record_observer.hpp"

#include <boost/program_options/variables_map.hpp>

namespace pyinject::cli {

// Throws CommandLineError when what RECORD says does not go with --functions.
void check_functions(const session::RecordOptions& record,
                     const boost::program_options::variables_map& values);

// record --functions: records, and says how many calls there were.
[[nodiscard]] int run_record_functions(const session::RecordOptions& record, base::Logger& logger,
                                       session::RecordObserver& observer);

// functions: prints what a file says.
[[nodiscard]] int print_functions(const FunctionsCommand& command, base::Logger& logger);

}  // namespace pyinject::cli
