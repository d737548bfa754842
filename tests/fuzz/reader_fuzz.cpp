// Any bytes as a message body, read whole by the view and by the official library: the view stays in the body
// (the address sanitizer watches both its ends), ends, accepts exactly what the official library accepts, and
// reads the same from it. Two differences are meant, and no others:
//   - a pointer of the kind "far" is refused by the view, and followed by the official library
//   - the view's traversal budget counts less, and ends the walk elsewhere
//
// An input is a body; the bytes that its length has beyond whole words choose the root's type.
#include <cstdint>
#include <cstring>
#include <memory>

#include "tests/fuzz/pointer_mutator.hpp"
#include "tests/fuzz/walks.hpp"

using namespace gyre_fuzz;
using gyre::wire::Malformed;
using gyre::wire::Message;

namespace {

constexpr uint64_t traversal_words = 4096;

/// What reads more than this did not end where it had to: an element of a byte may read as a struct of some
/// dozen letters, and the root's own fields are not counted against the budget.
template <class View>
uint64_t longest_text(size_t words) {
  return 1024 * (traversal_words + (View::pointers + 2) * (words + 1)) + 65536;
}

/// The difference that is meant: the view fails at a far pointer. What the official library says of it does
/// not matter then.
bool is_far_pointer(const Message& message, const uint64_t* body) {
  const bool of_kind =
      message.reason() == Malformed::not_a_struct || message.reason() == Malformed::not_a_list;
  return of_kind && message.failed_word() != Message::no_word && (body[message.failed_word()] & 3) == 2;
}

template <class Official>
void compare(const uint64_t* body, size_t words) {
  using View = typename gyre::ViewOf<Official>::type;
  Message message(body, uint32_t(words * 8), traversal_words);
  gyre_test::ViewText walk(message);
  walk.say(typename View::Reader(message.root(View::type_id)));
  const std::string text = walk.take();
  if (text.size() > longest_text<View>(words)) found(words, " words read as ", text.size(), " letters");
  if (message.failed() != (walk.failed_at() != std::string::npos)) found("a failure that came too late");
  if (message.failed()) {
    if (message.failed_word() >= (words == 0 ? 1 : words)) found("failed at word ", message.failed_word());
    if (message.reason() == Malformed::traversal || (words != 0 && is_far_pointer(message, body))) return;
  }

  // More than the view may follow: its budget, and each of the root's own fields.
  const uint64_t enough = 2 * traversal_words + (View::pointers + 2) * (words + 1);
  const Opinion opinion = official_opinion<Official>(body, words, enough);
  if (!message.failed()) {
    if (opinion.refused) found("only the official library refuses: ", opinion.why);
    if (text != opinion.text) found("read differently: ", gyre_test::difference(text, opinion.text));
    return;
  }
  const auto reason = kj::str("reason ", int(message.reason()), ", word ", message.failed_word(), ", field ",
                              message.failed_field().index, " of ", kj::hex(message.failed_field().type_id));
  if (!opinion.refused) found("only the view refuses: ", reason);
  // Both refuse the same pointer: they have said the same so far. Where a list of structs is too deep, the
  // official library says so of its first element; where a pointer is of no kind at all, before the "1 " that
  // says that it is not null.
  const size_t at = walk.failed_at(), official_at = opinion.text.size();
  const size_t later = message.reason() == Malformed::too_deep ? 16 : 0;
  const size_t earlier = words != 0 && (body[message.failed_word()] & 3) == 3 ? 2 : 0;
  const size_t common = official_at < at ? official_at : at;
  if (official_at + earlier < at || official_at > at + later ||
      text.compare(0, common, opinion.text, 0, common) != 0) {
    found("refused at different places: by the view after ", at, " letters, ", reason,
          "; by the official library after ", official_at, ", ", opinion.why, "; ",
          gyre_test::difference(text.substr(0, at), opinion.text));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WithoutTraces without_traces;
  const size_t words = size / 8;
  const std::unique_ptr<uint64_t[]> body(new uint64_t[words]);  // no byte more
  if (words != 0) std::memcpy(body.get(), data, words * 8);
  switch (size % 8) {
    case 1:
      compare<gyre::test::Evolved>(body.get(), words);
      break;
    case 2:
      compare<gyre::test::old::Evolved>(body.get(), words);
      break;
    case 3:
      compare<gyre::test::old::Kinds>(body.get(), words);
      break;
    case 4:
      compare<gyre::test::Tree>(body.get(), words);
      break;
    case 5:
      compare<gyre::test::Ping>(body.get(), words);
      break;
    default:
      compare<gyre::test::Kinds>(body.get(), words);
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return PointerMutator(data, size, max_size, seed).mutate();
}
