#include "bulk_rows.hpp"

#include <fmt/format.h>
#include <bench/actors/bulk.hpp>
#include <bench/actors/bulk.official.hpp>
#include <gyre/runtime/buffer.hpp>
#include <gyre/runtime/elements.hpp>
#include <gyre_bench_actors_sources.hpp>

#include <algorithm>
#include <numeric>
#include <optional>

#include "baselines/plain_copies.hpp"
#include "common_options.hpp"
#include "gyre_run.hpp"
#include "threads.hpp"

namespace gyre::bench {

namespace {

using Clock = std::chrono::steady_clock;
using Elements = std::vector<uint32_t>;
using gyre_bench::Bulk;
using gyre_bench::CountUpRequest;
using gyre_bench::InvertRequest;
using gyre_bench::SumRequest;

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

bool is_in(Direction direction) { return direction != Direction::out; }
bool is_out(Direction direction) { return direction != Direction::in; }

const char* copy_name(Direction direction) {
  return direction == Direction::in ? "write" : direction == Direction::out ? "read" : "write and read";
}

void fill(std::span<uint32_t> elements, uint32_t first) {
  std::iota(elements.begin(), elements.end(), first);
}

template <class Work>
double seconds_of(Work&& work) {
  const auto begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Copies of one buffer size, between device buffers and one kind of host memory.
class BufferCopies {
 public:
  BufferCopies(Runtime& runtime, uint64_t bytes, HostMemory memory)
      : written_(runtime.allocate<uint32_t>(MemoryKind::device, bytes / sizeof(uint32_t))),
        read_(runtime.allocate<uint32_t>(MemoryKind::device, bytes / sizeof(uint32_t))) {
    if (memory == HostMemory::pinned) {
      pinned_from_.emplace(runtime.allocate<uint32_t>(MemoryKind::pinned, written_.size()));
      pinned_to_.emplace(runtime.allocate<uint32_t>(MemoryKind::pinned, written_.size()));
      from_ = pinned_from_->host();
      to_ = pinned_to_->host();
    } else {
      pageable_from_.resize(written_.size());
      pageable_to_.resize(written_.size());
      from_ = pageable_from_;
      to_ = pageable_to_;
    }
  }

  // Seconds of `times` blocking copies, a thread a direction.
  double measure(Direction direction, uint64_t times, uint32_t round) {
    fill(from_, round + 1);
    read_.write(from_);
    const uint32_t changed = round + 7;
    fill(from_, changed);
    std::fill(to_.begin(), to_.end(), 0);
    const auto work = [&](uint32_t t, uint64_t n) {
      const bool in = direction == Direction::in || (direction == Direction::both && t == 0);
      for (uint64_t i = 0; i < n && !tools::interrupt_requested(); ++i)
        in ? written_.write(from_) : read_.read(to_);
    };
    const double seconds = run_together(
        direction == Direction::both ? 2 : 1, [&](uint32_t t) { work(t, 2); },
        [&](uint32_t t) { work(t, times); });
    if (is_out(direction)) check(to_, round + 1, "Buffer::read");
    if (is_in(direction)) {
      written_.read(to_);
      check(to_, changed, "Buffer::write");
    }
    return seconds;
  }

 private:
  static void check(std::span<const uint32_t> got, uint32_t first, const char* what) {
    Elements expected(got.size());
    fill(expected, first);
    expect_equal(got.data(), expected.data(), got.size_bytes(), what);
  }

  Buffer<uint32_t> written_, read_;
  std::optional<Buffer<uint32_t>> pinned_from_, pinned_to_;
  Elements pageable_from_, pageable_to_;
  std::span<uint32_t> from_, to_;
};

// Messages with a large list, several in flight, asked for by one thread.
class BulkMessages {
 public:
  BulkMessages(Runtime& runtime, uint64_t bytes, uint32_t depth, uint32_t workers)
      : client_(runtime.client()),
        depth_(depth),
        workers_(workers),
        sent_(bytes / sizeof(uint32_t)),
        got_(sent_.size()) {
    fill(sent_, 1);
    sum_ = std::accumulate(sent_.begin(), sent_.end(), uint64_t(0));
  }

  double measure(Direction direction, uint64_t times) {
    switch (direction) {
      case Direction::in:
        return pipelined<gyre_bench::SumResponse>(
            times, [&](uint64_t k) { return ask_sum(k); },
            [&](const auto& reply, uint64_t) { check_sum(reply); });
      case Direction::out:
        return pipelined<gyre_bench::CountUpResponse>(
            times, [&](uint64_t k) { return ask_to_count_up(k); },
            [&](const auto& reply, uint64_t k) {
              take(reply.getValues());
              check_some([&](uint64_t i) { return uint32_t(k + i); });
            });
      case Direction::both:
        break;
    }
    return pipelined<gyre_bench::InvertResponse>(
        times, [&](uint64_t k) { return ask_to_invert(k); },
        [&](const auto& reply, uint64_t) {
          take(reply.getValues());
          check_some([&](uint64_t i) { return ~sent_[i]; });
        });
  }

 private:
  template <class Response>
  using Answer = Future<Reply<Response>>;

  Address<Bulk> target(uint64_t k) const { return {.key = k % workers_}; }
  Answer<gyre_bench::SumResponse> ask_sum(uint64_t k) {
    return client_.ask<SumRequest>(
        target(k),
        [&](SumRequest::Builder request) {
          gyre::set_elements(request.initValues(uint32_t(sent_.size())), std::span(sent_));
        },
        AskOptions{{}, 64});
  }
  Answer<gyre_bench::CountUpResponse> ask_to_count_up(uint64_t k) {
    return client_.ask<CountUpRequest>(
        target(k),
        [&](CountUpRequest::Builder request) {
          request.setFirst(uint32_t(k));
          request.setCount(uint32_t(sent_.size()));
        },
        AskOptions{{}, uint32_t(sent_.size() * sizeof(uint32_t) + 64)});
  }
  Answer<gyre_bench::InvertResponse> ask_to_invert(uint64_t k) {
    return client_.ask<InvertRequest>(
        target(k),
        [&](InvertRequest::Builder request) {
          gyre::set_elements(request.initValues(uint32_t(sent_.size())), std::span(sent_));
        },
        AskOptions{{}, uint32_t(sent_.size() * sizeof(uint32_t) + 64)});
  }

  void check_sum(const gyre_bench::SumResponse::Reader& reply) const {
    if (reply.getSum() == sum_) return;
    throw Error(fmt::format("adding {} elements: {} came back, not {}; please report it", sent_.size(),
                            reply.getSum(), sum_));
  }
  // Into memory of the program, as the plain copies do it.
  void take(capnp::List<uint32_t>::Reader values) { gyre::get_elements(values, std::span(got_)); }
  // 17 elements while time runs; all of the last message.
  template <class Expected>
  void check_some(Expected&& expected, bool all = false) const {
    const uint64_t stride = all ? 1 : std::max<uint64_t>(1, got_.size() / 16);
    for (uint64_t i = 0; i < got_.size(); i += stride) check_one(i, expected(i));
    check_one(got_.size() - 1, expected(got_.size() - 1));
  }
  void check_one(uint64_t i, uint32_t expected) const {
    if (got_[i] == expected) return;
    throw Error(
        fmt::format("asking for {} elements: element {} came back as {}, not {}: no figure of this "
                    "run counts; please report it",
                    got_.size(), i, got_[i], expected));
  }

  template <class Response, class Ask, class Check>
  double pipelined(uint64_t times, Ask&& ask, Check&& check) {
    std::vector<std::optional<Answer<Response>>> in_flight(depth_);
    const auto run = [&](uint64_t n) {
      for (uint64_t k = 0; k < n + depth_; ++k) {
        std::optional<Answer<Response>>& answer = in_flight[k % depth_];
        if (k >= depth_ && answer) {
          auto reply = std::exchange(answer, std::nullopt)->get();
          if (!reply) throw Error("asking for large data: " + reply.error().message(), reply.error().status);
          check(*reply.value(), k - depth_);
        }
        if (k < n && !tools::interrupt_requested()) answer.emplace(ask(k));
      }
    };
    run(depth_);
    const double seconds = seconds_of([&] { run(times); });
    if (tools::interrupt_requested()) return seconds;
    if constexpr (!std::is_same_v<Response, gyre_bench::SumResponse>) {
      const bool counts = std::is_same_v<Response, gyre_bench::CountUpResponse>;
      check_some([&](uint64_t i) { return counts ? uint32_t(times - 1 + i) : ~sent_[i]; }, true);
    }
    return seconds;
  }

  Client client_;
  const uint32_t depth_, workers_;
  Elements sent_, got_;
  uint64_t sum_ = 0;
};

// All rows of one size, in the order in which they are measured.
std::vector<BulkRow> rows_of(uint64_t bytes, uint64_t total_bytes, bool on_cuda) {
  std::vector<BulkRow> rows;
  const uint64_t copies = std::clamp<uint64_t>(total_bytes / bytes, 4, 100'000);
  const auto add = [&](Direction direction, const std::string& name, const std::string& plain) {
    rows.push_back({name, plain, bytes, copies, direction == Direction::both ? 2u : 1u, {}, {}});
  };
  for (const HostMemory memory : {HostMemory::pinned, HostMemory::pageable}) {
    for (const Direction direction : directions) {
      const std::string what = fmt::format("{}, {}", copy_name(direction), name(memory));
      add(direction, "gyre " + what, (on_cuda ? "cuMemcpy " : "memcpy ") + what);
    }
  }
  for (const Direction direction : directions) {
    add(direction, fmt::format("gyre messages {}", name(direction)),
        fmt::format("{} {}", on_cuda ? "memcpy, cuMemcpyAsync" : "memcpy, payloads", name(direction)));
  }
  return rows;
}

double rate(const BulkRow& row, double seconds) {
  return double(row.bytes * row.copies * row.directions) / seconds / 1e9;
}

// `measure_copies(bytes, memory, direction, copies)` and `measure_messages(bytes, direction, copies)` give
// seconds, which `take(row, seconds)` gets.
template <class Copies, class Messages, class Take>
void for_each_row(std::vector<BulkRow>& rows, Copies&& measure_copies, Messages&& measure_messages,
                  Take&& take) {
  for (size_t at = 0; at < rows.size();) {
    for (const HostMemory memory : {HostMemory::pinned, HostMemory::pageable}) {
      for (const Direction direction : directions) {
        BulkRow& row = rows[at++];
        const double seconds = measure_copies(row.bytes, memory, direction, row.copies);
        if (tools::interrupt_requested()) return;
        take(row, seconds);
      }
    }
    for (const Direction direction : directions) {
      BulkRow& row = rows[at++];
      const double seconds = measure_messages(row.bytes, direction, row.copies);
      if (tools::interrupt_requested()) return;
      take(row, seconds);
    }
  }
}

std::unique_ptr<PlainCopies> plain_copies(const Options& options, bool on_cuda, uint64_t bytes,
                                          [[maybe_unused]] uint32_t depth) {
#if defined(GYRE_WITH_CUDA)
  if (on_cuda) return plain_copies_of_device(options.device, bytes, depth);
#endif
  (void)options, (void)on_cuda;
  return plain_copies_of_host(bytes);
}

void measure_plain(const BulkPlan& plan, bool on_cuda, std::vector<BulkRow>& rows) {
  std::unique_ptr<PlainCopies> copies;
  uint64_t copies_bytes = 0;
  const auto of = [&](uint64_t bytes) -> PlainCopies& {
    if (copies_bytes != bytes) {
      copies.reset();
      copies = plain_copies(plan.options, on_cuda, bytes, plan.depth);
      copies_bytes = bytes;
    }
    return *copies;
  };
  for_each_row(
      rows,
      [&](uint64_t bytes, HostMemory memory, Direction direction, uint64_t times) {
        return of(bytes).copies(direction, memory, times);
      },
      [&](uint64_t bytes, Direction direction, uint64_t times) {
        return of(bytes).payloads(direction, times);
      },
      [](BulkRow& row, double seconds) { row.plain_gb_per_s.push_back(rate(row, seconds)); });
}

Options options_for(const BulkPlan& plan) {
  Options options = plan.options;
  const uint64_t largest = *std::max_element(plan.bytes.begin(), plan.bytes.end());
  if (!plan.arena_given) {
    // A block holds the request and the room for its reply, and begins at a multiple of 64 KiB.
    options.arena_bytes =
        std::max<uint64_t>((plan.depth + 1) * (2 * largest + (256 << 10)) / 4096 * 4096, 1 << 20);
  }
  options.region_budget = std::max(options.region_budget, options.arena_bytes + (uint64_t(1) << 30));
  return options;
}

void measure_gyre(const BulkPlan& plan, uint32_t round, std::vector<BulkRow>& rows) {
  const Options options = options_for(plan);
  const ActorSet actors = ActorSet::of<Bulk>(gyre_bench_actors::sources);
  run_on_gyre(actors, options, "large data", [&](Runtime& runtime) {
    for_each_row(
        rows,
        [&](uint64_t bytes, HostMemory memory, Direction direction, uint64_t times) {
          return BufferCopies(runtime, bytes, memory).measure(direction, times, round);
        },
        [&](uint64_t bytes, Direction direction, uint64_t times) {
          return BulkMessages(runtime, bytes, plan.depth, options.workers).measure(direction, times);
        },
        [](BulkRow& row, double seconds) { row.gb_per_s.push_back(rate(row, seconds)); });
  });
}

}  // namespace

double BulkRow::median() const { return median_of(gb_per_s); }
double BulkRow::plain_median() const { return median_of(plain_gb_per_s); }
double BulkRow::ratio() const {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(gb_per_s.size(), plain_gb_per_s.size()); ++i)
    ratios.push_back(gb_per_s[i] / plain_gb_per_s[i]);
  return median_of(ratios);
}

std::vector<BulkRow> measure_bulk(const BulkPlan& plan) {
  const bool on_cuda = plan.options.engine != EngineKind::cpu;
  std::vector<BulkRow> rows;
  for (const uint64_t bytes : plan.bytes) {
    for (BulkRow& row : rows_of(bytes, plan.total_bytes, on_cuda)) rows.push_back(std::move(row));
  }
  for (uint32_t round = 0; round < plan.rounds && !tools::interrupt_requested(); ++round) {
    measure_plain(plan, on_cuda, rows);
    if (!tools::interrupt_requested()) measure_gyre(plan, round, rows);
  }
  return rows;
}

void print(std::FILE* out, const std::vector<BulkRow>& rows) {
  fmt::print(out, "\n{:<30} {:>10} {:>8} {:>9} {:>9} {:>7}  {}\n", "row", "bytes", "copies", "GB/s", "plain",
             "ratio", "beside");
  for (const BulkRow& row : rows) {
    if (row.gb_per_s.empty() || row.plain_gb_per_s.empty()) continue;
    fmt::print(out, "{:<30} {:>10} {:>8} {:>9.3f} {:>9.3f} {:>7.2f}  {}\n", row.name, row.bytes, row.copies,
               row.median(), row.plain_median(), row.ratio(), row.plain);
  }
}

void add_to(tools::Json& json_rows, const std::vector<BulkRow>& rows) {
  for (const BulkRow& row : rows) {
    if (row.gb_per_s.empty() || row.plain_gb_per_s.empty()) continue;
    const auto add = [&](const std::string& name, double gb_per_s, double ratio,
                         const std::vector<double>& rounds) {
      json_rows.push_back({{"name", name},
                           {"bytes", row.bytes},
                           {"messages", row.copies},
                           {"gb_per_s", gb_per_s},
                           {"rate_ratio", ratio},
                           {"beside", row.plain},
                           {"rounds", rounds}});
    };
    add(row.plain, row.plain_median(), 1, row.plain_gb_per_s);
    add(row.name, row.median(), row.ratio(), row.gb_per_s);
  }
}

}  // namespace gyre::bench
