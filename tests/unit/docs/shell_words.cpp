#include "unit/docs/shell_words.hpp"

#include <algorithm>
#include <cstddef>

namespace pyinject::test {

namespace {

class Splitter {
 public:
  explicit Splitter(std::string_view line) : line_{line} {}

  std::vector<std::vector<std::string>> split() {
    for (; at_ < line_.size(); ++at_) {
      const char one = line_[at_];
      if (quote_ != 0) {
        quoted(one);
      } else if (one == '\'' || one == '"') {
        quote_ = one;
        word_begun_ = true;
      } else if (one == '\\' && at_ + 1 < line_.size()) {
        add(line_[++at_]);
      } else if (line_.substr(at_).starts_with("$(")) {
        at_ = std::min(line_.find(')', at_), line_.size());
        add('1');
      } else if (one == '#' && !word_begun_) {
        break;
      } else if (one == ' ' || one == '\t') {
        end_word();
      } else if (one == '|' || one == '&' || one == ';') {
        end_command();
      } else if (one == '>' || one == '<') {
        end_word();
        redirected_ = true;
      } else {
        add(one);
      }
    }
    end_command();
    return commands_;
  }

 private:
  void add(char one) {
    word_ += one;
    word_begun_ = true;
  }

  void quoted(char one) {
    if (one == quote_) {
      quote_ = 0;
    } else {
      word_ += one;
    }
  }

  void end_word() {
    if (word_begun_ && !redirected_) {
      words_.push_back(word_);
    }
    redirected_ = redirected_ && !word_begun_;
    word_.clear();
    word_begun_ = false;
  }

  void end_command() {
    end_word();
    redirected_ = false;
    if (!words_.empty()) {
      commands_.push_back(std::move(words_));
    }
    words_ = {};
  }

  std::string_view line_;
  std::size_t at_ = 0;
  char quote_ = 0;
  bool word_begun_ = false;
  bool redirected_ = false;
  std::string word_;
  std::vector<std::string> words_;
  std::vector<std::vector<std::string>> commands_;
};

}  // namespace

std::vector<std::vector<std::string>> shell_commands(std::string_view line) {
  return Splitter{line}.split();
}

}  // namespace pyinject::test
