#include "push/client.hpp"

#include "pyinject/base/error.hpp"

#include <utility>

#ifdef PYINJECT_CURL

#include "base/text.hpp"
#include "pyinject/version.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <string_view>

#include <curl/curl.h>
#include <sys/socket.h>

namespace pyinject::push {

namespace {

constexpr std::size_t kQuotedOfAnswer = 200;
constexpr std::size_t kKeptOfAnswer = 16384;  // a secret that begins in the quoted part is whole
constexpr std::size_t kLongestAnswer = std::size_t{1} << 20U;

struct CurlGlobals {
  CurlGlobals() { ::curl_global_init(CURL_GLOBAL_DEFAULT); }
};

struct Received {
  std::string begin;
  std::size_t bytes = 0;
};

std::size_t receive(char* data, std::size_t /*one*/, std::size_t size, void* to) {
  auto& received = *static_cast<Received*>(to);
  received.bytes += size;
  received.begin.append(data, std::min(size, kKeptOfAnswer - received.begin.size()));
  return received.bytes > kLongestAnswer ? 0 : size;
}

int is_given_up(void* give_up, curl_off_t /*dltotal*/, curl_off_t /*dlnow*/, curl_off_t /*ultotal*/,
                curl_off_t /*ulnow*/) {
  return (*static_cast<const std::function<bool()>*>(give_up))() ? 1 : 0;
}

// perf and the guard must not inherit the connection.
curl_socket_t open_socket(void* /*none*/, curlsocktype /*purpose*/, curl_sockaddr* address) {
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

class HeaderList {
 public:
  HeaderList() = default;
  ~HeaderList() { ::curl_slist_free_all(list_); }
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  void add(const std::string& line) {
    auto* const longer = ::curl_slist_append(list_, line.c_str());
    if (longer == nullptr) {
      throw std::bad_alloc{};
    }
    list_ = longer;
  }
  [[nodiscard]] curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

CURL* new_handle() {
  static const CurlGlobals globals;
  return ::curl_easy_init();
}

}  // namespace

class Client::Connection {
 public:
  Connection() : curl_{new_handle()} {
    if (curl_ == nullptr) {
      throw base::Error{"libcurl cannot be initialised"};
    }
  }
  ~Connection() { ::curl_easy_cleanup(curl_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void prepare(const std::string& url, const std::string& body, const ClientTimes& times) {
    ::curl_easy_reset(curl_);
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_USERAGENT, "perf-pyinject/" PYINJECT_VERSION);
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(times.connect.count()));
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(times.whole.count()));
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    set(CURLOPT_POSTFIELDS, body.data());
    set(CURLOPT_OPENSOCKETFUNCTION, open_socket);
    set(CURLOPT_WRITEFUNCTION, receive);
    set(CURLOPT_XFERINFOFUNCTION, is_given_up);
    set(CURLOPT_NOPROGRESS, 0L);
  }
  template <typename Value>
  void set(CURLoption option, Value value) {
    if (::curl_easy_setopt(curl_, option, value) != CURLE_OK) {
      throw base::Error{fmt::format("libcurl does not take option {}", static_cast<int>(option))};
    }
  }
  [[nodiscard]] CURLcode perform() { return ::curl_easy_perform(curl_); }
  template <typename Value>
  [[nodiscard]] Value info(CURLINFO which) {
    Value value{};
    ::curl_easy_getinfo(curl_, which, &value);
    return value;
  }

 private:
  CURL* curl_;
};

bool can_send() { return true; }

Client::Client(Credentials credentials, const ClientTimes& times)
    : credentials_{std::move(credentials)},
      times_{times},
      connection_{std::make_unique<Connection>()} {}

Client::~Client() = default;

Answer Client::send(const std::string& url, const Request& request,
                    const std::function<bool()>& give_up) {
  HeaderList headers;
  for (const auto& line : request.headers) {
    headers.add(line);
  }
  for (const auto& line : credentials_.headers()) {
    headers.add(line);
  }
  headers.add("Expect:");  // no round trip before the body
  Received received;
  std::array<char, CURL_ERROR_SIZE> error{};
  connection_->prepare(url + request.path, request.body, times_);
  connection_->set(CURLOPT_HTTPHEADER, headers.get());
  connection_->set(CURLOPT_WRITEDATA, &received);
  connection_->set(CURLOPT_XFERINFODATA, &give_up);
  connection_->set(CURLOPT_ERRORBUFFER, error.data());
  const auto code = connection_->perform();
  Answer answer;
  if (code != CURLE_OK) {
    const std::string detail{error.data()};
    answer.why = base::printable(detail.empty() ? ::curl_easy_strerror(code) : detail);
    return answer;
  }
  answer.status = connection_->info<long>(CURLINFO_RESPONSE_CODE);
  answer.retry_after = std::chrono::seconds{
      std::max<curl_off_t>(connection_->info<curl_off_t>(CURLINFO_RETRY_AFTER), 0)};
  const bool secret = credentials_.appear_in(received.begin);
  if (judge(answer) == Verdict::kAccepted) {
    answer.body = secret ? std::string{} : std::move(received.begin);
  } else {
    const auto text = base::trim(received.begin);
    const bool quote = !text.empty() && !secret;
    answer.why = fmt::format("HTTP {}{}{}", answer.status, quote ? ": " : "",
                             quote ? base::printable(text, kQuotedOfAnswer) : "");
  }
  return answer;
}

}  // namespace pyinject::push

#else

namespace pyinject::push {

class Client::Connection {};

bool can_send() { return false; }

Client::Client(Credentials credentials, const ClientTimes& times)
    : credentials_{std::move(credentials)}, times_{times} {
  throw base::Error{"this build has no libcurl (libcurl4-openssl-dev)"};
}

Client::~Client() = default;

Answer Client::send(const std::string& /*url*/, const Request& /*request*/,
                    const std::function<bool()>& /*give_up*/) {
  return {};
}

}  // namespace pyinject::push

#endif
