// gyre-bench frames: what damaged and hostile bytes cost the thread that sends them as a message: the worst
// time and the most memory over many frames.
#include <capnp/message.h>
#include <capnp/schema.capnp.h>
#include <capnp/schema.h>
#include <capnp/serialize-packed.h>
#include <capnp/serialize.h>
#include <fmt/format.h>
#include <kj/io.h>
#include <malloc.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <gyre/gyre.hpp>
#include <gyre/messages/echo.official.hpp>
#include <gyre/messages/vector_add.official.hpp>
#include <gyre/runtime/builtin_actors.hpp>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <vector>

#include "common_options.hpp"
#include "gaps.hpp"
#include "machine.hpp"
#include "subcommands.hpp"

namespace {

// Bytes that the calling thread has from operator new, while it counts. The operators are kept out of line:
// g++ 12 takes an inlined pair of them for a mismatch of malloc and operator delete.
struct HeapBytes {
  bool counting = false;
  int64_t live = 0, peak = 0;
};
thread_local HeapBytes heap_bytes;

}  // namespace

[[gnu::noinline]] void* operator new(size_t bytes) {
  void* const memory = std::malloc(bytes != 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  if (heap_bytes.counting) {
    heap_bytes.live += int64_t(malloc_usable_size(memory));
    heap_bytes.peak = std::max(heap_bytes.peak, heap_bytes.live);
  }
  return memory;
}
// A sanitizer's own would not be a pair with operator delete below.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (heap_bytes.counting) heap_bytes.live -= int64_t(malloc_usable_size(memory));
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { operator delete(memory); }

namespace gyre::bench {

namespace {

using Bytes = std::vector<std::byte>;

struct FramesSettings {
  Options options;
  uint64_t frames = 500'000;
  uint64_t seed = 1;
  std::string json_file;
};

/// What a frame may cost the thread that sends it (docs/reference/messages.md, messages from outside).
constexpr uint64_t memory_bound(uint64_t bytes) { return (64 << 10) + 16 * bytes; }
constexpr uint64_t time_bound_ns(uint64_t bytes) { return 100'000 + 100 * bytes; }

// A figure that is worst, the frame that it was of, and how many frames exceeded the bound.
struct Worst {
  uint64_t figure = 0, frame_bytes = 0, over_bound = 0;
  double per_byte = 0;  // the most of any frame
  void add(uint64_t value, uint64_t bytes, uint64_t bound) {
    if (value > figure) {
      figure = value;
      frame_bytes = bytes;
    }
    per_byte = std::max(per_byte, double(value) / double(std::max<uint64_t>(bytes, 1)));
    if (value > bound) ++over_bound;
  }
};

struct FramesRow {
  std::string name;
  uint64_t frames = 0, bytes = 0;
  uint64_t sent = 0, malformed = 0, too_large = 0;
  Worst time_ns, memory;
  std::vector<uint64_t> samples_ns;
};

Bytes bytes_of(kj::ArrayPtr<const kj::byte> bytes) {
  const auto* const begin = reinterpret_cast<const std::byte*>(bytes.begin());
  return {begin, begin + bytes.size()};
}

// Segments of at least one word each, which a message of any size is divided into; or one.
Bytes encoded(Encoding encoding, bool several_segments,
              const std::function<void(capnp::MessageBuilder&)>& build) {
  capnp::MallocMessageBuilder message(several_segments ? 1 : 8192,
                                      several_segments ? capnp::AllocationStrategy::FIXED_SIZE
                                                       : capnp::AllocationStrategy::GROW_HEURISTICALLY);
  build(message);
  if (encoding == Encoding::stream) return bytes_of(capnp::messageToFlatArray(message).asBytes());
  kj::VectorOutputStream out;
  capnp::writePackedMessage(out, message);
  return bytes_of(out.getArray());
}

// Two segments. In the second is a list of eight pointers to a list of eight pointers, and so on: a few words
// that read as millions.
Bytes repeated(Encoding encoding) {
  constexpr uint32_t depth = 8, width = 8;
  std::vector<uint64_t> words;
  const auto list_pointer = [](int64_t offset) {
    return (uint64_t(width) << 35) | (uint64_t(6) << 32) | uint32_t(offset << 2) | 1;
  };
  words.push_back(list_pointer(0));  // the far pointer's landing pad
  for (uint32_t level = 0; level + 1 < depth; ++level) {
    // Element i of this list is width - 1 - i words before the next list.
    for (uint32_t i = 0; i < width; ++i) words.push_back(list_pointer(width - 1 - i));
  }
  words.insert(words.end(), width, 0);
  const std::vector<uint64_t> root = {uint64_t(1) << 32 | 2};  // far pointer: segment 1, word 0
  const auto as_segment = [](const std::vector<uint64_t>& segment) {
    return kj::arrayPtr(reinterpret_cast<const capnp::word*>(segment.data()), segment.size());
  };
  const kj::ArrayPtr<const capnp::word> segments[] = {as_segment(root), as_segment(words)};
  if (encoding == Encoding::stream) return bytes_of(capnp::messageToFlatArray(segments).asBytes());
  kj::VectorOutputStream out;
  capnp::writePackedMessage(out, segments);
  return bytes_of(out.getArray());
}

// Well-formed frames, which are then damaged; and repeated(), which is hostile as it is.
std::vector<Bytes> whole_frames(Encoding encoding) {
  std::vector<Bytes> frames = {repeated(encoding)};
  for (const bool several : {false, true}) {
    frames.push_back(encoded(encoding, several, [](capnp::MessageBuilder& message) {
      auto request = message.initRoot<messages::EchoRequest>();
      request.setSequence(77);
      auto payload = request.initPayload(14);
      for (uint32_t i = 0; i < payload.size(); ++i) payload.set(i, i * 0x0101010101u);
    }));
    frames.push_back(encoded(encoding, several, [](capnp::MessageBuilder& message) {
      auto request = message.initRoot<messages::VectorAddRequest>();
      for (auto list : {request.initA(25), request.initB(25)}) {
        for (uint32_t i = 0; i < list.size(); ++i) list.set(i, float(i));
      }
    }));
    frames.push_back(encoded(encoding, several, [](capnp::MessageBuilder& message) {
      message.setRoot(capnp::Schema::from<messages::VectorAddRequest>().getProto());
    }));
  }
  return frames;
}

// One to six flipped bits, in every other frame in its first 24 bytes, where segments and roots are said.
Bytes damaged(const std::vector<Bytes>& whole, Xorshift& random) {
  Bytes frame = whole[random.below(uint32_t(whole.size()))];
  const bool at_its_head = random.below(2) == 0;
  const uint32_t flips = 1 + random.below(6);
  for (uint32_t i = 0; i < flips; ++i) {
    const size_t at = random.below(uint32_t(at_its_head ? std::min<size_t>(24, frame.size()) : frame.size()));
    frame[at] ^= std::byte(1 << random.below(8));
  }
  return frame;
}

uint64_t thread_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}
uint64_t pages_touched() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return uint64_t(usage.ru_minflt);
}

// Takes the frame as Client::ask takes it, up to where the message would go into a ring.
void take(FramesRow& row, const Bytes& frame, Encoding encoding, uint64_t capacity, bool counted) {
  static const uint64_t page_bytes = uint64_t(sysconf(_SC_PAGESIZE));
  uint64_t body_bytes = 0;
  heap_bytes = {true, 0, 0};
  const uint64_t pages_before = pages_touched(), begin_ns = thread_ns();
  const Result<void> outcome =
      detail::send_encoded({frame, encoding}, capacity, [&](const detail::Outgoing& message) -> Result<void> {
        body_bytes = message.bytes();
        return success();
      });
  const uint64_t ns = thread_ns() - begin_ns, pages = pages_touched() - pages_before;
  heap_bytes.counting = false;
  if (!counted) return;
  ++row.frames;
  row.bytes += frame.size();
  ++(outcome ? row.sent : outcome.error().status == Status::too_large ? row.too_large : row.malformed);
  row.samples_ns.push_back(ns);
  row.time_ns.add(ns, frame.size(), time_bound_ns(frame.size()));
  // Pages that the thread had before do not show as touched; what is allocated and not touched does not
  // either.
  row.memory.add(std::max(uint64_t(heap_bytes.peak) + body_bytes, pages * page_bytes), frame.size(),
                 memory_bound(frame.size()));
}

FramesRow measure_frames(const std::string& name, Encoding encoding, const FramesSettings& settings) {
  FramesRow row;
  row.name = name;
  row.samples_ns.reserve(settings.frames);
  const std::vector<Bytes> whole = whole_frames(encoding);
  Xorshift random(settings.seed);
  const uint64_t warm_up = std::min<uint64_t>(1000, settings.frames / 10);
  for (uint64_t i = 0; i < warm_up + settings.frames && !tools::interrupt_requested(); ++i) {
    take(row, damaged(whole, random), encoding, settings.options.arena_bytes, i >= warm_up);
  }
  std::sort(row.samples_ns.begin(), row.samples_ns.end());
  return row;
}

uint64_t quantile(const FramesRow& row, double q) {
  if (row.samples_ns.empty()) return 0;
  return row.samples_ns[std::min(row.samples_ns.size() - 1, size_t(q * double(row.samples_ns.size())))];
}

int frames(const FramesSettings& settings) {
  tools::catch_interrupts();
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  const Machine machine = machine_of(settings.options);
  print(out, machine);
  fmt::print(out,
             "{} damaged frames a row, 1 to 6 flipped bits each, read as Client::ask reads them; bounds: 64 "
             "KiB + 16 x "
             "bytes of memory, 100 us + 100 ns x bytes of processor time\n"
             "not measured: rings, workers, replies\n\n"
             "{:<8} {:>9} {:>9} {:>9} {:>9} {:>10} {:>10} {:>12} {:>9} {:>12} {:>9}\n",
             settings.frames, "row", "sent", "malformed", "too large", "p50 ns", "p99.9 ns", "worst ns",
             "ns/byte", "over bound", "worst bytes", "over bound");
  tools::Json json_rows = tools::Json::array();
  for (const auto& [name, encoding] :
       {std::pair("stream", Encoding::stream), std::pair("packed", Encoding::packed)}) {
    const FramesRow row = measure_frames(name, encoding, settings);
    if (tools::interrupt_requested()) return tools::interrupted;
    fmt::print(out, "{:<8} {:>9} {:>9} {:>9} {:>9} {:>10} {:>10} {:>12.1f} {:>9} {:>12} {:>9}\n", row.name,
               row.sent, row.malformed, row.too_large, quantile(row, 0.5), quantile(row, 0.999),
               row.time_ns.figure, row.time_ns.per_byte, row.time_ns.over_bound, row.memory.figure,
               row.memory.over_bound);
    const auto worst = [](const Worst& figure) {
      return tools::Json{{"worst", figure.figure},
                         {"worst_frame_bytes", figure.frame_bytes},
                         {"worst_per_byte", figure.per_byte},
                         {"over_bound", figure.over_bound}};
    };
    json_rows.push_back({{"name", row.name},
                         {"frames", row.frames},
                         {"bytes", row.bytes},
                         {"sent", row.sent},
                         {"malformed", row.malformed},
                         {"too_large", row.too_large},
                         {"p50_ns", quantile(row, 0.5)},
                         {"p999_ns", quantile(row, 0.999)},
                         {"time_ns", worst(row.time_ns)},
                         {"memory_bytes", worst(row.memory)}});
  }
  tools::write_json(settings.json_file,
                    {{"benchmark", "frames"}, {"machine", to_json(machine)}, {"rows", json_rows}});
  return tools::all_passed;
}

}  // namespace

void add_frames(tools::ProgramCommand app, std::function<int()>& chosen) {
  auto settings = std::make_shared<FramesSettings>();
  const tools::ProgramCommand command = app.add_subcommand(
      "frames", "What damaged and hostile bytes cost the thread that sends them: worst time, most memory.");
  tools::add_common_options(command, settings->options, settings->json_file);
  command.add_option("--frames", settings->frames, "frames a row; a tenth more, 1,000 at most, warm up")
      .range(uint64_t(1), uint64_t(100'000'000))
      .type_name("N")
      .show_default();
  command.add_option("--seed", settings->seed, "of the damage: the same frames again")
      .type_name("N")
      .show_default();
  command.footer(
      "Rows: stream, packed. time_ns: processor time of the thread; memory_bytes: what it allocated plus the "
      "message, "
      "or the pages that it touched first, whichever is more; over_bound: frames beyond 64 KiB + 16 x bytes, "
      "or 100 us "
      "+ 100 ns x bytes.\n"
      "Exit: 0 measured, 2 bad usage, 3 engine not available here, 130 interrupted.");
  command.when_chosen([settings, &chosen] { chosen = [settings] { return frames(*settings); }; });
}

}  // namespace gyre::bench
