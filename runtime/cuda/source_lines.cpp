// What a compiler's log is about: the lines of embedded source that it names, which are in no file.
#include <fmt/format.h>
#include <gyre/runtime/cuda/program.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

namespace gyre::cuda {

namespace {

constexpr size_t most_lines = 32;
constexpr std::string_view main_name = "gyre_kernel.cu";

using Position = std::pair<std::string_view, uint32_t>;  // file, line

// The number that `text` begins with, cut off it; 0 if there is none.
uint32_t take_number(std::string_view& text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return 0;
  text.remove_prefix(size_t(end - text.data()));
  return number;
}

// "file(12): error: …", and of an instantiation "… at line 12 of file".
std::vector<Position> positions_in(std::string_view log) {
  std::vector<Position> positions;
  const auto add = [&positions](std::string_view file, uint32_t line) {
    const Position position(file, line);
    if (line != 0 && std::find(positions.begin(), positions.end(), position) == positions.end()) {
      positions.push_back(position);
    }
  };
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    if (const size_t close = line.find("): "); close != std::string_view::npos) {
      if (const size_t open = line.rfind('(', close); open != std::string_view::npos) {
        std::string_view number = line.substr(open + 1);
        const uint32_t value = take_number(number);
        if (number.substr(0, 1) == ")") add(line.substr(0, open), value);
      }
    }
    constexpr std::string_view at_line = "at line ", of = " of ";
    for (size_t at = 0; (at = line.find(at_line, at)) != std::string_view::npos;) {
      std::string_view rest = line.substr(at += at_line.size());
      const uint32_t number = take_number(rest);
      if (rest.substr(0, of.size()) != of) continue;
      rest.remove_prefix(of.size());
      if (rest.substr(0, 1) == "\"") rest.remove_prefix(1);
      add(rest.substr(0, rest.find_first_of(" \"\r")), number);
    }
  }
  return positions;
}

// Line `number`, from 1, without what it is indented by; empty if there is none.
std::string_view line_of(std::string_view text, uint32_t number) {
  for (; number > 1; --number) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(" \t")));
  return text;
}

}  // namespace

std::string source_lines(std::string_view log, std::string_view main_text,
                         std::span<const SourceFile> headers) {
  std::string lines;
  size_t count = 0;
  for (const auto& [name, number] : positions_in(log)) {
    std::string_view text;
    if (name == main_name) text = main_text;
    for (const SourceFile& header : headers) {
      if (header.name == name) text = header.text;
    }
    const std::string_view line = line_of(text, number);
    if (line.empty()) continue;
    if (++count > most_lines) break;
    lines += fmt::format("{}:{}: {}\n", name, number, line);
  }
  return lines;
}

}  // namespace gyre::cuda
