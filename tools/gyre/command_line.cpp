#include "command_line.hpp"

#include <fmt/format.h>
#include <gyre/gyre.h>
#include <CLI/CLI.hpp>

#include <cmath>
#include <utility>

#include "build_commit.hpp"
#include "common_options.hpp"

namespace gyre::tools {

namespace {

// CLI11's ranges let NaN pass, which is neither less nor more than their ends.
CLI::Option* finite(CLI::Option* option) {
  return option->check([](const std::string& text) {
    double number = 0;
    if (!CLI::detail::lexical_cast(text, number) || std::isfinite(number)) return std::string();
    return text + " is no finite number";
  });
}

}  // namespace

CommandOption CommandOption::type_name(const std::string& name) const {
  return CommandOption(option_->type_name(name));
}
CommandOption CommandOption::show_default() const { return CommandOption(option_->capture_default_str()); }
CommandOption CommandOption::describe(const std::string& text) const {
  return CommandOption(option_->description(text));
}
CommandOption CommandOption::group(const std::string& title) const {
  return CommandOption(option_->group(title));
}
CommandOption CommandOption::excludes(const CommandOption& other) const {
  return CommandOption(option_->excludes(other.option_));
}
CommandOption CommandOption::one_value_each() const {
  return CommandOption(option_->allow_extra_args(false));
}
CommandOption CommandOption::separated_by(char separator) const {
  return CommandOption(option_->delimiter(separator));
}
CommandOption CommandOption::value_if_none(const std::string& text) const {
  return CommandOption(option_->expected(0, 1)->default_str(text));
}
CommandOption CommandOption::whole_range(uint64_t least, uint64_t most) const {
  return CommandOption(option_->check(CLI::Range(least, most)));
}
CommandOption CommandOption::range(double least, double most) const {
  return CommandOption(finite(option_)->check(CLI::Range(least, most)));
}
CommandOption CommandOption::not_negative() const {
  return CommandOption(finite(option_)->check(CLI::NonNegativeNumber));
}
CommandOption CommandOption::positive() const {
  return CommandOption(finite(option_)->check(CLI::PositiveNumber));
}
CommandOption CommandOption::one_of(std::initializer_list<const char*> values) const {
  return CommandOption(option_->check(CLI::IsMember(std::vector<std::string>(values.begin(), values.end()))));
}
CommandOption CommandOption::check(std::function<std::string(const std::string&)> problem) const {
  return CommandOption(option_->check(std::move(problem)));
}
size_t CommandOption::count() const { return option_->count(); }

namespace {

template <class T>
CommandOption added(CLI::App* app, const std::string& name, T& value, const std::string& text) {
  return CommandOption(app->add_option(name, value, text));
}

}  // namespace

CommandOption ProgramCommand::add_option(const std::string& name, std::string& value,
                                         const std::string& text) const {
  return added(app_, name, value, text);
}
CommandOption ProgramCommand::add_option(const std::string& name, int& value, const std::string& text) const {
  return added(app_, name, value, text);
}
CommandOption ProgramCommand::add_option(const std::string& name, uint32_t& value,
                                         const std::string& text) const {
  return added(app_, name, value, text);
}
CommandOption ProgramCommand::add_option(const std::string& name, uint64_t& value,
                                         const std::string& text) const {
  return added(app_, name, value, text);
}
CommandOption ProgramCommand::add_option(const std::string& name, std::optional<uint32_t>& value,
                                         const std::string& text) const {
  return added(app_, name, value, text);
}
CommandOption ProgramCommand::add_option(const std::string& name, double& value,
                                         const std::string& text) const {
  return added(app_, name, value, text);
}
CommandOption ProgramCommand::add_option(const std::string& name, std::vector<std::string>& values,
                                         const std::string& text) const {
  return added(app_, name, values, text);
}
CommandOption ProgramCommand::add_option(const std::string& name, std::vector<int>& values,
                                         const std::string& text) const {
  return added(app_, name, values, text);
}
CommandOption ProgramCommand::add_option(const std::string& name, std::vector<uint32_t>& values,
                                         const std::string& text) const {
  return added(app_, name, values, text);
}
CommandOption ProgramCommand::add_option(const std::string& name, std::vector<uint64_t>& values,
                                         const std::string& text) const {
  return added(app_, name, values, text);
}
CommandOption ProgramCommand::add_option(const std::string& name, std::vector<double>& values,
                                         const std::string& text) const {
  return added(app_, name, values, text);
}
CommandOption ProgramCommand::add_option(const std::string& name, std::function<void(int64_t)> set,
                                         const std::string& text) const {
  return CommandOption(app_->add_option_function<int64_t>(name, std::move(set), text));
}

CommandOption ProgramCommand::add_option(const std::string& name, std::function<void(const std::string&)> set,
                                         const std::string& text) const {
  return CommandOption(app_->add_option_function<std::string>(name, std::move(set), text));
}

CommandOption ProgramCommand::add_named_number(const std::string& name, std::function<void(int)> set,
                                               const std::map<std::string, int>& names,
                                               const std::string& text) const {
  return CommandOption(app_->add_option_function<int>(name, std::move(set), text)
                           ->transform(CLI::CheckedTransformer(names).description(""))
                           ->type_name("NAME"));
}

CommandOption ProgramCommand::add_flag(const std::string& name, bool& value, const std::string& text) const {
  return CommandOption(app_->add_flag(name, value, text));
}
CommandOption ProgramCommand::add_flag(const std::string& name, std::function<void()> set,
                                       const std::string& text) const {
  return CommandOption(app_->add_flag_callback(name, std::move(set), text));
}

CommandOption ProgramCommand::option(const std::string& name) const {
  return CommandOption(app_->get_option(name));
}
void ProgramCommand::remove_option(const std::string& name) const {
  app_->remove_option(app_->get_option(name));
}

ProgramCommand ProgramCommand::add_subcommand(const std::string& name, const std::string& text) const {
  return ProgramCommand(app_->add_subcommand(name, text));
}
void ProgramCommand::hide() const { app_->group(""); }
void ProgramCommand::footer(const std::string& text) const { app_->footer(text); }
void ProgramCommand::when_chosen(std::function<void()> call) const { app_->callback(std::move(call)); }

Program::Program(const std::string& text, const std::string& name, Subcommands subcommands)
    : app_(new CLI::App(text, name)) {
  if (subcommands == Subcommands::one) app_->require_subcommand(1);
  app_->set_version_flag("--version",
                         fmt::format("{} {}\ncommit {}", name, GYRE_VERSION, build_commit().text()),
                         "Print the version and the commit and exit");
  app_->get_formatter()->column_width(36);  // help2man knows an option by two spaces behind it
}
Program::~Program() = default;

std::optional<int> Program::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    return app_->exit(error) == 0 ? all_passed : bad_usage;
  }
}

}  // namespace gyre::tools
