// `functions`, and the additions of `record --functions` to an ordinary recording.
#pragma once

#include "cli/command_line.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/record/record_observer.hpp"

#include <boost/program_options/variables_map.hpp>

namespace pyinject::cli {

// Throws CommandLineError if options in RECORD are incompatible with --functions.
void check_functions(const record::RecordPlan& record,
                     const boost::program_options::variables_map& values);

// record --functions: records, and prints how many calls there were.
[[nodiscard]] int run_record_functions(const record::RecordPlan& record, base::Logger& logger,
                                       record::RecordObserver& observer);

// functions: prints the contents of a file.
[[nodiscard]] int print_functions(const FunctionsCommand& command, base::Logger& logger);

}  // namespace pyinject::cli
