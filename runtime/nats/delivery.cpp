#include <gyre/runtime/nats/delivery.hpp>

#include <algorithm>
#include <array>
#include <charconv>

namespace gyre::nats::detail {

bool Delivery::read(std::string_view reply_subject, Delivery& delivery) {
  std::array<std::string_view, 12> tokens;  // later ones say nothing more
  size_t count = 0;
  while (count < tokens.size()) {
    const size_t dot = reply_subject.find('.');
    tokens[count++] = reply_subject.substr(0, dot);
    if (dot == reply_subject.npos) break;
    reply_subject.remove_prefix(dot + 1);
  }
  // $JS.ACK.STREAM.CONSUMER.DELIVERED.STREAM_SEQUENCE.CONSUMER_SEQUENCE.TIME.PENDING, nine tokens; or with a
  // domain and an account behind ACK: eleven, and a random one that servers may leave out.
  if ((count != 9 && count < 11) || tokens[0] != "$JS" || tokens[1] != "ACK") return false;
  const size_t first = count == 9 ? 4 : 6;
  const auto number = [](std::string_view text, auto& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
  };
  return number(tokens[first], delivery.number) && delivery.number != 0 &&
         number(tokens[first + 3], delivery.stored_ns) && delivery.stored_ns >= 0;
}

uint64_t undelivered_in(std::string_view consumer_info) {
  // Names and subjects in the reply hold no quotes, so that nothing else in it looks like the member.
  constexpr std::string_view member = "\"num_pending\":";
  const size_t at = consumer_info.find(member);
  if (at == consumer_info.npos) return 0;
  const std::string_view text = consumer_info.substr(at + member.size());
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  uint64_t number = 0;
  const auto error = std::from_chars(text.data() + begin, text.data() + text.size(), number).ec;
  return error == std::errc() ? number : 0;
}

bool is_error(std::string_view consumer_info) {
  return consumer_info.find("\"error\":") != consumer_info.npos;  // as above: nothing else looks like it
}

}  // namespace gyre::nats::detail
