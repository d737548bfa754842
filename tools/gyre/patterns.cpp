#include "patterns.hpp"

#include <map>
#include <regex>

namespace gyre::tools {

namespace {

const std::regex& compiled(const std::string& pattern) {
  static std::map<std::string, std::regex> all;
  return all.try_emplace(pattern, pattern).first->second;
}

Found found(const std::smatch& groups) {
  Found found;
  for (const auto& group : groups) found.push_back(group.str());
  return found;
}

}  // namespace

Found search(const std::string& text, const std::string& pattern) {
  std::smatch groups;
  return std::regex_search(text, groups, compiled(pattern)) ? found(groups) : Found();
}

Found match(const std::string& text, const std::string& pattern) {
  std::smatch groups;
  return std::regex_match(text, groups, compiled(pattern)) ? found(groups) : Found();
}

std::string replace_all(const std::string& text, const std::string& pattern, const std::string& replacement) {
  return std::regex_replace(text, compiled(pattern), replacement);
}

}  // namespace gyre::tools
