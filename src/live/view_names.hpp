// The tables of a live profile: their names, and the keys that choose them.
#pragma once

#include "live/row_id.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace pyinject::live {

struct ViewName {
  View view;
  char key;
  std::string_view name;   // stable
  std::string_view shown;  // beside its key
  std::string_view heading;
};
inline constexpr auto kViews = std::to_array<ViewName>({
    {View::kFunctions, 'f', "functions", "functions", "FUNCTION"},
    {View::kLines, 'l', "lines", "lines", "LINE"},
    {View::kC, 'c', "c_functions", "C", "C FUNCTION"},
    {View::kThreads, 't', "threads", "threads", "THREAD"},
    {View::kTasks, 'a', "tasks", "tasks", "TASK"},
    {View::kProcesses, 'P', "processes", "processes", "PROCESS"},
});
[[nodiscard]] constexpr const ViewName& name_of(View view) {
  return *std::ranges::find(kViews, view, &ViewName::view);
}

}  // namespace pyinject::live
