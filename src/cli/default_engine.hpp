// The engine of a recording without --engine: set by the variable PYINJECT_ENGINE, the user's
// configuration file or that of the machine. The first of these that sets one decides; the others
// are not read.
#pragma once

#include "record/choose_engine.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::cli {

inline constexpr const char* kEngineVariable = "PYINJECT_ENGINE";
inline constexpr const char* kMachineConfig = "/etc/perf-pyinject.conf";

struct DefaultEngine {
  record::EngineName engine;
  std::string setting;  // as set, with its place, for messages
};

// Searches the sources. Empty: there are none. Called only for a recording that needs a default.
using DefaultEngineSearch = std::function<std::optional<DefaultEngine>()>;

struct DefaultEngineSources {
  std::optional<std::string> variable = {};
  std::vector<std::string> files = {};  // these need not exist
};

// Of this process. Without the user's file if the kernel gave this process rights that the user
// does not have (AT_SECURE): the user chooses its path.
[[nodiscard]] DefaultEngineSources default_engine_sources();

// nullopt: no source sets one. Throws CommandLineError (status 125) for a wrong setting and for a
// file that cannot be used.
[[nodiscard]] std::optional<DefaultEngine> find_default_engine(const DefaultEngineSources& sources);

// The engine that TEXT, a configuration file, sets; FILE: its name for messages. Throws
// CommandLineError.
[[nodiscard]] std::optional<DefaultEngine> parse_config(std::string_view text,
                                                        std::string_view file);

[[nodiscard]] std::vector<std::string> engine_words();

// The value of --engine. Throws CommandLineError.
[[nodiscard]] record::EngineName parse_engine(const std::string& name);

// Sets RECORD's engine to the default that SEARCH finds. False: it finds none.
bool apply_default_engine(const DefaultEngineSearch& search, record::RecordPlan& record);

}  // namespace pyinject::cli
