// gyre-bench payload: large vectors there and their result back, by each way Gyre has, beside plain copies.
#include <fmt/format.h>
#include <gyre/runtime/buffer.hpp>
#include <gyre/runtime/builtin_actors.hpp>

#include <algorithm>
#include <memory>
#include <optional>

#include "baselines/copies.hpp"
#include "bulk_rows.hpp"
#include "common_options.hpp"
#include "gyre_run.hpp"
#include "machine.hpp"
#include "subcommands.hpp"
#include "threads.hpp"

namespace gyre::bench {

namespace {

using messages::Operation;
using messages::VectorAddRequest;
using Answer = Future<Reply<messages::VectorAddResponse>>;
using Clock = std::chrono::steady_clock;

struct PayloadSettings {
  Options options;
  std::vector<uint64_t> bytes = {uint64_t(64) << 10, uint64_t(1) << 20, uint64_t(16) << 20,
                                 uint64_t(64) << 20};
  uint32_t depth = 4;
  uint64_t total_bytes = uint64_t(4) << 30;
  bool arena_given = false;
  bool only_bulk = false;
  uint32_t rounds = 3;
  std::string json_file;
};

struct PayloadRow {
  std::string name = {};
  uint64_t bytes = 0;     // of each vector
  uint64_t messages = 0;  // 0: not measured
  double seconds = 0;
  std::string remark = {};

  double in_per_s() const { return double(2 * bytes * messages) / seconds / 1e9; }
  double out_per_s() const { return double(bytes * messages) / seconds / 1e9; }
};

// The vectors of one message in flight; the operation changes from one use to the next, and with it each
// element of the result.
class VectorSet {
 public:
  VectorSet(uint32_t number, uint64_t elements) : a_(elements), b_(elements) {
    for (uint64_t i = 0; i < elements; ++i) {
      a_[i] = float((i * 7 + number) & 0xfff) + 1;
      b_[i] = float((i * 13 + number * 3) & 0xff) + 2;
    }
  }
  const std::vector<float>& a() const { return a_; }
  const std::vector<float>& b() const { return b_; }
  Operation operation() const { return uses_ % 2 == 0 ? Operation::ADD : Operation::SUBTRACT; }
  void next() { ++uses_; }

  // Throws unless these are elements of the result, of the last use: `stride` apart.
  template <class Result>
  void check(const Result& result, uint64_t stride) const {
    for (uint64_t i = 0; i < a_.size(); i += stride) check_at(i, result[i]);
    check_at(a_.size() - 1, result[a_.size() - 1]);
  }

 private:
  void check_at(uint64_t i, float got) const {
    const float expected = operation() == Operation::ADD ? a_[i] + b_[i] : a_[i] - b_[i];
    if (got == expected) return;
    throw Error(
        fmt::format("adding vectors of {} elements: element {} came back as {}, not {}: no figure of this "
                    "run counts; please report it",
                    a_.size(), i, got, expected));
  }

  std::vector<float> a_, b_;
  uint64_t uses_ = 0;
};

// While time runs a few elements of each result are checked; of each set's last result every one, afterwards.
uint64_t spot_stride(uint64_t elements) { return std::max<uint64_t>(1, elements / 16); }

class Payload {
 public:
  Payload(const PayloadSettings& settings, uint64_t bytes)
      : settings_(settings),
        bytes_(bytes),
        elements_(bytes / sizeof(float)),
        messages_(std::clamp<uint64_t>(settings.total_bytes / (3 * bytes), 2 * settings.depth, 100'000)) {
    for (uint32_t i = 0; i < settings.depth; ++i) sets_.emplace_back(i, elements_);
  }
  uint64_t messages() const { return messages_; }

  PayloadRow in_messages() {
    PayloadRow row = row_of("gyre messages", "vectors in the messages, through the arena");
    Options options = settings_.options;
    if (!settings_.arena_given) {
      // A block holds the request and the room for its reply.
      options.arena_bytes =
          (uint64_t(settings_.depth + 1) * (3 * bytes_ + (128 << 10)) * 5 / 4 + 4095) / 4096 * 4096;
    }
    options.region_budget = std::max(options.region_budget, options.arena_bytes + (uint64_t(1) << 30));
    run_on_gyre(builtin_actors(), options, row.name, [&](Runtime& runtime) {
      Client client = runtime.client();
      pipelined(
          row, options.workers,
          [&](uint64_t key, VectorSet& set) {
            const auto fill = [&set](VectorAddRequest::Builder request) {
              request.setOperation(set.operation());
              request.setA(kj::arrayPtr(set.a().data(), set.a().size()));
              request.setB(kj::arrayPtr(set.b().data(), set.b().size()));
            };
            return client.ask<VectorAddRequest>(Address<actors::VectorAdd>{key}, fill,
                                                AskOptions{{}, uint32_t(bytes_) + 256});
          },
          [&](uint32_t, VectorSet& set, const auto& reply, uint64_t stride) {
            const auto result = reply->getResult();
            if (result.size() != elements_)
              throw Error(
                  fmt::format("adding vectors of {} elements: {} came back", elements_, result.size()));
            set.check(result, stride);
          });
    });
    return row;
  }

  // By handle, the vectors written once: what moves is what the workers read and write.
  PayloadRow in_buffers(MemoryKind kind, const std::string& name, const std::string& remark) {
    PayloadRow row = row_of(name, remark);
    run_on_gyre(builtin_actors(), settings_.options, row.name, [&](Runtime& runtime) {
      if (const std::string refusal = runtime.refusal(kind); !refusal.empty()) {
        row.messages = 0;
        row.remark = refusal;
        return;
      }
      std::vector<Set> buffers = buffer_sets(runtime, kind);
      Client client = runtime.client();
      std::vector<float> host(elements_);
      pipelined(
          row, settings_.options.workers,
          [&](uint64_t key, VectorSet& set) {
            return ask_by_handle(client, key, set, buffers[index_of(set)]);
          },
          [&](uint32_t index, VectorSet& set, const auto& reply, uint64_t stride) {
            expect_processed(*reply);
            if (kind == MemoryKind::pinned) {
              set.check(buffers[index].result.host(), stride);
            } else if (stride == 1) {
              buffers[index].result.read(host);
              set.check(host, 1);
            }
          });
    });
    return row;
  }

  // Device buffers, written before each message and read after it, by as many threads as messages in flight.
  PayloadRow through_device_buffers() {
    PayloadRow row =
        row_of("gyre device, copied", "device buffers, Buffer::write, ask, Buffer::read; a thread each");
    run_on_gyre(builtin_actors(), settings_.options, row.name, [&](Runtime& runtime) {
      std::vector<Set> buffers = buffer_sets(runtime, MemoryKind::device);
      const uint64_t each = (messages_ + settings_.depth - 1) / settings_.depth;
      row.messages = each * settings_.depth;
      const auto work = [&](uint32_t t, uint64_t times) {
        Client client = runtime.client();
        std::vector<float> host(elements_);
        for (uint64_t i = 0; i < times && !tools::interrupt_requested(); ++i) {
          VectorSet& set = sets_[t];
          set.next();
          buffers[t].a.write(set.a());
          buffers[t].b.write(set.b());
          const auto reply = ask_by_handle(client, t, set, buffers[t]).get();
          if (!reply) throw Error("asking for a vector: " + reply.error().message(), reply.error().status);
          expect_processed(*reply.value());
          buffers[t].result.read(host);
          set.check(host, i + 1 == times ? 1 : spot_stride(elements_));
        }
      };
      row.seconds = run_together(
          settings_.depth, [&](uint32_t t) { work(t, 1); }, [&](uint32_t t) { work(t, each); });
    });
    return row;
  }

  PayloadRow copies(bool on_cuda) {
    PayloadRow row = row_of(on_cuda ? "cuMemcpyAsync" : "memcpy",
                            on_cuda ? "two streams, nothing computed" : "one thread, nothing computed");
#if defined(GYRE_WITH_CUDA)
    if (on_cuda) {
      row.seconds = measure_device_copies(settings_.options.device, 2 * bytes_, bytes_, messages_);
      return row;
    }
#endif
    row.seconds = measure_host_copies(2 * bytes_, bytes_, messages_);
    return row;
  }

 private:
  struct Set {
    Buffer<float> a, b, result;
  };

  PayloadRow row_of(const std::string& name, const std::string& remark) const {
    return {.name = name, .bytes = bytes_, .messages = messages_, .remark = remark};
  }
  uint32_t index_of(const VectorSet& set) const { return uint32_t(&set - sets_.data()); }

  std::vector<Set> buffer_sets(Runtime& runtime, MemoryKind kind) {
    std::vector<Set> buffers;
    for (const VectorSet& set : sets_) {
      buffers.push_back({runtime.allocate<float>(kind, elements_), runtime.allocate<float>(kind, elements_),
                         runtime.allocate<float>(kind, elements_)});
      buffers.back().a.write(set.a());
      buffers.back().b.write(set.b());
    }
    return buffers;
  }

  Answer ask_by_handle(Client& client, uint64_t key, const VectorSet& set, const Set& buffers) const {
    const auto fill = [&](VectorAddRequest::Builder request) {
      request.setOperation(set.operation());
      request.setLength(elements_);
      buffers.a.set(request.initABuffer());
      buffers.b.set(request.initBBuffer());
      buffers.result.set(request.initResultBuffer());
    };
    return client.ask<VectorAddRequest>(Address<actors::VectorAdd>{key}, fill);
  }

  void expect_processed(const messages::VectorAddResponse::Reader& reply) const {
    if (reply.getProcessed() == elements_) return;
    throw Error(fmt::format("adding vectors of {} elements in buffers: {} were processed; please report it",
                            elements_, reply.getProcessed()));
  }

  // `ask(key, set)` gives an Answer; `check(index, set, reply, stride)` throws. The last answer of each set
  // is checked whole once time no longer runs.
  template <class Ask, class Check>
  void pipelined(PayloadRow& row, uint32_t workers, Ask&& ask, Check&& check) {
    const uint32_t depth = settings_.depth;
    std::vector<std::optional<Answer>> in_flight(depth);
    const auto run = [&](uint64_t messages) {
      for (uint64_t k = 0; k < messages + depth; ++k) {
        const auto index = uint32_t(k % depth);
        if (k >= depth && k - depth < messages) {
          const auto reply = in_flight[index]->get();
          if (!reply) throw Error("asking for a vector: " + reply.error().message(), reply.error().status);
          check(index, sets_[index], reply.value(), spot_stride(elements_));
        }
        if (k >= messages || tools::interrupt_requested()) continue;
        sets_[index].next();
        in_flight[index].emplace(ask(k % workers, sets_[index]));
      }
    };
    run(depth);
    const auto begin = Clock::now();
    run(messages_);
    row.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    for (uint32_t index = 0; index < depth; ++index) {
      sets_[index].next();
      const auto reply = ask(index % workers, sets_[index]).get();
      if (!reply) throw Error("asking for a vector: " + reply.error().message(), reply.error().status);
      check(index, sets_[index], reply.value(), 1);
    }
  }

  const PayloadSettings& settings_;
  const uint64_t bytes_, elements_, messages_;
  std::vector<VectorSet> sets_;
};

int payload(const PayloadSettings& settings) {
  if (const std::string problems = settings.options.problems(); !problems.empty())
    throw BadOptions("measuring payloads: these options are wrong:\n" + problems);
  for (const uint64_t bytes : settings.bytes) {
    if (bytes % 4 != 0 || bytes < 4 || bytes > uint64_t(256) << 20)
      throw BadOptions(fmt::format("--bytes {}: must be a multiple of 4, 4 to 268435456 (256 MiB)", bytes));
  }
  tools::catch_interrupts();
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  const Machine machine = machine_of(settings.options);
  const bool on_cuda = machine.engine == EngineKind::cuda;
  print(out, machine);
  fmt::print(
      out,
      "vector-add: two vectors of so many bytes there, one back; {} messages in flight, some {} bytes a row; "
      "of each result 17 elements are checked while time runs, of the last ones all\n"
      "not measured: making the vectors; rows of buffers written once say what the workers read and write\n\n"
      "{:<22} {:>10} {:>9} {:>9} {:>9} {:>12}\n",
      settings.depth, settings.total_bytes, "row", "bytes", "messages", "GB/s in", "GB/s out",
      on_cuda ? "/cuMemcpy" : "/memcpy");
  tools::Json json_rows = tools::Json::array();
  for (const uint64_t bytes : settings.bytes) {
    if (settings.only_bulk) break;
    Payload payload(settings, bytes);
    const PayloadRow reference = payload.copies(on_cuda);
    const auto report = [&](const PayloadRow& row) {
      if (tools::interrupt_requested()) return;
      const bool measured = row.messages != 0;
      const double ratio = measured ? row.in_per_s() / reference.in_per_s() : 0;
      fmt::print(out, "{:<22} {:>10} {:>9} {:>9.3f} {:>9.3f} {:>12.2f}  {}\n", row.name, bytes, row.messages,
                 measured ? row.in_per_s() : 0, measured ? row.out_per_s() : 0, ratio, row.remark);
      if (!measured) return;
      json_rows.push_back({{"name", row.name},
                           {"bytes", bytes},
                           {"messages", row.messages},
                           {"seconds", row.seconds},
                           {"gb_per_s_in", row.in_per_s()},
                           {"gb_per_s_out", row.out_per_s()},
                           {"rate_ratio", ratio},
                           {"remark", row.remark}});
    };
    report(reference);
    if (!tools::interrupt_requested()) report(payload.in_messages());
    if (!tools::interrupt_requested())
      report(payload.in_buffers(MemoryKind::pinned, "gyre pinned", "pinned buffers by handle, written once"));
    if (!tools::interrupt_requested())
      report(payload.in_buffers(MemoryKind::device, "gyre device", "device buffers by handle, written once"));
    if (!tools::interrupt_requested()) report(payload.through_device_buffers());
    if (tools::interrupt_requested()) break;
  }
  if (!tools::interrupt_requested()) {
    BulkPlan plan{settings.options,     settings.bytes,  settings.depth,
                  settings.total_bytes, settings.rounds, settings.arena_given};
    plan.options.engine = machine.engine;
    const std::vector<BulkRow> rows = measure_bulk(plan);
    print(out, rows);
    add_to(json_rows, rows);
  }
  tools::Json about = to_json(machine);
  about["depth"] = settings.depth;
  about["rounds"] = settings.rounds;
  tools::write_json(settings.json_file, {{"benchmark", "payload"},
                                         {"machine", about},
                                         {"reference", on_cuda ? "cuMemcpyAsync" : "memcpy"},
                                         {"rows", json_rows}});
  if (tools::interrupt_requested()) {
    fmt::print(out, "interrupted: not all rows were measured\n");
    return tools::interrupted;
  }
  return tools::all_passed;
}

}  // namespace

void add_payload(tools::ProgramCommand app, std::function<int()>& chosen) {
  auto settings = std::make_shared<PayloadSettings>();
  settings->options.wait = WaitPolicy::spin;
  const tools::ProgramCommand command = app.add_subcommand(
      "payload",
      "Large vectors there and back, by each way Gyre has, beside plain copies of the same bytes.");
  tools::add_common_options(command, settings->options, settings->json_file);
  const tools::CommandOption arena = command.option("--arena-bytes");
  command.add_option("--bytes", settings->bytes, "bytes of each of the three vectors; may be several")
      .type_name("BYTES")
      .show_default();
  command.add_option("--depth", settings->depth, "messages in flight")
      .range(1u, 64u)
      .type_name("N")
      .show_default();
  command.add_option("--total-bytes", settings->total_bytes, "bytes a row moves, both ways together, about")
      .range(uint64_t(1), uint64_t(1) << 44)
      .type_name("BYTES")
      .show_default();
  command
      .add_option("--interleave", settings->rounds,
                  "rounds of the rows of one direction and of both, plain copies and Gyre's in turn")
      .range(1u, 1000u)
      .type_name("N")
      .show_default();
  command.add_flag("--only-bulk", settings->only_bulk, "leave out the rows of vectors added");
  command.footer(
      "On a GPU one worker of one warp does not fill the bus: give --workers 16 --block 512 or more.\n"
      "The arena is made as large as the messages in flight need, unless --arena-bytes says otherwise.\n"
      "Exit: 0 every result right, 1 one wrong or lost, 2 bad usage, 3 engine not available here, 130 "
      "interrupted.");
  command.when_chosen([settings, arena, &chosen] {
    settings->arena_given = arena.count() != 0;
    chosen = [settings] { return payload(*settings); };
  });
}

}  // namespace gyre::bench
