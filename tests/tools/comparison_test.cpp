// What gyre validate --against compares: floating point numbers, replies, messages that it makes.
#include <capnp/message.h>
#include <capnp/serialize.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/messages/vector_add.official.hpp>
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/gyre.hpp>

#include <cmath>
#include <cstring>
#include <limits>

#include "against.hpp"
#include "programs.hpp"
#include "support/catch.hpp"
#include "support/message_schemas.hpp"
#include "temporary_folder.hpp"

using namespace gyre;
using namespace gyre::tools;
using gyre_test::containing;
using gyre_test::vector_add_request;
using messages::Operation;
using messages::VectorAddRequest;
using messages::VectorAddResponse;

namespace {

struct Response {
  explicit Response(std::initializer_list<float> values) : root(message.initRoot<VectorAddResponse>()) {
    auto list = root.initResult(uint32_t(values.size()));
    uint32_t i = 0;
    for (const float value : values) list.set(i++, value);
  }
  capnp::DynamicStruct::Reader dynamic() { return root.asReader(); }
  capnp::MallocMessageBuilder message;
  VectorAddResponse::Builder root;
};

template <class Message>
typename Message::Reader read(const TestMessage& message,
                              std::unique_ptr<capnp::FlatArrayMessageReader>& keep,
                              kj::Array<capnp::word>& words) {
  words = kj::heapArray<capnp::word>(message.stream.size() / sizeof(capnp::word));
  std::memcpy(words.begin(), message.stream.data(), message.stream.size());
  keep = std::make_unique<capnp::FlatArrayMessageReader>(words);
  return keep->getRoot<Message>();
}

MessageSource vectors(uint64_t count, uint64_t seed = 1) {
  MessageSource source;
  source.request = "VectorAddRequest";
  source.count = count;
  source.seed = seed;
  return source;
}

}  // namespace

TEST_CASE("the distance of two floating point numbers is the numbers between them, and one") {
  const float infinity = std::numeric_limits<float>::infinity(),
              tiny = std::numeric_limits<float>::denorm_min();
  CHECK(ulp_distance(1.0f, 1.0f) == 0);
  CHECK(ulp_distance(1.0f, std::nextafter(1.0f, 2.0f)) == 1);
  CHECK(ulp_distance(-1.0f, std::nextafter(-1.0f, -2.0f)) == 1);
  CHECK(ulp_distance(1.0f, 2.0f) == 1u << 23);
  CHECK(ulp_distance(-0.0f, 0.0f) == 0);
  CHECK(ulp_distance(-tiny, tiny) == 2);
  CHECK(ulp_distance(std::numeric_limits<float>::max(), infinity) == 1);
  CHECK(ulp_distance(-infinity, infinity) == 2 * uint64_t(0x7f800000));
  CHECK(ulp_distance(1.0, 2.0) == uint64_t(1) << 52);
  CHECK(ulp_distance(-0.0, 0.0) == 0);
  CHECK(ulp_distance(-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()) ==
        2 * 0x7ff0000000000000u);
}

TEST_CASE("equal replies are the same, any NaN equals any NaN, and -0 is 0") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Response a{1, -0.0f, nan, std::numeric_limits<float>::infinity()};
  Response b{1, 0.0f, -nan, std::numeric_limits<float>::infinity()};
  Comparison comparison(Tolerance{});
  CHECK(comparison.add(0, a.dynamic(), b.dynamic()));
  CHECK(comparison.floats() == 4);
  CHECK(comparison.inexact() == 0);
  CHECK(comparison.differences() == 0);
  CHECK_FALSE(comparison.first());
  CHECK_FALSE(comparison.absolute());
}

TEST_CASE("the first difference and the largest ones are told with their places") {
  Response a{1, 100.5f, 3}, b{1, 100, 4};
  Comparison comparison(Tolerance{});
  Response same{7};
  CHECK(comparison.add(0, same.dynamic(), same.dynamic()));
  CHECK_FALSE(comparison.add(5, a.dynamic(), b.dynamic()));
  CHECK(comparison.differences() == 2);
  REQUIRE(comparison.first());
  CHECK(comparison.first()->message == 5);
  CHECK(comparison.first()->path == "result[1]");
  CHECK(comparison.first()->tested == "100.5");
  CHECK(comparison.first()->reference == "100");
  REQUIRE(comparison.absolute());
  CHECK(comparison.absolute()->value == 1);
  CHECK(comparison.absolute()->where.path == "result[2]");
  REQUIRE(comparison.relative());
  CHECK(comparison.relative()->value == 0.25);
  REQUIRE(comparison.ulps());
  CHECK(comparison.ulps()->value == double(ulp_distance(3.0f, 4.0f)));
}

TEST_CASE("what is compared with an infinity does not hide the largest relative difference") {
  Response a{1, 3}, b{std::numeric_limits<float>::infinity(), 4};
  Comparison comparison(Tolerance{});
  CHECK_FALSE(comparison.add(0, a.dynamic(), b.dynamic()));
  REQUIRE(comparison.relative());
  CHECK(comparison.relative()->value == 0.25);
}

TEST_CASE("numbers within either tolerance pass, and are still told") {
  Response a{100.5f, 0.25f}, b{100, 0};
  const auto passes = [&](double absolute, double relative) {
    Comparison comparison(Tolerance{absolute, relative});
    const bool same = comparison.add(0, a.dynamic(), b.dynamic());
    CHECK(comparison.inexact() == 2);
    CHECK(comparison.absolute()->value == 0.5);
    CHECK(std::isinf(comparison.relative()->value));
    return same;
  };
  CHECK_FALSE(passes(0, 0));
  CHECK_FALSE(passes(0, 0.01));  // of 0 nothing is near
  CHECK_FALSE(passes(0.25, 0));
  CHECK(passes(0.25, 0.01));
  CHECK(passes(0.5, 0));
}

TEST_CASE("no tolerance lets a NaN or an infinity pass for a number") {
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Response a{odd}, b{1};
    Comparison comparison(Tolerance{1e30, 1e30});
    CHECK_FALSE(comparison.add(0, a.dynamic(), b.dynamic()));
    CHECK_FALSE(comparison.add(1, b.dynamic(), a.dynamic()));
  }
}

TEST_CASE("a tolerance that is no number lets no difference pass") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  Response a{1.5f}, b{1};
  for (const Tolerance& tolerance : {Tolerance{nan, 0}, Tolerance{0, nan}, Tolerance{nan, nan}}) {
    CHECK_FALSE(Comparison(tolerance).add(0, a.dynamic(), b.dynamic()));
    CHECK(Comparison(tolerance).add(0, a.dynamic(), a.dynamic()));
  }
}

TEST_CASE(
    "integers, enumerants, flags and lengths must be equal, whatever the tolerance; ignored fields not") {
  Response a{1, 2}, b{1};
  a.root.setSuccess(true);
  a.root.setError(VectorAddResponse::Error::LENGTHS_DIFFER);
  a.root.setProcessed(2);
  a.root.setProcessingNs(12345);
  Comparison comparison(Tolerance{1e9, 1e9});
  CHECK_FALSE(comparison.add(0, a.dynamic(), b.dynamic()));
  CHECK(comparison.differences() == 5);
  CHECK(comparison.first()->path == "success");
  CHECK(comparison.first()->tested == "true");
  Comparison ignoring(Tolerance{}, {"success", "error", "processed", "processingNs"});
  CHECK_FALSE(ignoring.add(0, a.dynamic(), b.dynamic()));
  CHECK(ignoring.differences() == 1);
  CHECK(ignoring.first()->path == "result.size");
  CHECK(ignoring.first()->tested == "2");
  CHECK(ignoring.first()->reference == "1");
}

TEST_CASE("random messages are the same for the same seed, ordinary, and of one length each") {
  const MessageSchemas schemas(vector_add_request());
  const ActorSet actors = builtin_actors();
  const auto first = make_messages(actors, schemas, vectors(50)),
             again = make_messages(actors, schemas, vectors(50)),
             other = make_messages(actors, schemas, vectors(50, 2));
  REQUIRE(first.size() == 50);
  size_t different = 0, elements = 0;
  for (size_t n = 0; n < first.size(); ++n) {
    CHECK(first[n].stream == again[n].stream);
    CHECK(first[n].handler->request == capnp::typeId<VectorAddRequest>());
    different += first[n].stream != other[n].stream;
    std::unique_ptr<capnp::FlatArrayMessageReader> keep;
    kj::Array<capnp::word> words;
    const auto request = read<VectorAddRequest>(first[n], keep, words);
    CHECK(request.getA().size() == request.getB().size());
    CHECK(request.getA().size() <= 30);
    CHECK(uint16_t(request.getOperation()) <= uint16_t(Operation::DIVIDE));
    for (const float value : request.getA()) {
      CHECK((value >= -1 && value < 1));
      ++elements;
    }
  }
  CHECK(different == 50);
  CHECK(elements > 50);
}

TEST_CASE("messages of a file are sent as they stand, framed or as JSON, to the keys in turn") {
  const MessageSchemas schemas(vector_add_request());
  const ActorSet actors = builtin_actors();
  const TemporaryFolder folder;
  MessageSource source = vectors(0);
  source.keys = 2;
  std::string framed;
  for (const float value : {1.5f, 2.5f, 3.5f}) {
    capnp::MallocMessageBuilder message;
    message.initRoot<VectorAddRequest>().setA({value});
    const auto words = capnp::messageToFlatArray(message);
    framed.append(words.asChars().begin(), words.asChars().size());
  }
  source.file = folder.path() + "/framed";
  write_file(source.file, framed, "writing the test's messages");
  const auto check = [&](const std::vector<TestMessage>& messages) {
    REQUIRE(messages.size() == 3);
    for (size_t n = 0; n < 3; ++n) {
      std::unique_ptr<capnp::FlatArrayMessageReader> keep;
      kj::Array<capnp::word> words;
      const auto request = read<VectorAddRequest>(messages[n], keep, words);
      REQUIRE(request.getA().size() == 1);
      CHECK(request.getA()[0] == float(n) + 1.5f);
      CHECK(messages[n].key == n % 2);
    }
  };
  check(make_messages(actors, schemas, source));
  source.file = folder.path() + "/lines";
  write_file(source.file, "{\"a\": [1.5]}\n\n{\"a\": [2.5]}\n{\"a\": [3.5]}\n",
             "writing the test's messages");
  check(make_messages(actors, schemas, source));

  write_file(source.file, "{\"a\": [1.5]}\n{\"nothing\": 1}\n", "writing the test's messages");
  CHECK_THROWS_WITH(make_messages(actors, schemas, source), containing("line 2"));
  write_file(source.file, framed.substr(0, framed.size() - 8), "writing the test's messages");
  CHECK_THROWS_WITH(make_messages(actors, schemas, source), containing("message 2"));
  source.request = "Nothing";
  CHECK_THROWS_WITH(make_messages(actors, schemas, source), containing("VectorAddRequest"));
}

TEST_CASE("two engines that run the same actors answer alike, and one that differs is found") {
  const MessageSchemas schemas(vector_add_request());
  Options options;
  options.engine = EngineKind::cpu;
  Runtime tested = Runtime::launch(builtin_actors(), options);
  Runtime reference = Runtime::launch(builtin_actors(), options);
  AgainstSettings settings;
  settings.ignored = {"processingNs"};
  // Handles of buffers are random, too: those must fail alike.
  const ActorSet actors = builtin_actors();
  auto messages = make_messages(actors, schemas, vectors(90));
  const TemporaryFolder folder;
  MessageSource source = vectors(0);
  source.file = folder.path() + "/lines";
  std::string lines;
  for (int n = 0; n < 10; ++n) lines += "{\"operation\": \"multiply\", \"a\": [1.5, 2], \"b\": [3, 0.1]}\n";
  write_file(source.file, lines, "writing the test's messages");
  for (TestMessage& message : make_messages(actors, schemas, source)) {
    messages.push_back(std::move(message));
  }
  const EngineComparison alike = compare_engines(tested, reference, actors, messages, schemas, settings);
  CHECK(alike.messages == 100);
  CHECK(alike.same == 100);
  CHECK(alike.error_replies == 90);
  CHECK(alike.comparison.floats() == 20);
  CHECK(alike.comparison.differences() == 0);
  REQUIRE(reference.deactivate());
  const EngineComparison differing = compare_engines(tested, reference, actors, messages, schemas, settings);
  CHECK(differing.messages == 100);
  CHECK(differing.same == 0);
  REQUIRE(differing.comparison.first());
  CHECK(differing.comparison.first()->path == "the outcome");
  CHECK(differing.comparison.first()->reference == "inactive");
}
