// Options and subcommands of the programs. CLI11 is behind it, seen by one source alone: whatever includes
// its header compiles for seconds.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace gyre::tools {

/// One option of a command: a handle, which must not outlive the Program. Functions return the option itself.
class CommandOption {
 public:
  explicit CommandOption(CLI::Option* option) : option_(option) {}

  CommandOption type_name(const std::string& name) const;  ///< what help calls a value
  CommandOption show_default() const;                      ///< help says the value that the variable has now
  CommandOption describe(const std::string& text) const;   ///< in place of the text so far
  CommandOption group(const std::string& title) const;     ///< the heading in help that it stands below
  CommandOption excludes(const CommandOption& other) const;  ///< not both
  CommandOption one_value_each() const;                      ///< of lists: repeat the option for more
  CommandOption separated_by(char separator) const;          ///< of lists: one argument may hold several
  CommandOption value_if_none(
      const std::string& text) const;  ///< the option may stand alone, and means this then
  /// Values outside are wrong usage, and so are those that `problem` returns a text for.
  CommandOption range(std::unsigned_integral auto least, std::unsigned_integral auto most) const {
    return whole_range(least, most);
  }
  CommandOption range(double least, double most) const;
  CommandOption not_negative() const;
  CommandOption positive() const;
  CommandOption one_of(std::initializer_list<const char*> values) const;
  CommandOption check(std::function<std::string(const std::string& value)> problem) const;

  size_t count() const;  ///< how often it was given; after parsing

 private:
  friend class ProgramCommand;
  CommandOption whole_range(uint64_t least, uint64_t most) const;
  CLI::Option* option_;
};

/// A command or subcommand: a handle, which must not outlive the Program. The variables of options must
/// outlive the parse.
class ProgramCommand {
 public:
  explicit ProgramCommand(CLI::App* app) : app_(app) {}

  /// Adds an option ("--name") or an argument ("name"), which sets `value`; a vector takes several values.
  CommandOption add_option(const std::string& name, std::string& value, const std::string& text = {}) const;
  CommandOption add_option(const std::string& name, int& value, const std::string& text) const;
  CommandOption add_option(const std::string& name, uint32_t& value, const std::string& text) const;
  CommandOption add_option(const std::string& name, uint64_t& value, const std::string& text) const;
  CommandOption add_option(const std::string& name, std::optional<uint32_t>& value,
                           const std::string& text) const;
  CommandOption add_option(const std::string& name, double& value, const std::string& text) const;
  CommandOption add_option(const std::string& name, std::vector<std::string>& values,
                           const std::string& text) const;
  CommandOption add_option(const std::string& name, std::vector<int>& values, const std::string& text) const;
  CommandOption add_option(const std::string& name, std::vector<uint32_t>& values,
                           const std::string& text) const;
  CommandOption add_option(const std::string& name, std::vector<uint64_t>& values,
                           const std::string& text) const;
  CommandOption add_option(const std::string& name, std::vector<double>& values,
                           const std::string& text) const;
  CommandOption add_option(const std::string& name, std::function<void(int64_t)> set,
                           const std::string& text) const;
  CommandOption add_option(const std::string& name, std::function<void(const std::string&)> set,
                           const std::string& text) const;
  /// One of `names`, which help calls NAME.
  template <class Enum>
  CommandOption add_choice(const std::string& name, Enum& value, const std::map<std::string, Enum>& names,
                           const std::string& text) const {
    std::map<std::string, int> numbers;
    for (const auto& [word, number] : names) numbers[word] = int(number);
    return add_named_number(
        name, [&value](int number) { value = Enum(number); }, numbers, text);
  }
  CommandOption add_flag(const std::string& name, bool& value, const std::string& text) const;
  CommandOption add_flag(const std::string& name, std::function<void()> set, const std::string& text) const;

  CommandOption option(const std::string& name) const;  ///< one that was added. Throws where there is none.
  void remove_option(const std::string& name) const;
  size_t count(const std::string& name) const { return option(name).count(); }

  ProgramCommand add_subcommand(const std::string& name, const std::string& text) const;
  void hide() const;                                   ///< from its parent's help
  void footer(const std::string& text) const;          ///< the end of its help
  void when_chosen(std::function<void()> call) const;  ///< called while parsing, where it is the subcommand

 private:
  CommandOption add_named_number(const std::string& name, std::function<void(int)> set,
                                 const std::map<std::string, int>& names, const std::string& text) const;
  CLI::App* app_;
};

/// A program's command line. Move-only.
class Program {
 public:
  enum class Subcommands { one, none };
  /// @param subcommands  whether a subcommand must be given
  Program(const std::string& text, const std::string& name, Subcommands subcommands = Subcommands::one);
  ~Program();

  ProgramCommand command() const { return ProgramCommand(app_.get()); }
  /// Sets the variables. Where the program is to end with that, since help was asked for or the usage is
  /// wrong, says so on standard output or standard error and returns the exit code.
  std::optional<int> parse(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace gyre::tools
