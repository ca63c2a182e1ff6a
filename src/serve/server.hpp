// An HTTP server for profiles.
#pragma once

#include "serve/profile_maker.hpp"
#include "serve/service.hpp"

#include <chrono>
#include <cstddef>

namespace pyinject::serve {

struct ServerOptions {
  ServiceOptions service{};
  std::size_t most_connections = 64;
  std::chrono::seconds receives{10};  // a whole request
  std::chrono::seconds sends{60};     // a whole answer
};

// One request per connection. One thread handles all connections; as many threads as there may be
// profiles at a time make these.
class Server {
 public:
  // MAKER must outlive this object.
  Server(ServerOptions options, ProfileMaker& maker)
      : options_{std::move(options)}, maker_{maker} {}

  // Serves those who connect to LISTENER, which must not block, until STOP is readable; then ends
  // the profiles early and returns when all have ended. Throws base::Error.
  void run(int listener, int stop);

 private:
  ServerOptions options_;
  ProfileMaker& maker_;
};

}  // namespace pyinject::serve
