// A server with a maker that makes a profile when the test says so.
#pragma once

#include "pyinject/base/unique_fd.hpp"
#include "serve/listening_socket.hpp"
#include "serve/server.hpp"
#include "support/patience.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

namespace pyinject::serve {

class HeldMaker : public ProfileMaker {
 public:
  ProfileResult make(const ProfileRequest& request, const std::stop_token& stop) override {
    std::unique_lock lock{mutex_};
    requests_.push_back(request);
    changed_.notify_all();
    changed_.wait_for(lock, stop, test::kPatience, [&] { return released_; });
    if (stop.stop_requested()) {
      ++stopped_;
      changed_.notify_all();
      return Problem{.status = 503, .reason = "stopped", .text = "stopped"};
    }
    return MadeProfile{
        .bytes = std::string("PROFILE\0BYTES", 13), .samples = 7, .lost = 2, .processes = 3};
  }
  void release() {
    const std::scoped_lock lock{mutex_};
    released_ = true;
    changed_.notify_all();
  }
  // False after kPatience.
  bool wait_until_begun(std::size_t count) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, test::kPatience, [&] { return requests_.size() >= count; });
  }
  bool wait_until_stopped(std::size_t count) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, test::kPatience, [&] { return stopped_ >= count; });
  }
  [[nodiscard]] std::vector<ProfileRequest> requests() {
    const std::scoped_lock lock{mutex_};
    return requests_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool released_ = false;
  std::size_t stopped_ = 0;
  std::vector<ProfileRequest> requests_;
};

class RunningServer {
 public:
  explicit RunningServer(ProfileMaker& maker, ServerOptions options = {},
                         const ListenAddress& address = {.address = "127.0.0.1"})
      : socket_{address}, server_{std::move(options), maker}, thread_{[this] {
          server_.run(socket_.fd(), stop_.get());
        }} {}
  ~RunningServer() { stop(); }
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  // Returns when the server has ended.
  void stop() {
    if (thread_.joinable()) {
      const std::uint64_t one = 1;
      (void)!::write(stop_.get(), &one, sizeof one);
      thread_.join();
    }
  }
  [[nodiscard]] std::uint16_t port() const {
    const auto name = socket_.name();
    return static_cast<std::uint16_t>(std::stoi(name.substr(name.rfind(':') + 1)));
  }

 private:
  base::UniqueFd stop_{::eventfd(0, EFD_CLOEXEC)};
  ListeningSocket socket_;
  Server server_;
  std::thread thread_;
};

}  // namespace pyinject::serve
