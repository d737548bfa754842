// Text that is being written.
#pragma once

#include <cstdio>
#include <string>

namespace gyre::compiler {

/// One number printed by printf's rules.
template <class Number>
std::string format(const char* pattern, Number number) {
  char text[128];
  return {text, static_cast<size_t>(std::snprintf(text, sizeof text, pattern, number))};
}

/// Lines of C++, indented by the braces around them.
class Lines {
 public:
  void add(const std::string& line) {
    text_ += line.empty() ? "\n" : std::string(depth_ * 2, ' ') + line + '\n';
  }
  void open(const std::string& line) {
    add(line);
    ++depth_;
  }
  void close(const std::string& line) {
    --depth_;
    add(line);
  }
  /// An access specifier: half an indentation to the left.
  void access(const std::string& line) { text_ += std::string(depth_ * 2 - 1, ' ') + line + '\n'; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  size_t depth_ = 0;
};

}  // namespace gyre::compiler
