// The catalogue of errors, and docs/reference/errors.md against it.
#include <gyre/bridge/errors/catalogue.hpp>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "support/catch.hpp"

using namespace gyre;

namespace {
// The rows of the page's tables: what follows "| `" up to the line's end.
std::vector<std::string> rows_of_page() {
  std::ifstream file(GYRE_TEST_ERRORS_PAGE);
  std::vector<std::string> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| `")) rows.push_back(line);
  }
  return rows;
}
}  // namespace

TEST_CASE(
    "every error has a number of its own in its source, a name of its own, and a text; failures a remedy") {
  std::set<std::pair<ErrorSource, uint32_t>> codes;
  std::set<std::string_view> names;
  std::set<std::string_view> without_remedy;
  for (const ErrorEntry& entry : error_catalogue()) {
    INFO(entry.name);
    CHECK(codes.insert({entry.source, entry.code}).second);
    CHECK(names.insert(entry.name).second);
    CHECK(entry.meaning.size() > 10);
    CHECK(find_error(entry.source, entry.code) == &entry);
    if (entry.check.empty()) without_remedy.insert(entry.name);
    // They stand in one line, in a table of the page.
    for (const std::string_view text : {entry.meaning, entry.check}) {
      CHECK(text.find_first_of("|\n") == std::string_view::npos);
      CHECK((text.empty() || text.back() != '.'));
    }
  }
  CHECK(without_remedy ==
        std::set<std::string_view>{"ok", "CUDA_SUCCESS", "NVRTC_SUCCESS", "CUDA_ERROR_NOT_READY"});
  CHECK(find_error(ErrorSource::cuda, 123456) == nullptr);
  CHECK(error_advice(ErrorSource::cuda, 123456).empty());
  CHECK(error_advice(ErrorSource::cuda, 702) ==
        "the display's watchdog ended the kernel, which is meant to stay; use a GPU without a display");
}

TEST_CASE("docs/reference/errors.md has every error of the catalogue as it stands there, in its order, and no other") {
  std::vector<std::string> expected;
  for (const ErrorEntry& entry : error_catalogue()) expected.push_back(markdown_row(entry));
  const std::vector<std::string> rows = rows_of_page();
  CHECK(rows.size() == expected.size());
  for (size_t n = 0; n < std::min(rows.size(), expected.size()); ++n) CHECK(rows[n] == expected[n]);
}
