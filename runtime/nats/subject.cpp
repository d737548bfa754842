#include <gyre/runtime/nats/subject.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace gyre::nats {
namespace {

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

std::string name_in_subject(std::string_view type_name) {
  std::string name;
  for (size_t i = 0; i < type_name.size(); ++i) {
    if (is_letter_or_digit(type_name[i])) {
      name += type_name[i];
    } else {
      name += '_';
      if (type_name.substr(i, 2) == "::") ++i;
    }
  }
  return name;
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= 32 && std::all_of(name.begin(), name.end(), [](char c) {
    return is_letter_or_digit(c) || c == '_' || c == '-';
  });
}

std::string Subjects::queue_group(uint64_t group) { return fmt::format("{:016x}", group); }

std::string_view Subjects::actor_in(std::string_view subject) const {
  if (!subject.starts_with(prefix_)) return {};
  subject.remove_prefix(prefix_.size());
  const size_t dots = size_t(std::count(subject.begin(), subject.end(), '.'));
  if (dots == 2 && subject.substr(0, subject.find('.')) == durable_token) {
    subject.remove_prefix(durable_token.size() + 1);
  } else if (dots != 1) {
    return {};
  }
  return subject.substr(0, subject.find('.'));
}

}  // namespace gyre::nats
