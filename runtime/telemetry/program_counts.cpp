#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/telemetry/program_counts.hpp>

#include <algorithm>
#include <exception>
#include <set>
#include <string_view>
#include <utility>

namespace gyre {

namespace {

constexpr size_t most_counts = 256, longest_name = 64, longest_help = 200;

// What a metric of Prometheus may be named, on any side of other parts of its name.
bool is_name(std::string_view name) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.size() <= longest_name && name[0] >= 'a' && name[0] <= 'z' &&
         std::all_of(name.begin(), name.end(), fits) && !name.ends_with("_total");
}

// One line that a terminal shows as it is.
bool is_help(std::string_view help) {
  const auto fits = [](char c) { return c >= ' ' && c <= '~'; };
  return !help.empty() && help.size() <= longest_help && std::all_of(help.begin(), help.end(), fits);
}

std::string problem_with_name(std::string_view name) {
  return fmt::format(
      "\"{}\" is no name; use 1 to {} of a-z, 0-9 and _, beginning with a letter and not "
      "ending with _total",
      name, longest_name);
}

}  // namespace

namespace detail {

std::string problem_with(const CountSection& section) {
  if (!is_name(section.name)) return problem_with_name(section.name);
  if (section.counts.empty() || section.counts.size() > most_counts) {
    return fmt::format("section {} has {} counts; add 1 to {}", section.name, section.counts.size(),
                       most_counts);
  }
  std::set<std::string_view> names;
  for (const NamedCount& count : section.counts) {
    if (!is_name(count.name)) return problem_with_name(count.name);
    if (!is_help(count.help)) {
      return fmt::format(
          "the help text of {} in section {} has {} bytes; use one line of 1 to {} printable "
          "ASCII characters",
          count.name, section.name, count.help.size(), longest_help);
    }
    if (!names.insert(count.name).second) {
      return fmt::format("section {} has {} twice; rename one", section.name, count.name);
    }
  }
  return {};
}

uint64_t ProgramCounts::add(CountSection section, Read read) {
  const auto wrong = [](const std::string& problem) {
    return Error("adding counts to the stats: " + problem);
  };
  if (const std::string problem = problem_with(section); !problem.empty()) throw wrong(problem);
  if (!read) throw wrong(fmt::format("section {} has no function that reads it; give one", section.name));
  const std::lock_guard lock(mutex_);
  if (added_.size() == most_sections) {
    throw wrong(
        fmt::format("there are {} sections, the most; remove one, or put counts together", most_sections));
  }
  for (const Added& other : added_) {
    if (other.section.name == section.name)
      throw wrong(fmt::format("a section {} is there; remove it, or choose another name", section.name));
  }
  added_.push_back({next_, std::move(section), std::move(read)});
  return next_++;
}

void ProgramCounts::remove(uint64_t number) noexcept {
  if (fork_.forked()) return;
  Read read;  // destroyed after the lock is given back: it may own anything
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(added_.begin(), added_.end(),
                                  [number](const Added& added) { return added.number == number; });
  if (found == added_.end()) return;
  read = std::move(found->read);
  added_.erase(found);
}

std::vector<CountSection> ProgramCounts::read() {
  std::vector<CountSection> sections;
  std::vector<uint64_t> values;
  const std::lock_guard lock(mutex_);
  for (Added& added : added_) {
    values.assign(added.section.counts.size(), 0);
    try {
      added.read(values);
    } catch (const std::exception& error) {
      if (!std::exchange(added.warned, true)) {
        log(LogLevel::warning, [&] {
          return fmt::format("reading the counts of section {}: {}; the stats are without them",
                             added.section.name, error.what());
        });
      }
      continue;
    }
    sections.push_back(added.section);
    for (size_t n = 0; n < values.size(); ++n) sections.back().counts[n].value = values[n];
  }
  return sections;
}

}  // namespace detail

AddedCounts& AddedCounts::operator=(AddedCounts&& other) noexcept {
  if (this != &other) {
    remove();
    counts_ = std::move(other.counts_);
    number_ = other.number_;
  }
  return *this;
}

void AddedCounts::remove() noexcept {
  if (counts_) counts_->remove(number_);
  counts_.reset();
}

}  // namespace gyre
