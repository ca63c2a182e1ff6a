// What a live view shows, as lines of text. Pure: a profile and the keys pressed in, lines out.
#pragma once

#include "live/profile.hpp"
#include "live/row_text.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pyinject::live {

struct Size {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

enum class Style { kPlain, kTitle, kHeading, kSelected, kHot, kFaint };

struct ScreenLine {
  std::string text;  // UTF-8, printable, at most Size::columns wide
  Style style = Style::kPlain;
};

// Facts of the session for the first line.
struct SessionFacts {
  std::size_t processes = 0;
  std::uint64_t lost = 0;
  int frequency = 0;
  bool bpf = true;               // false: the stacks are read from outside
  std::string_view note = {};    // for the last line
  std::string_view target = {};  // "python3 shop.py (pid 4711)"; empty: several processes
};

enum class Key { kUp, kDown, kPageUp, kPageDown, kHome, kEnd, kEnter, kEscape, kBackspace };

class LiveView {
 public:
  // UTF8: the terminal shows more than ASCII.
  explicit LiveView(bool utf8) : utf8_{utf8} {}

  // Each returns false if the view has ended.
  bool press(Key key);
  bool press(char character);

  // The keys p and r, and the letters of a filter, change these.
  [[nodiscard]] bool paused() const { return paused_; }
  [[nodiscard]] bool take_reset() { return std::exchange(reset_, false); }

  // Exactly SIZE.rows lines.
  [[nodiscard]] std::vector<ScreenLine> lines(const Profile& profile, const SessionFacts& facts,
                                              Size size);

  [[nodiscard]] View view() const { return view_; }
  [[nodiscard]] Order order() const { return order_; }

 private:
  void add_table(const Profile& profile, const Columns& columns, Size size,
                 std::vector<ScreenLine>& lines);
  void add_stack(const Profile& profile, Size size, std::vector<ScreenLine>& lines) const;
  static void add_help(std::vector<ScreenLine>& lines);
  void choose(View view);
  void sort_by(Order order);
  void move(std::ptrdiff_t by);

  bool utf8_;
  View view_ = View::kFunctions;
  Order order_ = Order::kSelf;
  bool paused_ = false;
  bool reset_ = false;
  bool help_ = false;
  bool stack_ = false;   // the stack of the selected row is shown
  bool typing_ = false;  // a filter
  std::string filter_;
  std::size_t selected_ = 0;
  std::size_t first_ = 0;  // row at the top
  std::size_t page_ = 1;   // rows of the latest table
  std::size_t count_ = 0;  // of the latest table
  std::uint64_t selected_id_ = 0;
};

// "CPU 98.2%: python 10.4%  c 52.0%  gc ...": shares of one CPU. For stacks read by BPF only.
[[nodiscard]] std::string uses_text(const Profile& profile);
// A sentence if more than 1 % of the samples lack Python functions, else empty.
[[nodiscard]] std::string incompleteness(const Profile& profile, const SessionFacts& facts);
// The table for --once.
[[nodiscard]] std::string to_text(const Profile& profile, const TableOptions& options);
// docs/top-json.md describes the format.
[[nodiscard]] std::string to_json(const Profile& profile, const SessionFacts& facts);

}  // namespace pyinject::live
