// Actors given as source text, and actors addressed by name, without a GPU: the host's side of them.
#include <gyre/gyre.hpp>
#include <gyre/runtime/builtin_actors.hpp>

#include <array>
#include <cstring>

#include "support/catch.hpp"
#include "support/source_actors.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

struct Empty {
  GYRE_DEVICE void on(Context&, view::ProbeNote::Reader) {}
};
struct Few {
  static constexpr uint32_t max_per_worker = 3;
  uint8_t state[17] = {};
  GYRE_DEVICE void on(Context&, view::ProbeNote::Reader) {}
};

struct Undone {
  using Handles = gyre::Handles<view::ProbeRequest, view::ProbeNote>;
  static constexpr bool rollback_on_error = true;
  static constexpr uint32_t scratch_bytes = 100;
  GYRE_DEVICE static constexpr uint32_t max_reply_bytes(view::ProbeRequest) { return 4096; }
  uint8_t state[17] = {};
  GYRE_DEVICE void on(Context&, view::ProbeRequest::Reader, view::ProbeResponse::Builder) {}
  GYRE_DEVICE void on(Context&, view::ProbeNote::Reader) {}
};
struct Beside {
  using Handles = gyre::Handles<view::ProbeRequest, view::ProbeNote>;
  static constexpr bool side_by_side = true, rollback_on_error = false;
  static constexpr uint32_t scratch_bytes = 20, shared_scratch_bytes = 100;
  static constexpr uint32_t max_reply_bytes = 64;
  GYRE_DEVICE void on(Context&, view::ProbeRequest::Reader, view::ProbeResponse::Builder) {}
  GYRE_DEVICE void on(Context&, view::ProbeNote::Reader) {}
};

std::string refusal_of(std::string text, std::vector<std::string> types,
                       std::vector<SourceText> headers = {}) {
  try {
    ActorSet::from_source(std::move(text), std::move(types), std::move(headers));
  } catch (const BadOptions& error) {
    return error.what();
  }
  return "taken";
}

// The stepped engine, of actors that the host was given as source text: it runs Probe, and calls it
// my::Probe.
class SteppedFromSource final : public Engine {
 public:
  explicit SteppedFromSource(const Options& options) : engine(probe_actors(), options) {}
  EngineKind kind() const override { return engine.kind(); }
  TransportKind transport() const override { return engine.transport(); }
  std::string device_name() const override { return engine.device_name(); }
  void* region() override { return engine.region(); }
  BufferMemory& buffer_memory() override { return engine.buffer_memory(); }
  double compile_ms() const override { return 0; }
  ActorSet complete(ActorSet actors) const override { return actors.described(description_of<Probe>()); }
  void launch() override { engine.launch(); }
  bool finished() override { return engine.finished(); }
  std::optional<std::string> failure() override { return engine.failure(); }
  void leak() override {}

  SteppedEngine engine;
};

}  // namespace

TEST_CASE("actors are described by their state and their handlers, in order") {
  const auto described = description_of<Probe, Empty, actors::VectorAdd, Few>();
  REQUIRE(described.size() == 4);
  CHECK(described[0].state_bytes == 16);  // one word of it is used
  CHECK(described[0].max_per_worker == ~0u);
  CHECK(types_of(described[0].types) == TypePairs{{view::ProbeRequest::type_id, view::ProbeResponse::type_id},
                                                  {view::ProbeNote::type_id, 0}});
  CHECK(described[1].state_bytes == 0);
  CHECK(types_of(described[1].types) == TypePairs{{view::ProbeNote::type_id, 0}});
  CHECK(described[2].state_bytes == detail::state_bytes<actors::VectorAdd>());
  CHECK(described[3].state_bytes == 32);
  CHECK(described[3].max_per_worker == 3);
}

TEST_CASE("actors are described by what they take for a message, and for its reply") {
  const auto described = description_of<Probe, Undone, Beside>();
  REQUIRE(described.size() == 3);
  CHECK(described[0].rollback_bytes == 0);
  CHECK(described[0].scratch_bytes == 0);
  CHECK(described[0].max_reply_bytes == std::vector<uint32_t>{0, 0});
  CHECK(described[1].rollback_bytes == 32);  // its state, as the table has it
  CHECK(described[1].scratch_bytes == 112);  // a multiple of 16
  CHECK(described[1].max_reply_bytes == std::vector<uint32_t>{4096, 0});
  CHECK(described[2].rollback_bytes == 0);
  CHECK(described[1].shared_scratch_bytes == 0);
  CHECK(described[2].scratch_bytes == 32);
  CHECK(described[2].shared_scratch_bytes == 112);
  CHECK(described[2].max_reply_bytes == std::vector<uint32_t>{64, 0});  // a tell has no reply
  const auto set = ActorSet::of<Probe, Undone, Beside>(gyre_test_actors::sources);
  CHECK(set.handlers()[2].max_reply_bytes == 4096);
  CHECK(set.max_reply_bytes(1, 0) == 4096);
  CHECK(set.max_reply_bytes(1, 2) == 0);
  CHECK(set.max_reply_bytes(3, 0) == 0);
}

TEST_CASE("the memory of actors' tables is what the workers take it for") {
  const auto set = ActorSet::of<Probe, Empty, actors::VectorAdd, Few>(gyre_test_actors::sources);
  const auto more = ActorSet::of<Probe, Undone, Beside>(gyre_test_actors::sources);
  for (const uint32_t actors_per_worker : {0u, 1u, 3u, 4u, 1000u, 65536u}) {
    CHECK(set.actor_bytes(actors_per_worker) ==
          ActorTables<Probe, Empty, actors::VectorAdd, Few>::bytes(actors_per_worker));
    // One message's working memory, or that of those handled side by side: what takes more.
    CHECK(more.actor_bytes(actors_per_worker) ==
          32 * 32 + ActorTables<Probe, Undone, Beside>::bytes(actors_per_worker));
  }
  CHECK(WorkingMemory::of<Probe, Empty>().bytes() == 0);
  CHECK(WorkingMemory::of<Probe, Undone>().bytes() == 256);
  CHECK(WorkingMemory::of<Probe, Undone, Beside>().bytes() == 1024);
  CHECK(SharedScratch::of<Probe, Undone>(true).bytes() == 0);
  CHECK(SharedScratch::of<Probe, Beside>(false).bytes() == 128);
  CHECK(SharedScratch::of<Probe, Beside>(true).bytes() == 32 * 112);
}

TEST_CASE("a set of compiled-in actors is described as its handlers are numbered") {
  const ActorSet set = builtin_actors();
  REQUIRE(set.description().size() == 2);
  CHECK(set.description()[0].state_bytes == 0);
  CHECK(set.description()[1].state_bytes == detail::state_bytes<actors::VectorAdd>());
  size_t n = 0;
  for (uint16_t actor = 0; actor < 2; ++actor) {
    for (const HandlerTypes& types : set.description()[actor].types) {
      CHECK(set.handlers()[n].actor_type == actor);
      CHECK(set.handlers()[n].request == types.request);
      CHECK(set.handlers()[n].response == types.response);
      CHECK(set.handlers()[n].request_schema.getProto().getId() == types.request);
      ++n;
    }
  }
  CHECK(n == set.handlers().size());
}

TEST_CASE("bytes that are no description are refused, wherever they end") {
  constexpr auto description = describe<Probe, Empty>();
  std::array<std::byte, sizeof description> bytes;
  std::memcpy(bytes.data(), &description, sizeof description);
  CHECK(read_description(bytes).size() == 2);
  for (size_t size = 0; size < bytes.size(); ++size) {
    CHECK_THROWS_AS(read_description(std::span(bytes).first(size)), Error);
  }
  bytes[0] ^= std::byte(1);
  CHECK_THROWS_AS(read_description(bytes), Error);
}

TEST_CASE("a set of source text owns its texts, and knows its handlers when it is described") {
  std::unique_ptr<ActorSet> first =
      std::make_unique<ActorSet>(ActorSet::from_source("text of mine", {"my::A", "B_2"}, test_headers()));
  const ActorSet set = *first;
  first.reset();
  CHECK_FALSE(set.compiled_in());
  CHECK(set.handlers().empty());
  CHECK(set.kernel() == "gyre::worker_kernel<my::A, B_2>");
  REQUIRE(set.sources().actor_headers.size() == 1);
  size_t mine = 0, views = 0, kernels = 0;
  for (const SourceFile& file : set.sources().files) {
    if (file.name == set.sources().actor_headers[0]) mine += file.text == "text of mine" ? 1 : 0;
    if (file.name == "support/actors/probe.view.hpp") ++views;
    if (file.name == "gyre/device/worker/kernel.hpp") ++kernels;
  }
  CHECK(mine == 1);
  CHECK(views == 1);
  CHECK(kernels == 1);

  const ActorSet described = set.described(description_of<Empty, Probe>());
  REQUIRE(described.handlers().size() == 3);
  const Handler* const note = described.find(fnv1a("B_2"), view::ProbeNote::type_id);
  REQUIRE(note != nullptr);
  CHECK(note->actor_type == 1);
  CHECK(note->message_type == 1);
  CHECK(described.has(fnv1a("my::A")));
  CHECK_FALSE(described.has(fnv1a("my::B_2")));
  CHECK_THROWS_AS(set.described(description_of<Empty>()), Error);
}

TEST_CASE("what cannot be a set of source text is refused by name") {
  CHECK(refusal_of("", {}).find("no actor types") != std::string::npos);
  for (const char* const name : {"", "my::", "::my", "a b", "9a", "my::T<int>", "a;", "a:b", "a::::b"}) {
    INFO(name);
    CHECK(refusal_of("", {"Fine", name}).find("actor type 1") != std::string::npos);
  }
  CHECK(refusal_of("", {"A", "B", "A"}).find("named twice") != std::string::npos);
  CHECK(refusal_of("", {"A"}, {{"a.hpp", "1"}, {"a.hpp", "1"}}) == "taken");
  CHECK(refusal_of("", {"A"}, {{"a.hpp", "1"}, {"a.hpp", "2"}}).find("a.hpp") != std::string::npos);
  CHECK(refusal_of("", {"A"}, {{"gyre/device/worker/kernel.hpp", "mine"}}).find("Gyre's own") !=
        std::string::npos);
}

TEST_CASE("the CPU engine refuses actors given as source text") {
  try {
    Runtime::launch(counter_from_source(), {.engine = EngineKind::cpu});
    FAIL("it launched");
  } catch (const EngineUnavailable& error) {
    CHECK(std::string(error.what()).find("actors given as source text run on CUDA only") !=
          std::string::npos);
  }
}

TEST_CASE("an actor known by name alone is asked and told, and its handlers are the engine's") {
  const Options options{.slots = 4, .timeout = 50ms};
  auto made = std::make_unique<SteppedFromSource>(options);
  SteppedEngine& engine = made->engine;
  auto core = detail::make_core(ActorSet::from_source("", {"my::Probe"}), options, std::move(made));
  Client client = client_of(core);
  const auto work = [&engine] {
    for (int nothing = 0; nothing < 16;) nothing = engine.step() == PollOutcome::nothing ? nothing + 1 : 0;
  };
  const NamedAddress probe_by_name{"my::Probe", 7};
  auto answer = client.ask<ProbeRequest, ProbeResponse>(probe_by_name, asking(Action::ANSWER, 20));
  work();
  const auto reply = answer.get();
  REQUIRE(reply);
  CHECK(reply.value()->getValue() == 41);
  CHECK(reply.value()->getKey() == 7);

  CHECK(client.tell<ProbeNote>(probe_by_name, noting(30)));
  CHECK(client.try_tell<ProbeNote>(probe_by_name, noting(12)));
  work();
  auto sum = client.try_ask<ProbeRequest, ProbeResponse>(probe_by_name, asking(Action::SUM_OF_NOTES, 0));
  REQUIRE(sum);
  work();
  CHECK(sum.value().get().value()->getValue() == 42);

  const auto numbers = client.numbers_of("my::Probe", view::ProbeNote::type_id);
  REQUIRE(numbers);
  CHECK(numbers.value().actor_type == 0);
  CHECK(numbers.value().message_type == 1);
  CHECK(client.stop(NamedAddress{"my::Nobody"}).error().status == Status::unknown_actor);
  CHECK(client.numbers_of("gyre_test::Probe", view::ProbeNote::type_id).error().status ==
        Status::unknown_actor);
  CHECK(client.numbers_of("my::Probe", view::ProbeResponse::type_id).error().status ==
        Status::unknown_message);
  core->terminate(5s);
  CHECK(core->books().balanced());
}

TEST_CASE("what an actor known by name does not take, or answers otherwise, is refused and not sent") {
  Stepped s;
  const NamedAddress named{"gyre_test::Probe"};  // of a compiled-in type
  auto answered = s.client->ask<ProbeRequest, ProbeResponse>(named, asking(Action::ANSWER, 4));
  s.work();
  CHECK(answered.get().value()->getValue() == 9);

  const auto status = [](auto outcome) {
    const auto reply = outcome.get();
    return reply ? Status::ok : reply.error().status;
  };
  const uint64_t accepted = s.core->books().asks.accepted;
  CHECK(status(s.client->ask<ProbeRequest, ProbeResponse>(
            NamedAddress{"gyre_test::Prob"}, asking(Action::ANSWER, 1))) == Status::unknown_actor);
  CHECK(status(s.client->ask<ProbeRequest, ProbeNote>(named, asking(Action::ANSWER, 1))) ==
        Status::unknown_message);
  CHECK(status(s.client->ask<ProbeNote, ProbeResponse>(named, noting(1))) == Status::unknown_message);
  CHECK(s.client->tell<ProbeResponse>(named, [](ProbeResponse::Builder) {}).error().status ==
        Status::unknown_message);
  CHECK(s.core->books().asks.accepted == accepted);
  CHECK(s.core->books().tells.accepted == 0);
}
