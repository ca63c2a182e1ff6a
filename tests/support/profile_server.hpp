// A profile store on a loopback address: tests/push/profile_server.py.
#pragma once

#include "support/child_process.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace pyinject::test {

class ProfileServer {
 public:
  // ANSWERS: see the script. Throws base::Error if it does not start.
  explicit ProfileServer(const std::vector<std::string>& answers);

  // "http://127.0.0.1:PORT"
  [[nodiscard]] const std::string& url() const { return url_; }
  // The next request, decoded. Throws base::Error if none comes.
  [[nodiscard]] nlohmann::json next();
  // Gives the answer "held": it is in the client's socket then.
  void give_held_answer();
  // Requests that came before this call and were not read.
  [[nodiscard]] std::vector<nlohmann::json> answer_from_now(const std::string& answers);

 private:
  std::string line();

  ChildProcess child_;
  std::string url_;
};

// The ID of a request for Pyroscope.
[[nodiscard]] std::string id_of(const nlohmann::json& request);

}  // namespace pyinject::test
