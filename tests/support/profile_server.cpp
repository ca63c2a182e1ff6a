#include "support/profile_server.hpp"

#include "pyinject/base/error.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"

namespace pyinject::test {

namespace {

std::vector<std::string> server_command(const std::vector<std::string>& answers) {
  std::vector<std::string> words{"python3", source_dir() + "/tests/push/profile_server.py"};
  words.insert(words.end(), answers.begin(), answers.end());
  return words;
}

}  // namespace

ProfileServer::ProfileServer(const std::vector<std::string>& answers)
    : child_{server_command(answers)}, url_{"http://127.0.0.1:" + line()} {}

std::string ProfileServer::line() {
  const auto line = child_.read_line(base::Deadline::after(kPatience));
  if (!line) {
    throw base::Error{"the profile server says nothing: " + child_.err()};
  }
  return *line;
}

nlohmann::json ProfileServer::next() { return nlohmann::json::parse(line()); }

void ProfileServer::give_held_answer() {
  child_.write("go\n");
  if (const auto answered = line(); answered != "answered") {
    throw base::Error{"the profile server has printed: " + answered};
  }
}

std::vector<nlohmann::json> ProfileServer::answer_from_now(const std::string& answers) {
  child_.write(answers + "\n");
  std::vector<nlohmann::json> before;
  for (auto text = line(); text != "replaced"; text = line()) {
    before.push_back(nlohmann::json::parse(text));
  }
  return before;
}

std::string id_of(const nlohmann::json& request) {
  return request.at("body").at("series").at(0).at("samples").at(0).at("ID");
}

}  // namespace pyinject::test
