// Any answers of an engine process to its program: launching, allocating, copying and ending give values or
// an Error, and the program neither crashes nor waits for ever.
//
// An input is a byte that says how the process ends, and a list of answers: which, and bytes or numbers.
#include <fcntl.h>
#include <gyre/runtime/c/gyre.h>
#include <sys/mman.h>
#include <gyre/bridge/region.hpp>
#include <gyre/runtime/actors/actor_description.hpp>
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/process/process_engine.hpp>

#include <cstdlib>

#include "support/stepped.hpp"
#include "tests/fuzz/control_messages.hpp"
#include "tests/fuzz/fuzzed_engine.hpp"

using namespace gyre_fuzz;
using namespace gyre;

namespace {

Options options() {
  Options options;
  options.engine = EngineKind::cuda;
  options.transport = TransportKind::pinned;
  options.slots = 4;
  options.arena_bytes = 1 << 16;
  options.max_buffers = 8;
  options.heartbeat_timeout = std::chrono::milliseconds(200);
  return options;
}

RegionLayout layout() { return options().region_layout(gyre_test::probe_actors().handlers().size()); }

// The file that the process reads.
class Answers {
 public:
  Answers() : file_(memfd_create("answers", 0)) {
    const std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_.get());
    setenv("GYRE_FUZZ_ANSWERS", path.c_str(), 1);
    setenv("GYRE_ENGINE", GYRE_FUZZED_ENGINE, 1);
  }
  void begin() { bytes_.clear(), last_ = 0; }
  void add(Record record, const std::string& bytes) {
    last_ = bytes_.size();
    record.bytes = uint32_t(bytes.size());
    bytes_.append(reinterpret_cast<const char*>(&record), sizeof record).append(bytes);
  }
  void end(uint32_t then) {
    std::memcpy(bytes_.data() + last_ + offsetof(Record, then), &then, sizeof then);
    if (ftruncate(file_.get(), 0) != 0 ||
        pwrite(file_.get(), bytes_.data(), bytes_.size(), 0) != ssize_t(bytes_.size())) {
      found("the answers cannot be written");
    }
  }

 private:
  Descriptor file_;
  std::string bytes_;
  size_t last_ = 0;
};

std::string framed(capnp::MessageBuilder& message, uint32_t descriptors) {
  const auto words = capnp::messageToFlatArray(message);
  const auto bytes = words.asBytes();
  return frame_of(bytes.size(), descriptors) +
         std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
}

void add_hello(Answers& answers) {
  capnp::MallocMessageBuilder message;
  auto hello = message.initRoot<FromEngine>().initHello();
  hello.setVersion(process::control::VERSION);
  hello.setGyre(GYRE_VERSION);
  hello.setRegionVersion(region_version);
  answers.add({}, framed(message, 0));
}

void add_answer(Answers& answers, Input& input) {
  capnp::MallocMessageBuilder message;
  auto from = message.initRoot<FromEngine>();
  const auto which = input.take<uint8_t>();
  // Most times as it should be.
  const auto changed = [&](uint64_t value) {
    const auto change = input.take<uint8_t>();
    if (change % 8 == 1) return input.take<uint64_t>();
    if (change % 8 == 2) return value + uint64_t(input.take<int16_t>());
    return value;
  };
  Record record{};
  switch (which % 8) {
    case 0: {
      auto launched = from.initLaunched();
      const std::vector<std::byte> description = write_description(gyre_test::probe_actors().description());
      launched.setDescription({reinterpret_cast<const kj::byte*>(description.data()), description.size()});
      launched.setRegionBytes(changed(layout().region_bytes()));
      launched.setStagingBytes(changed(sizeof(process::StagingBlock)));
      record.descriptors = uint32_t(changed(2) % 5);
      record.memory_bytes = changed(sizeof(process::StagingBlock)) % (16 << 20);
      record.sealed = changed(1) != 0;
      break;
    }
    case 1:
    case 2:
      from.setAllocated(changed(4096 * (which % 8)));
      record.descriptors = uint32_t(changed(which % 8 - 1) % 5);
      record.memory_bytes = changed(1 << 20) % (8 << 20);
      record.sealed = changed(1) != 0;
      break;
    case 3:
      if (which >= 248) {
        from.setImported(input.take<uint64_t>());
      } else {
        from.setDone();
      }
      break;
    case 4: {
      auto refusal = from.initRefused();
      refusal.setKind(process::control::Refusal::Kind(input.take<uint8_t>()));
      refusal.setText("refused");
      break;
    }
    case 5:
      from.setFailed("failed");
      break;
    default: {
      std::string bytes = input.take_bytes(input.take<uint8_t>());
      if (which % 8 == 7) {
        bytes.resize((bytes.size() + 7) / 8 * 8);
        bytes = frame_of(bytes.size()) + bytes;
      }
      return answers.add(record, bytes);
    }
  }
  answers.add(record, framed(message, record.descriptors));
}

template <class Does>
void may_fail(Does does) {
  try {
    does();
  } catch (const Error&) {
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto& answers = *new Answers;
  static const bool quiet = (set_log_level(LogLevel::off), true);
  (void)quiet;
  const WithoutTraces without_traces;
  Input input(data, size);
  const auto then = input.take<uint8_t>();
  answers.begin();
  if (then % 64 != 63) add_hello(answers);
  for (int n = 0; n < 12 && (!input.empty() || n == 0); ++n) add_answer(answers, input);
  // Seldom what a program has to wait for.
  const uint32_t thens[] = {Record::ends, Record::ends, Record::crashes, Record::crashes};
  answers.end(then % 64 == 4 ? Record::closes : then % 64 == 5 ? Record::waits : thens[then % 4]);
  may_fail([] {
    process::ProcessEngine engine(gyre_test::probe_actors(), options());
    initialise_region(engine.region(), layout());
    std::memset(static_cast<char*>(engine.region()) + layout().arena(), 1, layout().arena_bytes);
    static char bytes[100'000];
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::pinned}) {
      may_fail([&] {
        BufferMemory& memory = engine.buffer_memory();
        const MemoryBlock block = memory.allocate(kind, sizeof bytes);
        // Copies of device memory wait for as long as the process lives: these answers come by the socket.
        if (kind == MemoryKind::pinned) {
          may_fail([&] { memory.copy_in(block, 0, bytes, sizeof bytes); });
          may_fail([&] { memory.copy_out(block, 0, bytes, sizeof bytes); });
        }
        may_fail([&] { memory.zero(block, sizeof bytes); });
        if (kind == MemoryKind::device) memory.release(block);
      });
    }
    may_fail([&] { engine.launch(); });
    (void)engine.finished();
    (void)engine.failure();
    (void)engine.memory();
  });
  return 0;
}
