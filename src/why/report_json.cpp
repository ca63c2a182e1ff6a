#include "base/text.hpp"
#include "bpf/stack_kind.hpp"
#include "inspect/frame_json.hpp"
#include "inspect/greenlets_text.hpp"
#include "why/report_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace pyinject::why {

namespace {

using inspect::text_or_null;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr std::size_t kMostGreenletStacks = 1000;

ordered_json place(const Spent& spent) {
  return {{"function", text_or_null(spent.function)},
          {"file", text_or_null(spent.file)},
          {"line", spent.line == 0 ? ordered_json{} : ordered_json(spent.line)}};
}

ordered_json use(const UseOfGroup& use) {
  auto top = ordered_json::array();
  for (const auto& spent : use.top) {
    auto one = place(spent);
    one["detail"] = text_or_null(spent.detail);
    one["seconds"] = seconds(spent.time);
    top.push_back(std::move(one));
  }
  return {{"use", sample::facts(use.use).name},
          {"idle", sample::facts(use.use).idle},
          {"seconds", seconds(use.time)},
          {"top", std::move(top)}};
}

ordered_json group(const Group& group) {
  auto uses = ordered_json::array();
  for (const auto& each : group.uses) {
    uses.push_back(use(each));
  }
  return {{"name", base::printable(group.name)},
          {"tids", group.tids},
          {"wall_seconds", seconds(group.wall)},
          {"busy_seconds", seconds(group.busy)},
          {"run_queue_seconds", seconds(group.for_cpu)},
          {"major_faults", group.major_faults},
          {"uses", std::move(uses)}};
}

ordered_json holders(const std::vector<Holder>& holders) {
  auto all = ordered_json::array();
  for (const auto& holder : holders) {
    all.push_back({{"object", text_or_null(holder.object)},
                   {"tid", holder.tid == 0 ? ordered_json{} : ordered_json(holder.tid)},
                   {"thread", text_or_null(holder.thread)},
                   {"held", place(holder.held)},
                   {"released", holder.released},
                   {"waiters", base::printable(holder.waiter)},
                   {"waited", place(holder.waited)},
                   {"seconds", seconds(holder.time)}});
  }
  return all;
}

ordered_json greenlets(const std::vector<python::SuspendedGreenlet>& greenlets) {
  auto all = ordered_json::array();
  const auto groups = inspect::alike(greenlets);
  for (const auto& [first, count] :
       std::span{groups}.first(std::min(groups.size(), kMostGreenletStacks))) {
    all.push_back({{"count", count},
                   {"type", base::printable(first->type)},
                   {"frames", inspect::frames_json(first->frames)},
                   {"certain", first->certain}});
  }
  return all;
}

}  // namespace

std::string to_json(const Report& report) {
  auto groups = ordered_json::array();
  for (const auto& each : report.groups) {
    groups.push_back(group(each));
  }
  auto unusual = ordered_json::array();
  for (const auto& each : report.unusual) {
    unusual.push_back(
        {{"name", each.name}, {"text", each.text}, {"next", text_or_null(each.next)}});
  }
  auto stacks = ordered_json::object();
  for (const auto kind : bpf::kKindsOfStacks) {
    stacks[std::string{perfdata::name(kind)}] = report.kinds.of(kind);
  }
  auto considered = ordered_json::array();
  for (const auto& each : report.considered) {
    considered.push_back({{"pid", each.pid},
                          {"command", text_or_null(each.command)},
                          {"cpu", std::round(each.cpu * 1000) / 1000}});
  }
  const ordered_json all{
      {"version", kVersion},
      {"pid", report.pid},
      {"command", text_or_null(report.command)},
      {"python", report.version},
      {"seconds", seconds(report.length)},
      {"cause", report.cause},
      {"verdict", report.verdict},
      {"next", text_or_null(report.next)},
      {"unusual", std::move(unusual)},
      {"groups", std::move(groups)},
      {"children",
       {{"processes", report.descendants.processes},
        {"cpu_seconds", seconds(static_cast<std::uint64_t>(report.descendants.on_cpu.count()))}}},
      {"gil", holders(report.gil)},
      {"locks", holders(report.locks)},
      {"greenlets", report.greenlets.size()},
      {"all_greenlets", report.all_greenlets},
      {"greenlet_stacks", greenlets(report.greenlets)},
      {"samples", report.samples},
      {"stacks", std::move(stacks)},
      {"switches", report.switches},
      {"snapshots", report.snapshots},
      {"lost", report.lost},
      {"considered", std::move(considered)}};
  constexpr int kIndent = 2;
  return all.dump(kIndent, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace pyinject::why
