#include "base/text.hpp"
#include "doctor/report.hpp"

#include <nlohmann/json.hpp>

namespace pyinject::doctor {

namespace {

using nlohmann::ordered_json;

ordered_json or_null(const std::string& text) {
  return text.empty() ? ordered_json{} : ordered_json(base::printable(text));
}

ordered_json json_of(const std::vector<Check>& checks) {
  auto all = ordered_json::array();
  for (const auto& check : checks) {
    ordered_json one;
    one["name"] = check.name;
    one["state"] = name(check.state);
    one["found"] = base::printable(check.found);
    one["cost"] = or_null(check.cost);
    one["remedy"] = or_null(check.remedy);
    one["command"] = or_null(check.command);
    one["blocks"] = check.blocks;
    all.push_back(std::move(one));
  }
  return all;
}

ordered_json json_of(const std::vector<Outlook>& engines) {
  auto all = ordered_json::array();
  for (const auto& engine : engines) {
    ordered_json one;
    one["name"] = engine.engine;
    one["works"] = engine.works();
    one["blocked_by"] = engine.blocked_by;
    one["reason"] = nullptr;
    one["found"] = nullptr;
    one["remedy"] = nullptr;
    if (engine.refusal) {
      one["reason"] = python::name(engine.refusal->reason);
      one["found"] = base::printable(engine.refusal->found);
      one["remedy"] = base::printable(engine.refusal->remedy);
    }
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

std::string to_json(const Judgement& judgement) {
  ordered_json all;
  all["schema"] = 1;
  all["works"] = judgement.works();
  all["checks"] = json_of(judgement.checks);
  all["engines"] = json_of(judgement.engines);
  all["processes"] = ordered_json::array();
  for (const auto& process : judgement.processes) {
    const auto& status = process.status;
    ordered_json one;
    one["pid"] = status.pid.value();
    one["version"] = or_null(status.version ? python::to_string(*status.version) : "");
    one["interpreter"] = or_null(status.interpreter);
    one["engines"] = json_of(process.engines);
    one["checks"] = json_of(process.checks);
    all["processes"].push_back(std::move(one));
  }
  return all.dump(2) + "\n";
}

}  // namespace pyinject::doctor
