// Parts of the sentences in which a verdict is given. Pure.
#pragma once

#include "why/recording.hpp"
#include "why/report.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::why {

// Whole percent of VALUE, a share.
[[nodiscard]] long percent(double value);

// "compute shop.py:26".
[[nodiscard]] std::string short_place(const Spent& spent);

// "thread 4713 "worker-0"".
[[nodiscard]] std::string thread_text(const Recording& recording, std::uint32_t tid);

// The same, and where it was seen to wait at last. RECORDING: sorted, as account() leaves it.
[[nodiscard]] std::string waiter_text(const Recording& recording, std::uint32_t tid);

// What to type next. NEXT: UseFacts::next. OPTIONS end with a blank.
[[nodiscard]] std::string next_of(const Recording& recording, std::string_view next);
[[nodiscard]] std::string dump_of(const Recording& recording);
[[nodiscard]] std::string record_command(const Recording& recording, std::string_view options);

// Of a process that ended before the recording: the stable name, the text, what to type next.
[[nodiscard]] std::string_view end_name(const Recording& recording);
[[nodiscard]] std::string end_text(const Recording& recording);
[[nodiscard]] std::string end_next(const Recording& recording);

// Whether its descendants work.
[[nodiscard]] bool descendants_work(const Recording& recording);
[[nodiscard]] std::string descendants_command(const Recording& recording);
// How many CPUs its descendants use in LENGTH nanoseconds.
[[nodiscard]] std::string descendants_text(const Recording& recording, std::uint64_t length);

// Which cgroup took its CPUs away. RECORDING: has one.
[[nodiscard]] std::string limit_text(const Recording& recording);

// Each of these is empty if there is nothing to say, else it begins with "; ".

// Where most of ALL wait, which are of KIND: "; 20 of 22 asyncio tasks wait in call gw.py:8".
[[nodiscard]] std::string most_wait(const Recording& recording,
                                    const std::map<Line, std::size_t>& all, std::string_view kind);

// The servers with most of its connections, and how many these are.
[[nodiscard]] std::string servers_text(const Recording& recording);

// Which line has what others wait for during most of the time of HOLDERS.
[[nodiscard]] std::string holder_text(const Recording& recording,
                                      const std::vector<Holder>& holders);

// Which line first touched most of its new pages, if these are much of the GROWN kB; empty also if
// no line did. RECORDING: as account() leaves it.
[[nodiscard]] std::string new_pages_text(const Recording& recording, std::uint64_t grown);

// How many CPUs its own threads use, which were on one for OWN of LENGTH nanoseconds, and other
// programs; together all that are in use.
[[nodiscard]] std::string users_text(const Recording& recording, std::uint64_t own,
                                     std::uint64_t length);

}  // namespace pyinject::why
