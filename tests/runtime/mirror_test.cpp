// Messages of every kind of field through a worker and back, on either engine.
#include <capnp/dynamic.h>
#include <gyre/gyre.hpp>
#include <gyre_mirror_actors_sources.hpp>

#include <deque>
#include <memory>

#include "support/actors/mirror.hpp"
#include "support/catch.hpp"
#include "support/engine_under_test.hpp"
#include "tests/messages/kinds.official.hpp"
#include "tests/messages/random_message.hpp"

using namespace gyre;
using namespace gyre_test;
using gyre::test::Kinds;

namespace {

Runtime launch_mirror(Options options = {}) {
  options = gyre_test::on_this_engine(options);
  options.slot_bytes = 16384;
  return Runtime::launch(ActorSet::of<Mirror>(gyre_mirror_actors::sources), options);
}

uint64_t messages_to_reflect() {
  return uint64_t(random_messages(engine_under_test == EngineKind::cuda ? 100'000 : 10'000));
}

// Whether two values are the same bits: == of the official library says that no NaN equals another.
bool same(const capnp::DynamicValue::Reader& a, const capnp::DynamicValue::Reader& b);

bool same(capnp::DynamicStruct::Reader a, capnp::DynamicStruct::Reader b) {
  const auto held = [](capnp::DynamicStruct::Reader in) {
    KJ_IF_MAYBE (field, in.which()) {
      return int(field->getProto().getDiscriminantValue());
    }
    return -1;
  };
  // A member that no schema knows is none that a mirror could give back.
  if (held(a) != -1 && held(a) != held(b)) return false;
  for (const auto field : a.getSchema().getFields()) {
    const auto member = field.getProto().getDiscriminantValue();
    if (member != capnp::schema::Field::NO_DISCRIMINANT && member != held(a)) continue;
    const bool object = field.getProto().isSlot() && field.getType().isStruct();
    // A union's pointer that is null is mirrored as what it reads as.
    const bool in_union = member != capnp::schema::Field::NO_DISCRIMINANT;
    if (field.getProto().isSlot() && !in_union && a.has(field) != b.has(field)) return false;
    if (object && !a.has(field) && !b.has(field)) continue;  // it may have itself as a field
    if (!same(a.get(field), b.get(field))) return false;
  }
  return true;
}

bool same(const capnp::DynamicValue::Reader& a, const capnp::DynamicValue::Reader& b) {
  switch (a.getType()) {
    case capnp::DynamicValue::FLOAT: {
      const double x = a.as<double>(), y = b.as<double>();
      return std::memcmp(&x, &y, sizeof x) == 0;
    }
    case capnp::DynamicValue::ENUM:
      return a.as<capnp::DynamicEnum>().getRaw() == b.as<capnp::DynamicEnum>().getRaw();
    case capnp::DynamicValue::LIST: {
      const auto x = a.as<capnp::DynamicList>(), y = b.as<capnp::DynamicList>();
      if (x.size() != y.size()) return false;
      for (uint32_t i = 0; i < x.size(); ++i) {
        if (!same(x[i], y[i])) return false;
      }
      return true;
    }
    case capnp::DynamicValue::STRUCT:
      return same(a.as<capnp::DynamicStruct>(), b.as<capnp::DynamicStruct>());
    case capnp::DynamicValue::BOOL:
      return a.as<bool>() == b.as<bool>();
    case capnp::DynamicValue::INT:
      return a.as<int64_t>() == b.as<int64_t>();
    case capnp::DynamicValue::UINT:
      return a.as<uint64_t>() == b.as<uint64_t>();
    case capnp::DynamicValue::TEXT:
      return a.as<capnp::Text>() == b.as<capnp::Text>();
    case capnp::DynamicValue::DATA:
      return a.as<capnp::Data>() == b.as<capnp::Data>();
    default:
      return a.getType() == b.getType();
  }
}

/// Asks a Mirror for Kinds, many at a time, and looks at each reply.
class Reflection {
 public:
  explicit Reflection(Client client, size_t in_flight) : client_(std::move(client)), in_flight_(in_flight) {}
  ~Reflection() { CHECK(asked_.empty()); }

  template <class Fill>
  void ask(Fill fill) {
    auto message = std::make_unique<capnp::MallocMessageBuilder>(2048);
    fill(message->initRoot<Kinds>());
    const capnp::DynamicStruct::Reader wanted = message->getRoot<Kinds>().asReader();
    auto future = client_.ask<Kinds>(Address<Mirror>{asked_so_far_++}, [&](Kinds::Builder request) {
      for (const auto field : wanted.getSchema().getFields()) copy(wanted, field, request);
    });
    asked_.push_back({std::move(message), std::move(future)});
    if (asked_.size() >= in_flight_) check_first();
  }
  uint64_t asked() const { return asked_so_far_; }
  void finish() {
    while (!asked_.empty()) check_first();
  }

 private:
  struct Asked {
    std::unique_ptr<capnp::MallocMessageBuilder> message;
    Future<Reply<Kinds>> future;
  };

  static void copy(capnp::DynamicStruct::Reader from, capnp::StructSchema::Field field,
                   capnp::DynamicStruct::Builder to) {
    const auto member = field.getProto().getDiscriminantValue();
    if (member != capnp::schema::Field::NO_DISCRIMINANT) {
      KJ_IF_MAYBE (held, from.which()) {
        if (*held != field) return;
      } else {
        return;
      }
    }
    if (!field.getProto().isGroup()) {
      if (from.has(field)) to.set(field, from.get(field));
      return;
    }
    const auto group = from.get(field).as<capnp::DynamicStruct>();
    const auto copied = to.init(field).as<capnp::DynamicStruct>();
    for (const auto inner : group.getSchema().getFields()) copy(group, inner, copied);
  }

  void check_first() {
    Asked first = std::move(asked_.front());
    asked_.pop_front();
    const auto reply = first.future.get();
    if (!reply) FAIL("reply: " << int(reply.error().status) << ", detail " << reply.error().detail);
    const capnp::DynamicStruct::Reader sent = first.message->getRoot<Kinds>().asReader();
    const capnp::DynamicStruct::Reader received = *reply.value();
    if (!same(sent, received)) CHECK(kj::str(sent) == kj::str(received));
    REQUIRE(same(sent, received));
  }

  Client client_;
  size_t in_flight_;
  uint64_t asked_so_far_ = 0;
  std::deque<Asked> asked_;
};

void ask_absent_and_empty(Reflection& reflection) {
  reflection.ask([](Kinds::Builder) {});
  reflection.ask([](Kinds::Builder request) {
    request.setText("");
    request.setTextDefault("");
    request.initDataDefault(0);
    request.initPoint();
    request.initTree();
    request.initVoids(3);
    request.initBits(0);
    request.initTextsDefault(0);
    request.initPointsDefault(0);
    request.initRowsDefault(2);
    request.initPointCubes(2);
  });
}

void ask_each_union_member(Reflection& reflection) {
  Random random(21);
  for (uint32_t member = 0; member < 7; ++member) {
    reflection.ask([&](Kinds::Builder request) {
      auto shape = capnp::DynamicStruct::Builder(request.getShape());
      const auto field = shape.getSchema().getUnionFields()[member];
      if (field.getProto().isGroup()) {
        RandomMessage(random, 100).fill(shape.init(field).as<capnp::DynamicStruct>());
      } else if (field.getType().isList()) {
        shape.init(field, 3);
      } else if (field.getType().isStruct()) {
        shape.init(field);
      } else if (field.getType().isVoid()) {
        shape.set(field, capnp::VOID);
      } else if (field.getType().isText()) {
        shape.set(field, "another");
      } else if (field.getType().isBool()) {
        shape.set(field, false);
      } else if (field.getType().isFloat64()) {
        shape.set(field, 0.5);
      }
    });
  }
  const auto ask = [&](auto fill) { reflection.ask(fill); };
  ask([](Kinds::Builder request) { request.setUnset(); });
  ask([](Kinds::Builder request) { request.setNumber(-9); });
  ask([](Kinds::Builder request) { request.setWord("word"); });
  ask([](Kinds::Builder request) { request.initPair().setSecond(7); });
  ask([](Kinds::Builder request) { request.initTrees(4)[2].initLeft().initChildren(2)[1].setValue(5); });
  ask([](Kinds::Builder request) { request.initBytes(100)[99] = 1; });
}

}  // namespace

// One test: compiling this actor for a GPU takes as long as all the rest.
TEST_CASE("a mirror gives back every kind of field as it was sent, what is absent and empty too", "[gpu]") {
  Runtime runtime = launch_mirror({.workers = 4, .slots = 64, .timeout = std::chrono::seconds(60)});
  Reflection reflection(runtime.client(), 100);
  ask_absent_and_empty(reflection);
  ask_each_union_member(reflection);
  Random random(20);
  const uint64_t count = messages_to_reflect();
  for (uint64_t i = 0; i < count; ++i) {
    const auto words = int64_t(random() % (i % 10 == 0 ? 1100 : 300));
    reflection.ask([&](Kinds::Builder request) { RandomMessage(random, words).fill(request); });
  }
  reflection.finish();
  const Books books = runtime.terminate().books;
  CHECK(books.asks.answered == reflection.asked());
  CHECK(books.asks.answered > count);
  CHECK(books.balanced());
}

TEST_CASE("a damaged message of every kind of field is answered malformed, or with what it says", "[gpu]") {
  Runtime runtime = launch_mirror({.workers = 4, .slots = 64, .timeout = std::chrono::seconds(60)});
  Client client = runtime.client();
  struct Sent {
    std::vector<uint64_t> body;
    Future<Reply<capnp::AnyPointer>> future;
  };
  std::deque<Sent> sent;
  uint64_t good = 0, malformed = 0, too_large = 0, other = 0, wrong = 0;
  const auto settle = [&] {
    Sent first = std::move(sent.front());
    sent.pop_front();
    const auto reply = first.future.get();
    if (!reply) {
      const Status status = reply.error().status;
      ++(status == Status::malformed ? malformed : status == Status::reply_too_large ? too_large : other);
      return;
    }
    ++good;
    try {
      SegmentReader message(reinterpret_cast<const capnp::word*>(first.body.data()), first.body.size());
      const capnp::DynamicStruct::Reader wanted = message.getRoot<Kinds>();
      const capnp::DynamicStruct::Reader received = (*reply.value()).getAs<Kinds>();
      wrong += !same(wanted, received);
    } catch (const kj::Exception&) {  // no message, and yet it was answered
      ++wrong;
    }
  };
  Random random(22);
  const uint64_t count = messages_to_reflect();
  for (uint64_t i = 0; i < count; ++i) {
    capnp::MallocMessageBuilder message(2048);
    RandomMessage(random, int64_t(random() % 200)).fill(message.initRoot<Kinds>());
    const auto segment = message.getSegmentsForOutput()[0];
    const auto* const words = reinterpret_cast<const uint64_t*>(segment.begin());
    std::vector<uint64_t> body(words, words + segment.size());
    // Where most pointers are: those of the root, behind its data.
    const size_t begin = random() % 2 == 0 ? 1 + kinds::Kinds::data_words : 0;
    const size_t reach = begin == 0 ? body.size() : kinds::Kinds::pointers;
    for (uint64_t flips = 1 + random() % 4; flips > 0; --flips) {
      body[begin + random() % reach] ^= uint64_t(1) << random() % 64;
    }
    if (random() % 8 == 0) body.resize(1 + random() % body.size());
    const Encoded encoded{std::as_bytes(std::span(body)), Encoding::body};
    auto future = client.ask_by_number(0, 0, i, encoded);
    sent.push_back({std::move(body), std::move(future)});
    if (sent.size() >= 100) settle();
  }
  while (!sent.empty()) settle();
  WARN(count << " damaged messages: " << good << " answered rightly, " << malformed << " malformed, "
             << too_large << " with replies too large");
  CHECK(wrong == 0);
  CHECK(other == 0);
  CHECK(good > count / 20);
  CHECK(malformed > count / 20);
  CHECK(runtime.terminate().books.balanced());
}
