// Any bytes as what NATS brings a gateway: headers, subjects, entries of the bucket, reply subjects of
// JetStream. Reading them reads only what is there; what is read comes back from its own text; what is said
// of the rest is a line that a header may hold.
//
// An input is one byte for what it is, and the text; those of headers have a line for each header: first a
// letter,
// `-` where it is missing.
#include <gyre/runtime/nats/delivery.hpp>
#include <gyre/runtime/nats/headers.hpp>
#include <gyre/runtime/nats/registry.hpp>
#include <gyre/runtime/nats/subject.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "tests/fuzz/walks.hpp"

using namespace gyre_fuzz;
using namespace gyre::nats;
using namespace gyre::nats::detail;

namespace {

bool fits_a_header(std::string_view text) {
  for (const char c : text) {
    if (c < ' ' || c > '~') return false;
  }
  return true;
}

void check_headers(std::string_view text) {
  HeaderTexts texts;
  for (auto* const header : {&texts.type, &texts.key, &texts.timeout, &texts.id, &texts.trace}) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (!line.empty() && line.front() != '-') *header = line.substr(1);
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
  }
  RequestHeaders headers;
  const std::string problem = read_headers(texts, headers);
  if (!fits_a_header(headers.id) || headers.id.size() > max_id_bytes)
    found("the id is ", std::string(headers.id));
  if (!headers.trace.empty() && (headers.trace.size() != 55 || !fits_a_header(headers.trace)))
    found("the trace is ", std::string(headers.trace));
  if (problem.size() > 200 || !fits_a_header(problem))
    found("a problem of ", problem.size(), " bytes: ", problem);
  if (!problem.empty()) return;
  if (!texts.type || !texts.key) found("headers without type or key were taken");
  if (headers.timeout_us > max_timeout_us || (texts.timeout && headers.timeout_us == 0))
    found("the timeout is ", headers.timeout_us);
  const std::string type = type_text(headers.type), key = std::to_string(headers.key);
  HeaderTexts again{type, key, std::nullopt, std::nullopt, std::nullopt};
  RequestHeaders same;
  if (!read_headers(again, same).empty() || same.type != headers.type || same.key != headers.key)
    found("type and key do not come back from their text");
}

void check_subject(std::string_view text) {
  const Subjects subjects("fuzz");
  const std::string_view actor = subjects.actor_in(text);
  if (!actor.empty() && (text.find(actor) == text.npos || actor.find('.') != actor.npos))
    found("the actor is ", std::string(actor));
  const std::string name = name_in_subject(text);
  if (name_in_subject(name) != name) found("the name of ", name, " is another");
  if (!name.empty() && subjects.actor_in(subjects.request(name, 5)) != name)
    found("the name ", name, " is lost");
  if (!name.empty() && subjects.actor_in(subjects.durable(name, 5)) != name)
    found("the name ", name, " is lost");
  if (shard_of(text, text.size(), 64) >= 64) found("there is no such shard");
  if (is_name(text) && (text.size() > 32 || !fits_a_header(text))) found("a name is ", std::string(text));
}

template <class Entry>
void check_entry(std::string_view text) {
  const auto entry = Entry::read(text);
  if (!entry) return;
  const std::string once = entry->text();
  const auto again = Entry::read(once);
  if (!again || again->text() != once) found("the entry does not come back from its text: ", once);
}

void check_delivery(std::string_view text) {
  Delivery delivery;
  if (Delivery::read(text, delivery) && (delivery.number == 0 || delivery.stored_ns < 0))
    found("delivery ", delivery.number, ", stored at ", delivery.stored_ns);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::unique_ptr<char[]> bytes(new char[size - 1]);  // no byte more
  std::memcpy(bytes.get(), data + 1, size - 1);
  const std::string_view text(bytes.get(), size - 1);
  switch (data[0] % 6) {
    case 0:
      check_headers(text);
      break;
    case 1:
      check_subject(text);
      break;
    case 2:
      check_entry<NamespaceConfig>(text);
      break;
    case 3:
      check_entry<NodeEntry>(text);
      break;
    case 4:
      check_entry<ShardEntry>(text);
      break;
    default:
      check_delivery(text);
  }
  return 0;
}
