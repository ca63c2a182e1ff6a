#include "serve/service.hpp"

#include "base/text.hpp"
#include "serve/query.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace pyinject::serve {

namespace {

constexpr std::string_view kProfilePath = "/debug/pprof/profile";
constexpr std::string_view kIndexPath = "/debug/pprof/";
constexpr std::string_view kMetricsPath = "/metrics";
constexpr std::string_view kHealthPath = "/healthz";

namespace status {
constexpr unsigned kMoved = 301;
constexpr unsigned kUnauthorized = 401;
constexpr unsigned kForbidden = 403;
constexpr unsigned kNotFound = 404;
constexpr unsigned kBadMethod = 405;
constexpr unsigned kTooMany = 429;
constexpr unsigned kUnavailable = 503;
}  // namespace status

constexpr std::string_view kIndex = R"(<!DOCTYPE html>
<html><head><title>/debug/pprof/</title></head><body>
<p>/debug/pprof/ of perf-pyinject: profiles of Python processes</p>
<p><a href="profile?seconds=5">profile</a>: where CPU time goes, as a gzip'ed pprof.
Parameters: seconds (default 30), pid or comm (the name of processes), event (cpu, offcpu)</p>
<p><a href="/metrics">metrics</a>, <a href="/healthz">healthz</a></p>
</body></html>
)";

// Go's readers print the text of an answer that has X-Go-Pprof.
Answer answer_of(const Problem& problem) {
  const auto reason = fmt::format("({})", problem.reason);
  const bool named = problem.text.find(reason) != std::string::npos;
  return {.status = problem.status,
          .body = fmt::format("{}{}{}\n", problem.text, named ? "" : " ", named ? "" : reason),
          .headers = {{"X-Go-Pprof", "1"}}};
}

std::string in_seconds(double seconds) {
  return fmt::format("{:.0f}", std::max(1.0, std::ceil(seconds)));
}

}  // namespace

Service::Service(ServiceOptions options)
    : options_{std::move(options)}, turns_{static_cast<double>(options_.most_per_minute)} {}

std::optional<Problem> Service::check_access(const HttpRequest& request) const {
  if (options_.token) {
    return options_.token->allows(request.authorization)
               ? std::nullopt
               : std::optional{Problem{.status = status::kUnauthorized,
                                       .reason = "unauthorized",
                                       .text = "needs Authorization: Bearer TOKEN"}};
  }
  if (options_.local_hosts_only && !is_local_host(request.host)) {
    return Problem{.status = status::kForbidden,
                   .reason = "foreign_host",
                   .text = fmt::format("Host: {}: expected localhost or 127.0.0.1",
                                       base::printable(request.host, 100))};
  }
  if (!request.fetch_site.empty() && request.fetch_site != "none" &&
      request.fetch_site != "same-origin") {
    return Problem{.status = status::kForbidden,
                   .reason = "foreign_page",
                   .text = "a page of another site sent this request"};
  }
  return std::nullopt;
}

Answer Service::refuse(const Problem& problem) {
  ++metrics_.refusals[problem.reason];
  return answer_of(problem);
}

Answer Service::page(std::string_view path) {
  if (path == kIndexPath) {
    return {.type = "text/html; charset=utf-8", .body = std::string{kIndex}};
  }
  if (path == kIndexPath.substr(0, kIndexPath.size() - 1) || path == "/") {
    return {
        .status = status::kMoved, .body = {}, .headers = {{"Location", std::string{kIndexPath}}}};
  }
  if (path == kHealthPath) {
    return {.body = "ok\n"};
  }
  if (path == kMetricsPath) {
    return {.type = "text/plain; version=0.0.4; charset=utf-8",
            .body = to_prometheus(metrics_, options_.own_use())};
  }
  return refuse({.status = status::kNotFound,
                 .reason = "unknown_path",
                 .text = fmt::format("{}: expected {}, {}, {} or {}", base::printable(path, 100),
                                     kProfilePath, kIndexPath, kMetricsPath, kHealthPath)});
}

bool Service::take_turn(Clock::time_point now) {
  const auto most = static_cast<double>(options_.most_per_minute);
  if (counted_) {
    turns_ += most * std::chrono::duration<double, std::ratio<60>>(now - *counted_).count();
  }
  counted_ = now;
  turns_ = std::min(turns_, most);
  if (turns_ < 1) {
    return false;
  }
  turns_ -= 1;
  return true;
}

std::variant<Answer, ProfileRequest> Service::decide_profile(const HttpRequest& request,
                                                             std::string_view query,
                                                             Clock::time_point now) {
  if (request.method != "GET") {
    auto answer =
        refuse({.status = status::kBadMethod, .reason = "bad_method", .text = "expected GET"});
    answer.headers.emplace_back("Allow", "GET");
    return answer;
  }
  auto parsed = parse_query(query, options_.most_seconds);
  if (const auto* const problem = std::get_if<Problem>(&parsed)) {
    return refuse(*problem);
  }
  if (metrics_.running >= options_.most_running) {
    auto answer =
        refuse({.status = status::kUnavailable,
                .reason = "too_many_profiles",
                .text = fmt::format("{} being made (--max-requests)",
                                    metrics_.running == 1
                                        ? std::string{"1 profile is"}
                                        : fmt::format("{} profiles are", metrics_.running))});
    answer.headers.emplace_back("Retry-After", "5");
    return answer;
  }
  if (!take_turn(now)) {
    auto answer = refuse({.status = status::kTooMany,
                          .reason = "too_many_requests",
                          .text = fmt::format("more than {} profiles per minute (--max-rate)",
                                              options_.most_per_minute)});
    answer.headers.emplace_back("Retry-After",
                                in_seconds(60.0 * (1 - turns_) / options_.most_per_minute));
    return answer;
  }
  ++metrics_.running;
  return std::get<ProfileRequest>(std::move(parsed));
}

std::variant<Answer, ProfileRequest> Service::decide(const HttpRequest& request,
                                                     Clock::time_point now) {
  if (const auto problem = check_access(request)) {
    auto answer = refuse(*problem);
    if (problem->status == status::kUnauthorized) {
      answer.headers.emplace_back("WWW-Authenticate", "Bearer");
    }
    return answer;
  }
  const std::string_view target{request.target};
  const auto mark = std::min(target.find('?'), target.size());
  const auto path = target.substr(0, mark);
  if (path == kProfilePath) {
    return decide_profile(request, target.substr(std::min(mark + 1, target.size())), now);
  }
  if (request.method != "GET" && request.method != "HEAD") {
    auto answer = refuse(
        {.status = status::kBadMethod, .reason = "bad_method", .text = "expected GET or HEAD"});
    answer.headers.emplace_back("Allow", "GET, HEAD");
    return answer;
  }
  return page(path);
}

Answer Service::finish(const ProfileRequest& request, ProfileResult result, bool abandoned) {
  --metrics_.running;
  if (abandoned) {
    ++metrics_.failures["client_gone"];
    return {};
  }
  if (const auto* const problem = std::get_if<Problem>(&result)) {
    ++metrics_.failures[problem->reason];
    return answer_of(*problem);
  }
  auto& made = std::get<MadeProfile>(result);
  ++metrics_.profiles[request.event];
  metrics_.samples += made.samples;
  metrics_.lost += made.lost;
  metrics_.targets = made.processes;
  return {.type = "application/octet-stream",
          .body = std::move(made.bytes),
          .headers = {{"Content-Disposition", "attachment; filename=\"profile\""}}};
}

}  // namespace pyinject::serve
