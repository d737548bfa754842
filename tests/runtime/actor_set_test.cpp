#include <gyre/runtime/builtin_actors.hpp>
#include <gyre_builtin_actors_sources.hpp>

#include <fstream>
#include <sstream>

#include "support/catch.hpp"
#include "support/stepped.hpp"

using namespace gyre;

TEST_CASE("an actor set numbers its handlers in the order they are listed, and finds them by identity") {
  const ActorSet set = ActorSet::of<actors::Echo, gyre_test::Probe>(gyre_builtin_actors::sources);
  REQUIRE(set.handlers().size() == 3);
  const Handler* const echo = set.find(actor_id<actors::Echo>, messages::view::EchoRequest::type_id);
  REQUIRE(echo != nullptr);
  CHECK(echo->actor_type == 0);
  CHECK(echo->message_type == 0);
  CHECK(echo->response == messages::view::EchoResponse::type_id);
  const Handler* const note = set.find(actor_id<gyre_test::Probe>, gyre_test::view::ProbeNote::type_id);
  REQUIRE(note != nullptr);
  CHECK(note->actor_type == 1);
  CHECK(note->message_type == 1);
  CHECK(note->response == 0);
  CHECK(set.find(actor_id<actors::Echo>, gyre_test::view::ProbeNote::type_id) == nullptr);
  CHECK(set.kernel() == "gyre::worker_kernel<gyre::actors::Echo, gyre_test::Probe>");
}

TEST_CASE("request and response are paired by the handler's own signature") {
  CHECK(std::is_same_v<ResponseOf<actors::VectorAdd, messages::view::VectorAddRequest>,
                       messages::view::VectorAddResponse>);
  CHECK(std::is_same_v<ResponseOf<gyre_test::Probe, gyre_test::view::ProbeRequest>,
                       gyre_test::view::ProbeResponse>);
  CHECK(std::is_same_v<Client::ResponseTo<messages::EchoRequest, actors::Echo>, messages::EchoResponse>);
}

TEST_CASE("the text that NVRTC gets is the file that the CPU engine was compiled from") {
  // The CPU engine compiles actors through these very include names (this file does, above): the include root
  // links to the tree, so the file behind the name is what g++ read.
  for (const auto& [sources, root] : {std::pair(&gyre_builtin_actors::sources, GYRE_TEST_INCLUDE_DIR),
                                      std::pair(&gyre_test_actors::sources, GYRE_TEST_SOURCE_DIR)}) {
    for (const std::string_view header : sources->actor_headers) {
      std::ifstream file(std::string(root) + "/" + std::string(header), std::ios::binary);
      std::stringstream text;
      text << file.rdbuf();
      INFO(header);
      REQUIRE_FALSE(text.str().empty());
      uint64_t embedded = 0;
      for (const SourceFile& source : sources->files) {
        if (source.name == header) embedded = fnv1a(source.text);
      }
      CHECK(embedded == fnv1a(text.str()));
    }
  }
}

TEST_CASE("the hash tells texts apart") {
  CHECK(fnv1a("") == 0xcbf29ce484222325u);
  CHECK(fnv1a("a") == 0xaf63dc4c8601ec8cu);  // the published test vector
  CHECK(fnv1a("ab") != fnv1a("ba"));
}

TEST_CASE("actors that went through a shared object's format are the same actors, with their schemas") {
  const ActorSet set = ActorSet::of<gyre_test::Probe>(gyre_test_actors::sources).grid_scoped();
  const LibraryOfActors exported(set);
  const ActorSet loaded = ActorSet::from_library(exported.library());
  CHECK(loaded.kernel() == set.kernel());
  CHECK(loaded.compiled_in());
  CHECK(loaded.is_grid_scoped());
  CHECK(loaded.actor_bytes(10) == set.actor_bytes(10));
  REQUIRE(loaded.handlers().size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    const Handler &one = set.handlers()[i], &other = loaded.handlers()[i];
    CHECK(one.actor == other.actor);
    CHECK(one.request == other.request);
    CHECK(one.response == other.response);
    CHECK(other.request_schema.getProto().getId() == one.request);
    CHECK(set.message_name(0, uint16_t(i)) == loaded.message_name(0, uint16_t(i)));
  }
  CHECK(loaded.handlers()[0].response_schema.getProto().getId() == loaded.handlers()[0].response);
  CHECK(loaded.message_name(0, 0) == "ProbeRequest");
  CHECK(loaded.message_schemas().size() == 3);
  // A set of source text is exported as that.
  const LibraryOfActors text(ActorSet::from_source("struct A {};", {"A"}));
  const ActorSet from_text = ActorSet::from_library(text.library());
  CHECK_FALSE(from_text.compiled_in());
  CHECK(from_text.kernel() == "gyre::worker_kernel<A>");
  CHECK(from_text.message_schemas().empty());
}
