// One connection: a request, its answer.
#pragma once

#include "serve/service.hpp"

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

namespace pyinject::serve {

// What all connections share.
struct Shared {
  boost::asio::io_context& io;
  boost::asio::thread_pool& makers;
  Service& service;
  ProfileMaker& maker;
  std::chrono::seconds receives{};
  std::chrono::seconds sends{};
  bool stopping = false;
};

// All calls are made in the thread of Shared::io.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Protocol = boost::asio::generic::stream_protocol;
  using Socket = boost::asio::basic_stream_socket<Protocol>;

  // CLOSED is called once, at the end.
  Connection(Socket socket, Shared& shared, std::function<void(Connection*)> closed);

  void start();
  // Whether the client has not sent its whole request yet.
  [[nodiscard]] bool reads_request() const { return state_ == State::kReading; }
  // Has its answer, and waits for the client to close.
  [[nodiscard]] bool lingers() const { return state_ == State::kLingering; }
  // Ends a profile early; closes the connection if there is nothing to answer.
  void stop();
  // Whatever it does: only a profile that is being made keeps it open.
  void close_unless_making();

 private:
  enum class State { kReading, kMaking, kWriting, kLingering, kClosed };
  using Request = boost::beast::http::request_parser<boost::beast::http::empty_body>;
  using Response = boost::beast::http::response<boost::beast::http::string_body>;

  void on_request(const boost::beast::error_code& error);
  void make(const ProfileRequest& request);
  void on_made(const ProfileRequest& request, ProfileResult result);
  void watch_client();
  void on_client(const boost::beast::error_code& error, std::size_t size);
  void answer(Answer answer, bool with_body);
  void on_answered(const boost::beast::error_code& error);
  void close();

  Shared& shared_;
  std::function<void(Connection*)> closed_;
  boost::beast::basic_stream<Protocol> stream_;
  boost::asio::steady_timer linger_;
  boost::beast::flat_buffer buffer_;
  std::optional<Request> request_;
  Response response_;
  std::stop_source stop_;
  std::array<char, 512> discarded_{};
  std::size_t discarded_size_ = 0;
  bool watching_ = false;
  bool client_gone_ = false;
  State state_ = State::kReading;
};

}  // namespace pyinject::serve
