// Any messages to an engine process that launched, on the fake driver: each is answered once or ends the
// service by name, nothing outside of its buffers is read or written, and all is given back at the end.
//
// An input is a list of messages: a byte that says which, and numbers that choose among what there is.
#include <sys/mman.h>
#include <gyre/runtime/process/engine_service.hpp>
#include <gyre/runtime/process/launch_message.hpp>
#include <gyre/runtime/system/futex.hpp>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "support/fake_driver.hpp"
#include "support/stepped.hpp"
#include "tests/fuzz/control_messages.hpp"

using namespace gyre_fuzz;
using namespace gyre;

namespace {

struct Block {
  uint32_t kind;
  uint64_t address, bytes;
};

gyre_test::FakeDriver& fake_driver() {
  static auto* const fake = [] {
    set_log_level(LogLevel::off);
    auto* const made = new gyre_test::FakeDriver({gyre_test::probe_actors()});
    made->device.memory_bytes = 64 << 20;
    made->device.host_memory_bytes = 64 << 20;
    return made;
  }();
  return *fake;
}

class Session {
 public:
  Session() : service_channel_(std::move(sockets_.second)), program_(std::move(sockets_.first)) {
    capnp::MallocMessageBuilder message;
    Options options;
    options.engine = EngineKind::cuda;
    options.transport = TransportKind::pinned;
    options.slots = 4;
    options.arena_bytes = 1 << 16;
    options.max_buffers = 8;
    process::write_launch(message.initRoot<ToEngine>().initLaunch(), gyre_test::probe_actors(), options, 7);
    needed_bytes_ = options.region_layout(0).inbound_bytes_elsewhere();
    serve(message);
    auto answer = receive();
    if (!answer || !answer->root<FromEngine>().isLaunched()) found("a good launch is not done");
    (void)answer->take_descriptor();
    staging_ =
        SharedMemory(answer->take_descriptor(), answer->root<FromEngine>().getLaunched().getStagingBytes());
  }

  // False once the service is over.
  bool take(Input& input) {
    capnp::MallocMessageBuilder message;
    auto to = message.initRoot<ToEngine>();
    const auto which = input.take<uint8_t>();
    switch (which % 14) {
      case 0:
      case 1: {
        auto asked = to.initAllocate();
        const Block block{which % 11u, 0, input.take<uint16_t>()};
        asked.setKind(block.kind);
        asked.setBytes(block.bytes);
        if (!serve(message)) return false;
        if (auto answer = receive(); answer && answer->root<FromEngine>().isAllocated()) {
          blocks_.push_back({block.kind, answer->root<FromEngine>().getAllocated(), block.bytes});
        }
        return true;
      }
      case 2: {
        auto released = to.initRelease();
        const Block block = some_block(input);
        released.setKind(block.kind);
        released.setAddress(block.address);
        released.setBytes(block.bytes);
        return serve(message) && !receive();
      }
      case 3:
      case 4:
        if (!copy(process::CopyDirection(which % 14 - 3), input)) found("a copy had no end");
        return true;
      case 5: {
        const Block block = some_block(input);
        auto span = to.initZero();
        span.setAddress(block.address);
        span.setBytes(block.bytes);
        break;
      }
      case 6: {
        auto entry = to.initSetEntry();
        const Block block = some_block(input);
        const BufferEntry bytes{block.address, block.bytes, 1, 0};
        entry.setIndex(input.take<uint8_t>() % 10);
        entry.setBytes({reinterpret_cast<const kj::byte*>(&bytes), sizeof bytes});
        break;
      }
      case 7:
        to.setBarStored(input.take<uint8_t>());
        break;
      case 10: {
        const uint64_t bytes = input.take<uint8_t>() % 4 * needed_bytes_ / 2;
        Descriptor memory(memfd_create("of the program", MFD_CLOEXEC));
        if (ftruncate(memory.get(), off_t(bytes)) != 0) found("no memory");
        to.setMapBar(bytes + input.take<uint8_t>() / 250);
        std::vector<Descriptor> descriptors;
        if (input.take<uint8_t>() % 8 != 0) descriptors.push_back(std::move(memory));
        return serve(words_of(message), std::move(descriptors)) && expect_answer();
      }
      case 11: {
        auto asked = to.initImport();
        asked.setBase(input.take<uint8_t>() % 4);
        asked.setId(input.take<uint8_t>() % 4);
        const uint64_t file_bytes = input.take<uint8_t>() % 4 * 4096;
        asked.setAllocationBytes(file_bytes + input.take<uint8_t>() / 250);
        asked.setOffset(input.take<uint16_t>());
        asked.setBytes(input.take<uint16_t>());
        const auto handle = input.take<uint8_t>() % 4;
        if (handle == 1) asked.initIpcHandle(sizeof(CUipcMemHandle));
        if (handle == 2) asked.initIpcHandle(input.take<uint8_t>());
        Descriptor memory(memfd_create("of the program", MFD_CLOEXEC));
        if (ftruncate(memory.get(), off_t(file_bytes)) != 0) found("no memory");
        const uint64_t bytes = asked.getBytes();
        std::vector<Descriptor> descriptors;
        if (input.take<uint8_t>() % 8 != 0) descriptors.push_back(std::move(memory));
        if (!serve(words_of(message), std::move(descriptors))) return false;
        if (auto answer = receive(); answer && answer->root<FromEngine>().isImported()) {
          blocks_.push_back(
              {uint32_t(MemoryKind::imported), answer->root<FromEngine>().getImported(), bytes});
        }
        return true;
      }
      case 12: {
        to.setExport(some_block(input).address);
        if (!serve(message)) return false;
        auto answer = receive();
        if (!answer) found("an export had no answer");
        const auto from = answer->root<FromEngine>();
        if (!from.isExported()) return true;
        (void)answer->take_descriptor();
        if (from.getExported().getOffset() >= from.getExported().getAllocationBytes())
          found("a buffer was exported outside its allocation");
        return true;
      }
      case 8:
        to.setDevices();
        break;
      case 9:
        process::write_launch(to.initJudge(), gyre_test::probe_actors(), options_of(input), 1);
        break;
      default:
        return take_raw(input);
    }
    return serve(message) && expect_answer();
  }

 private:
  static Options options_of(Input& input) {
    Options options;
    options.device = input.take<int8_t>();
    options.workers = input.take<uint16_t>();
    options.block = input.take<uint16_t>();
    options.slots = input.take<uint16_t>();
    options.slot_bytes = input.take<uint16_t>();
    options.arena_bytes = input.take<uint64_t>();
    options.actors_per_worker = input.take<uint32_t>();
    return options;
  }

  // Of those there are, or there were; somewhat beside it at times.
  Block some_block(Input& input) {
    const auto number = input.take<uint8_t>();
    if (blocks_.empty()) return {number % 4u, input.take<uint64_t>(), input.take<uint64_t>()};
    Block block = blocks_[number % blocks_.size()];
    const auto change = input.take<uint8_t>();
    if (change % 4 == 1) block.address += input.take<int16_t>();
    if (change % 4 == 2) block.bytes += input.take<int16_t>();
    if (change % 4 == 3) block.address = input.take<uint64_t>(), block.bytes = input.take<uint64_t>();
    return block;
  }
  // Asks by a lane for any copy. False where it is not counted as done.
  bool copy(process::CopyDirection direction, Input& input) {
    process::CopyLane& lane =
        static_cast<process::StagingBlock*>(staging_.address())->lanes[size_t(direction)];
    const Block block = some_block(input);
    const auto how = input.take<uint8_t>();
    process::CopyCommand command{block.address, block.bytes, 0, 0};
    if (how % 5 == 0) command.pinned = some_block(input).address;
    if (how % 5 == 1) command.staged = input.take<uint64_t>();
    const uint32_t number = lane.asked.load();
    lane.slot(number).command = command;
    lane.asked.store(number + 1);
    gyre::detail::futex_wake_shared(gyre::detail::whole(lane.asked));
    for (int ms = 0; ms < 60'000 && lane.done.load() != number + 1; ++ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return lane.done.load() == number + 1;
  }

  // Without a start: nobody initialised the region, nor tells workers to end.
  bool take_raw(Input& input) {
    std::string bytes = input.take_bytes(input.take<uint8_t>());
    bytes.resize((bytes.size() + 7) / 8 * 8);
    if (bytes.empty()) return true;
    std::vector<uint64_t> words(bytes.size() / 8);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    if (starts(words)) return true;
    const bool goes_on = serve(std::move(words));
    (void)receive();
    return goes_on;
  }

  static bool starts(std::vector<uint64_t> words) {
    try {
      return Received(std::move(words), {}, false).root<ToEngine>().isStart();
    } catch (const kj::Exception&) {
      return false;
    }
  }

  // Past the socket, which has no room for a launch before it is read.
  bool serve(capnp::MessageBuilder& message) { return serve(words_of(message)); }
  static std::vector<uint64_t> words_of(capnp::MessageBuilder& message) {
    const auto flat = capnp::messageToFlatArray(message);
    std::vector<uint64_t> words(flat.size());
    std::memcpy(words.data(), flat.begin(), flat.size() * sizeof(uint64_t));
    return words;
  }
  bool serve(std::vector<uint64_t> words, std::vector<Descriptor> descriptors = {}) {
    try {
      return service_.serve(Received(std::move(words), std::move(descriptors), false));
    } catch (const Error&) {
      return false;
    } catch (const kj::Exception&) {  // of Received
      return false;
    }
  }
  std::optional<Received> receive() { return program_.receive_if_there(); }
  bool expect_answer() {
    if (!receive()) found("a message has no answer");
    if (receive()) found("a message has two answers");
    return true;
  }

  Sockets sockets_;
  Channel service_channel_, program_;
  process::EnginePage page_{};
  process::EngineService service_{service_channel_, page_};
  SharedMemory staging_;
  std::vector<Block> blocks_;
  uint64_t needed_bytes_ = 0;  // of BAR
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WithoutTraces without_traces;
  gyre_test::FakeDriver& fake = fake_driver();
  {
    Session session;
    Input input(data, size);
    while (!input.empty() && session.take(input)) {
    }
  }
  if (const std::string misuse = fake.misuse(); !misuse.empty()) found(misuse.c_str());
  return 0;
}

// An input of no message, before any whose time is limited: the first launch compiles the actors, which takes
// more than 10 s on a busy machine.
extern "C" int LLVMFuzzerInitialize(int*, char***) { return LLVMFuzzerTestOneInput(nullptr, 0); }
