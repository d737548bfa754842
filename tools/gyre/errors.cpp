// gyre errors: what an error means and what to check next.
#include <fmt/format.h>
#include <gyre/bridge/errors/catalogue.hpp>

#include <memory>

#include "common_options.hpp"
#include "subcommands.hpp"

namespace gyre::tools {

namespace {

void print(const ErrorEntry& entry) {
  fmt::print("{} ({}), {}\n  means: {}\n", entry.name, entry.code, name(entry.source), entry.meaning);
  if (!entry.check.empty()) fmt::print("  check: {}\n", entry.check);
}

int errors(const std::string& wanted, bool markdown) {
  size_t found = 0;
  for (const ErrorEntry& entry : error_catalogue()) {
    const bool matches =
        wanted.empty() || (is_number(wanted) ? std::to_string(entry.code) == wanted
                                             : entry.name.find(wanted) != std::string_view::npos);
    if (!matches) continue;
    ++found;
    if (markdown) {
      fmt::print("{}\n", markdown_row(entry));
    } else if (wanted.empty()) {
      fmt::print("{} ({})\n", entry.name, entry.code);
    } else {
      print(entry);
    }
  }
  if (found == 0) {
    throw BadOptions(
        fmt::format("looking up error {}: there is none of that number or name; gyre errors without "
                    "one lists all",
                    wanted));
  }
  return all_passed;
}

}  // namespace

void add_errors(ProgramCommand app, std::function<int()>& chosen) {
  auto wanted = std::make_shared<std::string>();
  auto markdown = std::make_shared<bool>(false);
  const ProgramCommand command = app.add_subcommand(
      "errors", "Say what an error of Gyre, the CUDA driver or NVRTC means, and what to check next.");
  command.add_option("code", *wanted, "its number, or a part of its name; without one, all are listed");
  command.add_flag("--markdown", *markdown, "as rows of docs/reference/errors.md");
  command.footer("Exit: 0 found, 2 there is no such error.");
  command.when_chosen([wanted, markdown, &chosen] { chosen = [=] { return errors(*wanted, *markdown); }; });
}

}  // namespace gyre::tools
