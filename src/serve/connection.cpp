#include "serve/connection.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

#include <string>
#include <utility>
#include <variant>

namespace pyinject::serve {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::beast::error_code;

constexpr std::size_t kMostBuffered = std::size_t{16} << 10U;
constexpr std::uint32_t kMostHeader = std::uint32_t{8} << 10U;
constexpr std::size_t kMostDiscarded = std::size_t{64} << 10U;
constexpr std::chrono::seconds kLingers{1};
constexpr std::chrono::seconds kSendsAtTheEnd{3};

// nullopt: the client has gone or was too slow.
std::optional<Problem> problem_of(const error_code& error) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return Problem{.status = 431, .reason = "header_too_large", .text = "the header is too large"};
  }
  if (error == http::error::body_limit || error == http::error::unexpected_body) {
    return Problem{.status = 413, .reason = "body", .text = "expected a request without a body"};
  }
  if (error == http::error::end_of_stream || error == http::error::partial_message ||
      error.category() != make_error_code(http::error::bad_method).category()) {
    return std::nullopt;
  }
  return Problem{.status = 400, .reason = "malformed", .text = "not an HTTP/1 request"};
}

HttpRequest parts_of(const http::request<http::empty_body>& request) {
  const auto text = [](const auto& view) { return std::string{view.data(), view.size()}; };
  return {.method = text(request.method_string()),
          .target = text(request.target()),
          .host = text(request[http::field::host]),
          .authorization = text(request[http::field::authorization]),
          .fetch_site = text(request["Sec-Fetch-Site"])};
}

}  // namespace

Connection::Connection(Socket socket, Shared& shared, std::function<void(Connection*)> closed)
    : shared_{shared},
      closed_{std::move(closed)},
      stream_{std::move(socket)},
      linger_{shared.io},
      buffer_{kMostBuffered} {}

void Connection::start() {
  request_.emplace();
  request_->header_limit(kMostHeader);
  request_->body_limit(0);
  stream_.expires_after(shared_.receives);
  http::async_read(stream_, buffer_, *request_,
                   [self = shared_from_this()](const error_code& error, std::size_t /*size*/) {
                     self->on_request(error);
                   });
}

void Connection::on_request(const error_code& error) {
  if (state_ != State::kReading) {
    return;
  }
  if (error) {
    const auto problem = problem_of(error);
    if (!problem) {
      close();
      return;
    }
    answer(shared_.service.refuse(*problem), true);
    return;
  }
  const auto& request = request_->get();
  if (request.version() >= 11 && request.count(http::field::host) != 1) {
    answer(shared_.service.refuse(
               {.status = 400, .reason = "malformed", .text = "expected one Host header"}),
           true);
    return;
  }
  auto decision = shared_.service.decide(parts_of(request), Service::Clock::now());
  if (const auto* const profile = std::get_if<ProfileRequest>(&decision)) {
    make(*profile);
    return;
  }
  answer(std::get<Answer>(std::move(decision)), request.method() != http::verb::head);
}

void Connection::make(const ProfileRequest& request) {
  state_ = State::kMaking;
  stream_.expires_never();
  watch_client();
  asio::post(shared_.makers, [self = shared_from_this(), request, &io = shared_.io,
                              &maker = shared_.maker, stop = stop_.get_token(),
                              work = asio::make_work_guard(shared_.io)]() mutable {
    auto result = maker.make(request, stop);
    asio::post(io, [self = std::move(self), request, result = std::move(result)]() mutable {
      self->on_made(request, std::move(result));
    });
  });
}

void Connection::on_made(const ProfileRequest& request, ProfileResult result) {
  auto made = shared_.service.finish(request, std::move(result), client_gone_);
  if (client_gone_) {
    close();
    return;
  }
  answer(std::move(made), true);
}

// Reads, and drops, what the client sends behind its request, to notice when it goes.
void Connection::watch_client() {
  watching_ = true;
  stream_.async_read_some(asio::buffer(discarded_),
                          [self = shared_from_this()](const error_code& error, std::size_t size) {
                            self->on_client(error, size);
                          });
}

void Connection::on_client(const error_code& error, std::size_t size) {
  watching_ = false;
  discarded_size_ += size;
  if (!error && discarded_size_ <= kMostDiscarded) {
    watch_client();
    return;
  }
  if (state_ == State::kMaking) {
    client_gone_ = true;
    stop_.request_stop();
  } else if (state_ == State::kLingering) {
    close();
  }
}

void Connection::answer(Answer answer, bool with_body) {
  state_ = State::kWriting;
  response_ = {};
  response_.version(11);
  response_.result(answer.status);
  for (const auto& [name, value] : answer.headers) {
    response_.set(name, value);
  }
  response_.set(http::field::content_type, answer.type);
  response_.set("X-Content-Type-Options", "nosniff");
  response_.keep_alive(false);
  response_.content_length(answer.body.size());
  if (with_body) {
    response_.body() = std::move(answer.body);
  }
  stream_.expires_after(shared_.stopping ? kSendsAtTheEnd : shared_.sends);
  http::async_write(stream_, response_,
                    [self = shared_from_this()](const error_code& error, std::size_t /*size*/) {
                      self->on_answered(error);
                    });
}

// Closing a socket with unread input would reset the connection, and the client could lose the
// answer.
void Connection::on_answered(const error_code& error) {
  if (state_ == State::kClosed) {
    return;
  }
  error_code ignored;
  stream_.socket().shutdown(Socket::shutdown_send, ignored);
  if (error || ignored) {
    close();
    return;
  }
  state_ = State::kLingering;
  linger_.expires_after(kLingers);
  linger_.async_wait([self = shared_from_this()](const error_code& timer_error) {
    if (!timer_error) {
      self->close();
    }
  });
  if (!watching_) {
    stream_.expires_never();
    watch_client();
  }
}

void Connection::stop() {
  stop_.request_stop();
  if (state_ == State::kReading || state_ == State::kLingering) {
    close();
  }
}

void Connection::close_unless_making() {
  if (state_ != State::kMaking) {
    close();
  }
}

void Connection::close() {
  if (state_ == State::kClosed) {
    return;
  }
  state_ = State::kClosed;
  linger_.cancel();
  stream_.close();
  closed_(this);
}

}  // namespace pyinject::serve
