// The judgement, for people and for programs.
#pragma once

#include "doctor/judge.hpp"

#include <string>

namespace pyinject::doctor {

[[nodiscard]] std::string to_text(const Judgement& judgement);
// docs/doctor-json.md describes the format.
[[nodiscard]] std::string to_json(const Judgement& judgement);

}  // namespace pyinject::doctor
