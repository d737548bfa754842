// Control messages between a program and its engine process: malformed, hostile, and not expected.
#include <fcntl.h>
#include <gyre/runtime/c/gyre.h>
#include <gyre/runtime/process/control.capnp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <gyre/bridge/region.hpp>
#include <gyre/gyre.hpp>
#include <gyre/runtime/process/channel.hpp>
#include <gyre/runtime/process/engine_process.hpp>
#include <gyre/runtime/process/launch_message.hpp>

#include <capnp/serialize.h>
#include <kj/exception.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/engine_process_cases.hpp"
#include "support/engine_processes.hpp"
#include "support/fake_engine_processes.hpp"
#include "support/rounds.hpp"
#include "support/stepped.hpp"
#include "support/temporary_folder.hpp"
#include "support/without_nvrtc.hpp"

using namespace gyre;
using namespace gyre_test;

TEST_CASE("what is no control message is refused by name, and no descriptor leaks") {
  std::mt19937_64 random(17);
  const auto open_descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = open_descriptors();
  for (int round = 0; round < rounds(2000); ++round) {
    int sockets[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
    Descriptor writer(sockets[0]);
    process::Channel reader{Descriptor(sockets[1])};
    // A good message with descriptors. Then some of its bytes are changed, or its end is cut.
    std::vector<char> bytes;
    {
      int copies[2];
      REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, copies) == 0);
      process::Channel good{Descriptor(copies[0])};
      const Descriptor taken(copies[1]);
      capnp::MallocMessageBuilder message;
      auto launch = message.initRoot<process::control::ToEngine>().initLaunch();
      launch.setRuntimeTag(uint32_t(random()));
      launch.initActors().initHeaders(2)[1].setText("#pragma once");
      launch.initOptions().setKeepProgram("somewhere");
      REQUIRE(good.send(message));
      bytes.resize(4096);
      bytes.resize(size_t(read(taken.get(), bytes.data(), bytes.size())));
    }
    const size_t changes = random() % 4;
    for (size_t n = 0; n < changes; ++n) bytes[random() % bytes.size()] = char(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    REQUIRE(write(writer.get(), bytes.data(), bytes.size()) == ssize_t(bytes.size()));
    writer.close();
    try {
      while (auto received = reader.receive()) {
        const auto message = received->root<process::control::ToEngine>();
        if (message.isLaunch()) {
          for (const auto header : message.getLaunch().getActors().getHeaders())
            (void)header.getText().size();
        }
      }
    } catch (const Error& error) {
      CHECK(says(error.what(), "reading a control message: "));
    } catch (const kj::Exception&) {  // malformed within its frame
    }
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("descriptors arrive with their message, and memory that could be resized is refused") {
  int sockets[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
  process::Channel writer{Descriptor(sockets[0])}, reader{Descriptor(sockets[1])};
  SharedMemory memory("gyre-test", 10'000, 10'000);
  static_cast<char*>(memory.address())[9'999] = 'x';
  const Descriptor unsealed(memfd_create("gyre-test", MFD_CLOEXEC));
  REQUIRE(ftruncate(unsealed.get(), 20'000) == 0);
  for (int n = 0; n < 3; ++n) {
    capnp::MallocMessageBuilder message;
    message.initRoot<process::control::FromEngine>().setAllocated(uint64_t(n));
    REQUIRE(writer.send(message, {memory.descriptor(), unsealed.get()}));
  }
  for (uint64_t n = 0; n < 3; ++n) {
    auto received = reader.receive();
    REQUIRE(received);
    CHECK(received->root<process::control::FromEngine>().getAllocated() == n);
    const SharedMemory mapped(received->take_descriptor(), 10'000);
    CHECK(static_cast<const char*>(mapped.address())[9'999] == 'x');
    CHECK_THROWS_AS(SharedMemory(received->take_descriptor(), 10'000), Error);
    CHECK_THROWS_AS(received->take_descriptor(), Error);
  }
  CHECK_THROWS_AS(SharedMemory(Descriptor(dup(memory.descriptor())), 100'000), Error);
}

namespace {

using process::control::FromEngine;
using process::control::ToEngine;

// What a program is sent by an impostor: a whole message's bytes.
std::string bytes_of(capnp::MessageBuilder& message) {
  int sockets[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
  process::Channel writer{Descriptor(sockets[0])};
  const Descriptor reader(sockets[1]);
  REQUIRE(writer.send(message));
  std::string bytes(1 << 16, '\0');
  bytes.resize(size_t(read(reader.get(), bytes.data(), bytes.size())));
  return bytes;
}

std::string good_hello() {
  capnp::MallocMessageBuilder message;
  auto hello = message.initRoot<FromEngine>().initHello();
  hello.setVersion(process::control::VERSION);
  hello.setGyre(GYRE_VERSION);
  hello.setRegionVersion(region_version);
  return bytes_of(message);
}

// A list where the other side's messages have a struct.
void fill_with_another_message(capnp::MessageBuilder& message) {
  message.initRoot<FromEngine>().setFailed("a text");
  static_assert(uint16_t(FromEngine::FAILED) == uint16_t(ToEngine::SET_ENTRY));
}

// An engine process that says hello and, asked for something, `answer`; then does what `then` says.
class Answers {
 public:
  explicit Answers(const std::string& answer, const std::string& then = "exec sleep 60") {
    std::ofstream(folder_.path() / "hello", std::ios::binary) << good_hello();
    std::ofstream(folder_.path() / "answer", std::ios::binary) << answer;
    const std::string folder = folder_.path();
    impostor_.emplace("cat " + folder + "/hello >&3; head -c 1 <&3 >" + folder + "/asked; cat " + folder +
                      "/answer >&3\n" + then);
  }

 private:
  TemporaryFolder folder_;
  std::optional<Impostor> impostor_;
};

std::string what_a_launch_says(std::chrono::milliseconds heartbeat_timeout = 0ms) {
  try {
    Runtime runtime = Runtime::launch(probe_actors(), in_a_process({.heartbeat_timeout = heartbeat_timeout}));
  } catch (const Error& error) {
    return error.what();
  }
  return "it launched";
}

}  // namespace

TEST_CASE("an engine process that answers what cannot be is killed by name, and no other one") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  Runtime other = Runtime::launch(probe_actors(), in_a_process());
  {
    capnp::MallocMessageBuilder message;
    message.initRoot<FromEngine>().setDone();
    const Answers answers(bytes_of(message));
    CHECK_THAT(what_a_launch_says(), containing("asking the engine process: it answered with message 3"));
  }
  {
    capnp::MallocMessageBuilder message;
    message.initRoot<FromEngine>().initLaunched().setRegionBytes(4096);
    const Answers answers(bytes_of(message));
    CHECK_THAT(what_a_launch_says(), containing("reading the actors' description"));
  }
  {
    capnp::MallocMessageBuilder message;
    auto launched = message.initRoot<FromEngine>().initLaunched();
    const std::vector<std::byte> description = write_description(probe_actors().description());
    launched.setDescription({reinterpret_cast<const kj::byte*>(description.data()), description.size()});
    launched.setRegionBytes(4096);
    const Answers answers(bytes_of(message));
    CHECK_THAT(what_a_launch_says(),
               containing("it launched a region of 4096 bytes") && containing("it was killed, launch anew"));
  }
  {
    capnp::MallocMessageBuilder message;
    message.initRoot<FromEngine>().initLaunched().setDevice("a name");
    std::string bytes = bytes_of(message);
    for (size_t at = 16 + 8; at < bytes.size(); ++at) bytes[at] = char(0xff);  // behind frame and table
    const Answers answers(bytes);
    CHECK_THAT(what_a_launch_says(), containing("reading a control message: "));
  }
  {
    const Answers answers("no message of Gyre");
    CHECK_THAT(what_a_launch_says(), containing("was killed: reading a control message: it begins with"));
  }
  {
    const Answers answers(good_hello().substr(0, 20));  // stops within a message
    CHECK_THAT(what_a_launch_says(300ms), containing("gave no heartbeat for 300 ms and was killed"));
  }
  {
    const Answers answers("", "exec 3>&-; exec sleep 60");
    CHECK_THAT(what_a_launch_says(), containing("closed its socket and was killed"));
  }
  CHECK(other.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 4)).get().value()->getValue() == 9);
  CHECK(engines_of(getpid()).size() == 1);
}

TEST_CASE("an engine process that computes is not taken for a stopped one, though its guardian has no turn") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  // Some seconds of it, without a heartbeat.
  const Answers answers("", "n=0; while [ $n -lt 2000000 ]; do n=$((n+1)); done; exit 3");
  CHECK_THAT(what_a_launch_says(1s), containing("it ended with exit code 3"));
}

TEST_CASE("an engine process that gets what no program sends ends by name, and no other one") {
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  process::EngineProcess process(5s), other(5s);
  capnp::MallocMessageBuilder wrong;
  fill_with_another_message(wrong);
  const std::string why =
      "the engine process " + std::to_string(process.id()) + " ended: reading a control message: ";
  CHECK_THROWS_WITH(process.call(wrong, FromEngine::DONE), containing(why));
  CHECK(within_a_minute([&] { return process.gone(); }));
  CHECK_THAT(process.failure().value_or(""), containing(why));
  capnp::MallocMessageBuilder message;
  message.initRoot<ToEngine>().setDevices();
  CHECK(other.call(message, FromEngine::DEVICES).root<FromEngine>().getDevices().size() == 1);
}

TEST_CASE("an engine process refuses memory that it did not allocate") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  process::EngineProcess process(5s);
  const auto ask = [&](auto fill, FromEngine::Which expected) {
    capnp::MallocMessageBuilder message;
    fill(message.initRoot<ToEngine>());
    return process.call(message, expected);
  };
  const auto zero = [&](uint64_t address, uint64_t bytes) {
    ask(
        [&](ToEngine::Builder to) {
          auto span = to.initZero();
          span.setAddress(address);
          span.setBytes(bytes);
        },
        FromEngine::DONE);
  };
  const auto set_entry = [&](uint64_t address, uint64_t bytes) {
    ask(
        [&](ToEngine::Builder to) {
          const uint64_t words[] = {address, bytes, 1};
          to.initSetEntry().setBytes({reinterpret_cast<const kj::byte*>(words), sizeof words});
        },
        FromEngine::DONE);
  };
  CHECK_THROWS_WITH(zero(4096, 1), containing("are of no buffer"));
  ask(
      [](ToEngine::Builder to) {
        process::write_launch(to.initLaunch(), probe_actors(),
                              in_a_process({.transport = TransportKind::pinned}), 1);
      },
      FromEngine::LAUNCHED);
  const uint64_t block = ask(
                             [](ToEngine::Builder to) {
                               auto asked = to.initAllocate();
                               asked.setKind(uint32_t(MemoryKind::device));
                               asked.setBytes(10'000);
                             },
                             FromEngine::ALLOCATED)
                             .root<FromEngine>()
                             .getAllocated();
  zero(block, 10'000);
  zero(block + 9'999, 1);
  CHECK_THROWS_WITH(zero(block, 10'001), containing("are of no buffer"));
  CHECK_THROWS_WITH(zero(block + 9'999, 2), containing("are of no buffer"));
  CHECK_THROWS_WITH(zero(block - 1, 2), containing("are of no buffer"));
  CHECK_THROWS_WITH(zero(block + 1, ~uint64_t(0)), containing("are of no buffer"));
  set_entry(block, 10'000);
  set_entry(0, 0);
  CHECK_THROWS_WITH(set_entry(block, 10'001), containing("are of no buffer"));
  CHECK_THROWS_WITH(set_entry(block + 8, 8), containing("are of no buffer"));
  // Memory of the program that it does not have, or describes wrongly.
  const Descriptor file(memfd_create("of the program", MFD_CLOEXEC));
  REQUIRE(ftruncate(file.get(), 8192) == 0);
  const auto import = [&](uint64_t allocation_bytes, uint64_t offset, uint64_t bytes, size_t handle_bytes) {
    capnp::MallocMessageBuilder message;
    auto asked = message.initRoot<ToEngine>().initImport();
    asked.setBase(4096);
    asked.setId(7);
    asked.setAllocationBytes(allocation_bytes);
    asked.setOffset(offset);
    asked.setBytes(bytes);
    asked.initIpcHandle(uint32_t(handle_bytes));
    if (handle_bytes != 0)
      return process.call(message, FromEngine::IMPORTED).root<FromEngine>().getImported();
    return process.call(message, FromEngine::IMPORTED, {file.get()}).root<FromEngine>().getImported();
  };
  CHECK_THROWS_WITH(import(8192, 0, 8192, 64), containing("opening memory of a program by its IPC handle"));
  CHECK_THROWS_WITH(import(8192, 0, 8192, 63), containing("an IPC handle has 64 bytes, and this one 63"));
  CHECK_THROWS_WITH(import(16384, 0, 8192, 0), containing("mapping memory of a program"));
  CHECK_THROWS_WITH(import(8191, 0, 8191, 0), containing("reserving addresses for memory of a program"));
  CHECK_THROWS_WITH(import(8192, 1, 8192, 0),
                    containing("8192 bytes from byte 1 on, and the allocation has"));
  CHECK_THROWS_WITH(import(8192, 8193, 1, 0), containing("1 bytes from byte 8193 on"));
  CHECK_THROWS_WITH(import(8192, 0, 0, 0), containing("0 bytes from byte 0 on"));
  const uint64_t imported = import(8192, 4096, 100, 0);
  zero(imported, 100);
  set_entry(imported, 100);
  CHECK_THROWS_WITH(zero(imported, 101), containing("are of no buffer"));
  CHECK_THROWS_WITH(zero(imported - 1, 2), containing("are of no buffer"));
  CHECK_THROWS_WITH(set_entry(imported, 101), containing("are of no buffer"));
  // What is mapped is as large as it was said to be at first, whatever is claimed of it later.
  CHECK_THROWS_WITH(import(1 << 20, 0, 8193, 0), containing("and the allocation has 8192"));
  capnp::MallocMessageBuilder given_back;
  auto part = given_back.initRoot<ToEngine>().initRelease();
  part.setKind(uint32_t(MemoryKind::imported));
  part.setAddress(imported);
  part.setBytes(100);
  process.post(given_back);
  CHECK_THROWS_WITH(zero(imported, 1), containing("are of no buffer"));
  CHECK(!process.failure());
  capnp::MallocMessageBuilder message;
  auto released = message.initRoot<ToEngine>().initRelease();
  released.setKind(uint32_t(MemoryKind::device));
  released.setAddress(block + 4096);
  released.setBytes(10'000);
  process.post(message);
  CHECK(within_a_minute([&] { return process.gone(); }));
  CHECK_THAT(process.failure().value_or(""),
             containing("ended: freeing a buffer for a program: there is none of 10000 bytes at"));
}
