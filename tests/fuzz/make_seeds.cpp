// make_seeds FOLDER: writes what the fuzzers start from below FOLDER: well-formed bodies of each type and
// revision for reader_fuzz, encoded messages for stream_fuzz, calls at random for builder_fuzz; what NATS
// brings a gateway for nats_fuzz; control messages, and lists of numbers that stand for them.
#include <capnp/serialize-packed.h>
#include <capnp/serialize.h>
#include <kj/io.h>
#if defined(GYRE_WITH_CUDA)
#include <gyre/runtime/process/control.capnp.h>
#endif

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/messages/kinds.capnp.h"
#include "tests/messages/kinds_old.capnp.h"
#include "tests/messages/random_message.hpp"

namespace {

using gyre_test::Random;
using gyre_test::RandomMessage;
namespace fs = std::filesystem;

class Folder {
 public:
  explicit Folder(const fs::path& path) : path_(path) { fs::create_directories(path_); }

  void write(const std::string& bytes) {
    std::ofstream file(path_ / ("seed_" + std::to_string(count_++)), std::ios::binary);
    file.write(bytes.data(), std::streamsize(bytes.size()));
    if (!file.flush()) throw std::runtime_error("a file in " + path_.string() + " cannot be written");
  }

 private:
  fs::path path_;
  int count_ = 0;
};

std::string bytes_of(kj::ArrayPtr<const kj::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.begin()), bytes.size()};
}

// A message of random content, of one segment unless `first_segment` is too small for it.
template <class Official>
void build(capnp::MessageBuilder& message, Random& random, int64_t words) {
  RandomMessage(random, words).fill(message.initRoot<Official>());
}

template <class Official>
std::string body(Random& random, int64_t words) {
  capnp::MallocMessageBuilder message(8192);
  build<Official>(message, random, words);
  return bytes_of(message.getSegmentsForOutput()[0].asBytes());
}

void write_bodies(Folder folder, Random& random) {
  using namespace gyre::test;
  const auto tail = [](size_t length) { return std::string(length, '\0'); };
  for (int round = 0; round < 60; ++round) {
    const auto words = int64_t(random() % (round % 4 == 0 ? 300 : 60));
    folder.write(body<Kinds>(random, words));
    const std::string evolved = body<Evolved>(random, words), old_evolved = body<old::Evolved>(random, words);
    folder.write(evolved + tail(1));
    folder.write(old_evolved + tail(1));
    folder.write(evolved + tail(2));
    folder.write(old_evolved + tail(2));
    folder.write(body<Tree>(random, words) + tail(4));
    folder.write(body<Ping>(random, words) + tail(5));
    if (round % 10 == 0) folder.write(body<Kinds>(random, words) + tail(3));
    if (round % 10 == 0) folder.write(body<old::Kinds>(random, words));
  }
}

// Behind two bytes: capacity and encoding.
void write_encoded(Folder folder, Random& random) {
  for (int round = 0; round < 100; ++round) {
    const bool several = round % 2 != 0;
    capnp::MallocMessageBuilder message(
        several ? 1 : 8192,
        several ? capnp::AllocationStrategy::FIXED_SIZE : capnp::AllocationStrategy::GROW_HEURISTICALLY);
    build<gyre::test::Kinds>(message, random, int64_t(random() % 100));
    const char capacity = char(random());
    folder.write(std::string{capacity, 1} + bytes_of(capnp::messageToFlatArray(message).asBytes()));
    kj::VectorOutputStream packed;
    capnp::writePackedMessage(packed, message);
    folder.write(std::string{capacity, 2} + bytes_of(packed.getArray()));
  }
}

void write_calls(Folder folder, Random& random) {
  for (int round = 0; round < 100; ++round) {
    std::string bytes(random() % 600, '\0');
    for (char& byte : bytes) byte = char(random() % 4 == 0 ? random() : random() % 16);
    folder.write(bytes);
  }
}

// Behind a byte that says what it is.
void write_nats(Folder folder) {
  const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  for (const std::string& headers :
       {std::string(".e2c84f9a1d6b3075\n.42\n-\n-\n-"),
        ".00000000000000af\n.18446744073709551615\n.1000000000000\n.an-id~\n." + trace,
        "-\n.42\n.0\n.a b\n." + trace, std::string(".12\n.-1\n.1000000000001\n.\n.00")}) {
    folder.write(std::string(1, '\0') + headers);
  }
  for (const char* const subject : {"gyre.fuzz.my_Counter.5", "gyre.fuzz.durable.my_Counter.5", "my::Counter",
                                    "gyre.fuzz.my_Counter.5.6", "my::Average<float, 3>"}) {
    folder.write(std::string("\1") + subject);
  }
  folder.write("\2shards=64 lease_ms=3000 clock_error_ms=500 actors=my_Counter,my_Sum");
  for (const char* const state : {"serving", "leaving", "gone"})
    folder.write(std::string("\3life=00000000000000af state=") + state);
  for (const char* const state : {"serving", "taken", "moving to=node2"})
    folder.write(std::string("\4node=node1 life=00000000000000af state=") + state);
  for (const char* const account : {"", "_.ACCOUNT."}) {
    folder.write(std::string("\5$JS.ACK.") + account +
                 "gyre_fuzz_tells.shard_5.3.10.20.1700000000000000000.4" + (*account != 0 ? ".random" : ""));
  }
}

#if defined(GYRE_WITH_CUDA)
template <class Root>
void write_control(Folder& folder, auto fill) {
  capnp::MallocMessageBuilder message;
  fill(message.initRoot<Root>());
  folder.write("\1" + bytes_of(capnp::messageToFlatArray(message).asBytes()));
}

void write_control_messages(Folder folder) {
  using namespace gyre::process::control;
  for (const bool judge : {true, false}) {
    write_control<ToEngine>(folder, [&](ToEngine::Builder to) {
      auto launch = judge ? to.initJudge() : to.initLaunch();
      auto actors = launch.initActors();
      actors.initTypes(2).set(0, "my::Actor");
      auto header = actors.initHeaders(1)[0];
      header.setName("actor.hpp");
      header.setText("struct Actor {};");
      actors.initActorHeaders(1).set(0, "actor.hpp");
      actors.initDescription(48);
      auto options = launch.initOptions();
      options.setWorkers(2);
      options.setKeepProgram("folder");
    });
  }
  write_control<ToEngine>(folder, [](ToEngine::Builder to) { to.setStart(true); });
  write_control<ToEngine>(folder, [](ToEngine::Builder to) { to.initAllocate().setBytes(4096); });
  write_control<ToEngine>(folder, [](ToEngine::Builder to) { to.initZero().setAddress(4096); });
  write_control<ToEngine>(folder, [](ToEngine::Builder to) { to.initSetEntry().initBytes(24); });
  write_control<FromEngine>(folder, [](FromEngine::Builder from) { from.initHello().setGyre("0.1.0"); });
  write_control<FromEngine>(folder, [](FromEngine::Builder from) { from.initRefused().setText("no"); });
  write_control<FromEngine>(folder, [](FromEngine::Builder from) { from.setFailed("because"); });
  write_control<FromEngine>(folder, [](FromEngine::Builder from) { from.initLog().setText("a line"); });
  write_control<FromEngine>(folder, [](FromEngine::Builder from) {
    auto launched = from.initLaunched();
    launched.setDevice("a device");
    launched.initDescription(48);
    launched.initDeviceUuid(16);
  });
}

// For engine_answers_fuzz: how it ends, then a launch, two blocks, and what is done with them, as they should
// be.
void write_answers(Folder folder) {
  const std::string launched("\0\0\0\0\0\0\0\0", 8), device("\1\0\0\0\0", 5), pinned("\2\0\0\0\0", 5);
  for (const char then : {0, 2, 4, 5}) {
    const std::string first(1, then);
    folder.write(first);
    folder.write(first + launched);
    folder.write(first + launched + device + "\3\3" + pinned + pinned + "\3");
  }
}
#endif

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_seeds FOLDER\n");
    return 2;
  }
  Random random(1);
  const fs::path folder = argv[1];
  write_bodies(Folder(folder / "reader_fuzz"), random);
  write_encoded(Folder(folder / "stream_fuzz"), random);
  write_calls(Folder(folder / "builder_fuzz"), random);
  write_nats(Folder(folder / "nats_fuzz"));
#if defined(GYRE_WITH_CUDA)
  write_control_messages(Folder(folder / "control_fuzz"));
  write_answers(Folder(folder / "engine_answers_fuzz"));
  write_calls(Folder(folder / "engine_service_fuzz"), random);
#endif
}
