#include "serve/server.hpp"

#include "pyinject/base/error.hpp"
#include "serve/connection.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <cerrno>
#include <list>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace pyinject::serve {

namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::milliseconds kWithoutDescriptors{200};
// From the stop until connections are closed. Profiles have their own limit.
constexpr std::chrono::seconds kGrace{3};

// The connections of one server.
class Lobby {
 public:
  Lobby(const ServerOptions& options, ProfileMaker& maker, int listener, int stop)
      : most_{options.most_connections},
        makers_{options.service.most_running},
        service_{options.service},
        shared_{.io = io_,
                .makers = makers_,
                .service = service_,
                .maker = maker,
                .receives = options.receives,
                .sends = options.sends},
        listener_{io_, duplicate(listener)},
        stop_{io_, duplicate(stop)},
        timer_{io_} {}
  ~Lobby() { makers_.join(); }
  Lobby(const Lobby&) = delete;
  Lobby& operator=(const Lobby&) = delete;

  void run() {
    stop_.async_wait(asio::posix::stream_descriptor::wait_read,
                     [this](const error_code& /*error*/) { stop(); });
    await_clients();
    io_.run();
  }

 private:
  static int duplicate(int fd) {
    const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) {
      throw base::SystemError{"cannot serve", errno};
    }
    return copy;
  }

  void await_clients() {
    if (!shared_.stopping) {
      listener_.async_wait(asio::posix::stream_descriptor::wait_read,
                           [this](const error_code& error) {
                             if (!error) {
                               accept();
                             }
                           });
    }
  }

  void accept() {
    const int fd =
        ::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
      timer_.expires_after(kWithoutDescriptors);
      timer_.async_wait([this](const error_code& /*error*/) { await_clients(); });
      return;
    }
    if (fd >= 0) {
      admit(fd);
    }
    await_clients();
  }

  void admit(int fd) {
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): as getsockname(2) wants it
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size);
    Connection::Socket socket{io_, Connection::Protocol{own.ss_family, 0}, fd};
    if (connections_.size() >= most_ && !make_room()) {
      (void)service_.refuse({.status = 503, .reason = "too_many_connections", .text = {}});
      return;  // closes it
    }
    connections_.push_back(std::make_shared<Connection>(std::move(socket), shared_,
                                                        [this](Connection* one) { forget(one); }));
    service_.set_connections(connections_.size());
    connections_.back()->start();
  }

  // Slow clients must not keep others out: closes the oldest connection that has its answer, else
  // the oldest one without a request.
  bool make_room() {
    auto found = std::ranges::find_if(connections_,
                                      [](const auto& connection) { return connection->lingers(); });
    if (found == connections_.end()) {
      found = std::ranges::find_if(
          connections_, [](const auto& connection) { return connection->reads_request(); });
      if (found == connections_.end()) {
        return false;
      }
      (void)service_.refuse({.status = 503, .reason = "slow_client", .text = {}});
    }
    const auto kept = *found;
    kept->stop();
    return true;
  }

  void forget(const Connection* one) {
    std::erase_if(connections_, [one](const auto& connection) { return connection.get() == one; });
    service_.set_connections(connections_.size());
    if (shared_.stopping && connections_.empty()) {
      timer_.cancel();
    }
  }

  void stop() {
    shared_.stopping = true;
    error_code ignored;
    listener_.close(ignored);
    timer_.cancel();
    for_all(&Connection::stop);
    if (connections_.empty()) {
      return;
    }
    timer_.expires_after(kGrace);
    timer_.async_wait(
        [this](const error_code& /*error*/) { for_all(&Connection::close_unless_making); });
  }

  // CALL may close the connection.
  void for_all(void (Connection::*call)()) {
    const auto all = connections_;
    for (const auto& connection : all) {
      (*connection.*call)();
    }
  }

  std::size_t most_;
  asio::io_context io_{1};
  asio::thread_pool makers_;
  Service service_;
  Shared shared_;
  asio::posix::stream_descriptor listener_;
  asio::posix::stream_descriptor stop_;
  asio::steady_timer timer_;
  std::list<std::shared_ptr<Connection>> connections_;
};

}  // namespace

void Server::run(int listener, int stop) {
  try {
    Lobby{options_, maker_, listener, stop}.run();
  } catch (const boost::system::system_error& error) {
    throw base::SystemError{"cannot serve", error.code().value()};
  }
}

}  // namespace pyinject::serve
