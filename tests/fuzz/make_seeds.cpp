// make_seeds FOLDER: writes what the fuzzers start from below FOLDER: well-formed bodies of each type and
// revision for reader_fuzz, encoded messages for stream_fuzz, calls at random for builder_fuzz.
#include <capnp/serialize-packed.h>
#include <capnp/serialize.h>
#include <kj/io.h>

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
}
