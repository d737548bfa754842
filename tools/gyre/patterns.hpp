// Regular expressions, in ECMAScript's notation. One source compiles the library's: each that does takes
// seconds.
#pragma once

#include <string>
#include <vector>

namespace gyre::tools {

/// What a pattern found: the whole match, then its groups. Empty: nothing.
using Found = std::vector<std::string>;

/// Looks for `pattern` anywhere in `text`. Patterns are compiled once. One thread at a time.
Found search(const std::string& text, const std::string& pattern);
/// Matches all of `text`.
Found match(const std::string& text, const std::string& pattern);
std::string replace_all(const std::string& text, const std::string& pattern, const std::string& replacement);

}  // namespace gyre::tools
