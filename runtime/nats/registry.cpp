#include <gyre/runtime/nats/registry.hpp>

#include <fmt/format.h>
#include <gyre/runtime/nats/subject.hpp>

#include <array>
#include <charconv>

namespace gyre::nats::detail {
namespace {

constexpr std::array node_states{"serving", "leaving", "gone"};
constexpr std::array shard_states{"taken", "serving", "moving"};

// Returns the value of `name=value` in a line of such pairs; empty if there is none.
std::string_view value_of(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const size_t end = text.find(' ');
    const std::string_view pair = text.substr(0, end);
    if (pair.size() > name.size() && pair.starts_with(name) && pair[name.size()] == '=') {
      return pair.substr(name.size() + 1);
    }
    if (end == text.npos) break;
    text.remove_prefix(end + 1);
  }
  return {};
}

template <class Number>
bool read_number(std::string_view text, Number& number, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

template <class State, size_t n>
bool read_state(std::string_view text, const std::array<const char*, n>& names, State& state) {
  for (size_t k = 0; k < n; ++k) {
    if (text == names[k]) {
      state = State(k);
      return true;
    }
  }
  return false;
}

}  // namespace

std::string NamespaceConfig::text() const {
  return fmt::format("shards={} lease_ms={} clock_error_ms={} actors={}", shards, lease_ms, clock_error_ms,
                     actors);
}

std::optional<NamespaceConfig> NamespaceConfig::read(std::string_view text) {
  NamespaceConfig config;
  if (!read_number(value_of(text, "shards"), config.shards) || config.shards == 0 ||
      config.shards > max_shards || !read_number(value_of(text, "lease_ms"), config.lease_ms) ||
      config.lease_ms == 0 || !read_number(value_of(text, "clock_error_ms"), config.clock_error_ms)) {
    return std::nullopt;
  }
  config.actors = value_of(text, "actors");
  return config;
}

std::string NodeEntry::text() const {
  return fmt::format("life={:016x} state={}", life, node_states[size_t(state)]);
}

std::optional<NodeEntry> NodeEntry::read(std::string_view text) {
  NodeEntry entry;
  if (!read_number(value_of(text, "life"), entry.life, 16) ||
      !read_state(value_of(text, "state"), node_states, entry.state)) {
    return std::nullopt;
  }
  return entry;
}

std::string ShardEntry::text() const {
  return fmt::format("node={} life={:016x} state={} group={:016x}{}{}", node, life,
                     shard_states[size_t(state)], group, to.empty() ? "" : " to=", to);
}

std::optional<ShardEntry> ShardEntry::read(std::string_view text) {
  ShardEntry entry;
  entry.node = value_of(text, "node");
  entry.to = value_of(text, "to");
  if (!is_name(entry.node) || (!entry.to.empty() && !is_name(entry.to)) ||
      !read_number(value_of(text, "life"), entry.life, 16) ||
      !read_state(value_of(text, "state"), shard_states, entry.state)) {
    return std::nullopt;
  }
  const std::string_view group = value_of(text, "group");
  if (!group.empty() && !read_number(group, entry.group, 16)) return std::nullopt;
  return entry;
}

}  // namespace gyre::nats::detail
