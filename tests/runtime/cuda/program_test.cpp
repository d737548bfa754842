// NVRTC without a GPU: the actors compile for every architecture Gyre supports.
#include <gelf.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/device/worker/worker.hpp>
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/cuda/cubin_cache.hpp>
#include <gyre/runtime/cuda/engine.hpp>
#include <gyre/runtime/cuda/nvrtc.hpp>
#include <gyre/runtime/cuda/program.hpp>
#include <gyre_asking_actors_sources.hpp>
#include <gyre_bodies_actors_sources.hpp>
#include <gyre_clock_actors_sources.hpp>
#include <gyre_crowd_actors_sources.hpp>
#include <gyre_handlers_actors_sources.hpp>
#include <gyre_ledger_actors_sources.hpp>
#include <gyre_mirror_actors_sources.hpp>
#include <gyre_rally_actors_sources.hpp>
#include <gyre_relay_actors_sources.hpp>
#include <gyre_telling_actors_sources.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <span>
#include <sstream>
#include <thread>

#include "support/abacus.hpp"
#include "support/actors/asking.hpp"
#include "support/actors/bodies.hpp"
#include "support/actors/clock.hpp"
#include "support/actors/crowd.hpp"
#include "support/actors/handlers.hpp"
#include "support/actors/ledger.hpp"
#include "support/actors/mirror.hpp"
#include "support/actors/ping.hpp"
#include "support/actors/pong.hpp"
#include "support/actors/relay.hpp"
#include "support/actors/telling.hpp"
#include "support/catch.hpp"
#include "support/compiled_kernels.hpp"
#include "support/source_actors.hpp"
#include "support/stepped.hpp"
#include "support/temporary_folder.hpp"
#include "support/without_nvrtc.hpp"
#include "tools/gyre/cubin.hpp"

using namespace gyre;
namespace fs = std::filesystem;

namespace {

// What `kernel` says of its actors is what g++ says of them.
void check_description(const cuda::CompiledKernel& kernel, const std::vector<ActorDescription>& expected) {
  const auto seen = read_description(tools::cubin_variables(kernel.cubin).at(kernel.lowered_description));
  REQUIRE(seen.size() == expected.size());
  for (size_t n = 0; n < seen.size(); ++n) {
    CHECK(seen[n].state_bytes == expected[n].state_bytes);
    CHECK(seen[n].max_per_worker == expected[n].max_per_worker);
    CHECK(seen[n].most_sent == expected[n].most_sent);
    CHECK(seen[n].asks == expected[n].asks);
    CHECK(seen[n].listed == expected[n].listed);
    CHECK(seen[n].reply_handlers == expected[n].reply_handlers);
    CHECK(seen[n].rollback_bytes == expected[n].rollback_bytes);
    CHECK(seen[n].scratch_bytes == expected[n].scratch_bytes);
    CHECK(seen[n].shared_scratch_bytes == expected[n].shared_scratch_bytes);
    CHECK(gyre_test::types_of(seen[n].types) == gyre_test::types_of(expected[n].types));
    CHECK(seen[n].max_reply_bytes == expected[n].max_reply_bytes);
  }
}

// By NVRTC, without a warning, and the module describes them.
void check_that_they_compile(const ActorSet& actors, uint32_t block) {
  const cuda::CompiledKernel kernel = cuda::compile(actors, 90, block);
  CHECK(kernel.log.empty());
  check_description(kernel, actors.description());
}

// The built-in actors, for those of `architectures` that NVRTC knows. 12.3, the oldest that Gyre takes, knows
// 75 to 90.
void check_compiles_for(const std::vector<int>& architectures) {
  const std::vector<int> known = cuda::Nvrtc::load().architectures();
  for (const int architecture : architectures) {
    INFO(architecture);
    if (std::find(known.begin(), known.end(), architecture) == known.end()) {
      CHECK(architecture > 90);
      WARN("this NVRTC does not know architecture " << architecture << ": not compiled");
      continue;
    }
    const cuda::CompiledKernel kernel =
        architecture == 90 ? gyre_test::built_in_kernel() : cuda::compile(builtin_actors(), architecture, 32);
    INFO(kernel.log);
    CHECK(kernel.log.empty());
    CHECK(kernel.cubin.substr(0, 4) == "\177ELF");
    CHECK(kernel.lowered_name.find("worker_kernel") != std::string::npos);
    CHECK(kernel.cubin.find(kernel.lowered_name) != std::string::npos);
    check_description(kernel, builtin_actors().description());
  }
}

void check_compiles(const ActorSet& actors, uint32_t block) {
  const cuda::CompiledKernel kernel = cuda::compile(actors, 90, block);
  INFO(kernel.log);
  CHECK(kernel.log.empty());
  CHECK(kernel.cubin.substr(0, 4) == "\177ELF");
}

std::string error_of(const ActorSet& actors) {
  try {
    cuda::compile(actors, 90, 32);
  } catch (const Error& error) {
    return error.what();
  }
  return "it compiled";
}

// Instructions of a cubin for compute capability 9.0 that a warp needs at a collective function which its
// threads may come to apart, in the machine code that NVRTC 13 makes of it: opcode 0x348, which
// disassemblers call WARPSYNC.COLLECTIVE.
size_t meetings_of_warps(const std::string& cubin) {
  constexpr size_t words_per_instruction = 2;
  constexpr uint64_t opcode_bits = 0xfff, meeting = 0x348;
  elf_version(EV_CURRENT);
  const std::unique_ptr<Elf, int (*)(Elf*)> file(elf_memory(const_cast<char*>(cubin.data()), cubin.size()),
                                                 elf_end);
  size_t meetings = 0;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(file.get(), section)) != nullptr;) {
    if ((elf64_getshdr(section)->sh_flags & SHF_EXECINSTR) == 0) continue;
    const Elf_Data* const code = elf_rawdata(section, nullptr);
    REQUIRE(code != nullptr);
    const auto* const words = static_cast<const uint64_t*>(code->d_buf);
    for (size_t n = 0; n < code->d_size / sizeof *words; n += words_per_instruction) {
      if ((words[n] & opcode_bits) == meeting) ++meetings;
    }
  }
  return meetings;
}

}  // namespace

TEST_CASE("the compiler can prove that the built-in worker's warp is together wherever that matters") {
  if (!cuda::nvrtc_available() || cuda::nvrtc_version().major != 13) {
    return gyre_test::skip("NVRTC 13 is not installed");
  }
  const auto compiled = [](const std::string& text) {
    return cuda::compile_text(text, "votes", 90, {"--gpu-architecture=sm_90"}, {}).cubin;
  };
  CHECK(meetings_of_warps(compiled("__global__ void votes(unsigned* words) {\n"
                                   "  words[32] = __ballot_sync(~0u, words[threadIdx.x] == 1);\n"
                                   "}\n")) == 0);
  CHECK(meetings_of_warps(compiled("__global__ void votes(unsigned* words) {\n"
                                   "  const unsigned count = words[threadIdx.x];\n"
                                   "  for (unsigned i = 0; i < count; ++i)\n"
                                   "    words[32 + i] += __ballot_sync(~0u, words[i] == 1);\n"
                                   "}\n")) != 0);
  CHECK(meetings_of_warps(gyre_test::built_in_kernel().cubin) == 0);
}

TEST_CASE("a set is compiled as one that sends if its sources include what sends, and only then") {
  const auto sends = [](const ActorSet& actors) {
    const std::vector<std::string> options = cuda::program_without_toolkit(actors, 90, 32).options;
    return std::count(options.begin(), options.end(), "-DGYRE_SENDS") == 1;
  };
  CHECK(sends(ActorSet::of<gyre_relay::Sink>(gyre_relay_actors::sources)));
  CHECK(sends(ActorSet::from_source("#include <gyre/device/sending.hpp>\n", {"Teller"})));
  CHECK_FALSE(sends(ActorSet::from_source("#include <gyre/device/context.hpp>\n", {"Counter"})));
  CHECK_FALSE(sends(builtin_actors()));
}
TEST_CASE("the built-in actors compile for Hopper") {
  if (gyre_test::without_nvrtc()) return;
  check_compiles_for({90});
}

TEST_CASE("the built-in actors compile for every architecture", "[.slow]") {
  if (gyre_test::without_nvrtc()) return;
  check_compiles_for({75, 80, 86, 89, 90, 100, 120});
}

TEST_CASE("the tests' own actors compile, for a block of several warps", "[.slow]") {
  if (gyre_test::without_nvrtc()) return;
  CHECK(cuda::compile(gyre_test::probe_actors(), 90, 256).log.empty());
}

TEST_CASE("an actor whose messages have every kind of field compiles", "[.slow]") {
  if (gyre_test::without_nvrtc()) return;
  check_compiles(ActorSet::of<gyre_test::Mirror>(gyre_mirror_actors::sources), 64);
}

TEST_CASE("an actor that uses buffers compiles, for a block of several warps") {
  if (gyre_test::without_nvrtc()) return;
  check_compiles(gyre_test::abacus_actors(), 96);
}

TEST_CASE("an actor that uses buffers compiles, for one warp", "[.slow]") {
  if (gyre_test::without_nvrtc()) return;
  check_compiles(gyre_test::abacus_actors(), 32);
}

TEST_CASE("an actor that is rolled back and one that uses scratch memory compile") {
  if (gyre_test::without_nvrtc()) return;
  using namespace gyre_ledgers;
  const auto set = ActorSet::of<Undone, Picker>(gyre_ledger_actors::sources);
  const cuda::CompiledKernel kernel = cuda::compile(set, 90, 32);
  INFO(kernel.log);
  CHECK(kernel.log.empty());
  check_description(kernel, set.description());
}

TEST_CASE("actors that use shared scratch memory and multiply matrices compile", "[.slow]") {
  if (gyre_test::without_nvrtc()) return;
  using namespace gyre_handlers;
  const auto set = ActorSet::of<Filler, SideFiller, Multiplier>(gyre_handlers_actors::sources);
  for (const uint32_t block : {32u, 256u}) {
    const cuda::CompiledKernel kernel = cuda::compile(set, 90, block);
    INFO(kernel.log);
    CHECK(kernel.log.empty());
    check_description(kernel, set.description());
  }
}

TEST_CASE("actors that are rolled back, that ask ctx.ok() and that use scratch memory compile together",
          "[.slow]") {
  if (gyre_test::without_nvrtc()) return;
  using namespace gyre_ledgers;
  const auto set =
      ActorSet::of<Careful, Undone, LargeUndone, Careless, Picker, SidePicker>(gyre_ledger_actors::sources);
  for (const uint32_t block : {32u, 256u}) {
    const cuda::CompiledKernel kernel = cuda::compile(set, 90, block);
    INFO(kernel.log);
    CHECK(kernel.log.empty());
    check_description(kernel, set.description());
  }
}

TEST_CASE("an actor that cannot be rolled back does not compile, and the compiler says why") {
  if (!cuda::nvrtc_available()) return;
  const auto error = [](const std::string& members) {
    const std::string text = R"(#pragma once
#include <support/actors/probe.view.hpp>
struct Undone {
  static constexpr bool rollback_on_error = true;
)" + members + R"(
  GYRE_DEVICE void on(gyre::Context&, gyre_test::view::ProbeRequest::Reader, gyre_test::view::ProbeResponse::Builder) {}
};
)";
    return error_of(ActorSet::from_source(text, {"Undone"}, gyre_test::test_headers()));
  };
  CHECK(error("  uint64_t state[512] = {};") == "it compiled");
  CHECK(error("  uint64_t state[513] = {};").find("it may have 4,096 bytes at most") != std::string::npos);
  CHECK(error("  static constexpr bool side_by_side = true;")
            .find("rollback_on_error and side_by_side exclude each other") != std::string::npos);
  CHECK(error("  static constexpr uint32_t max_reply_bytes = 16;")
            .find("max_reply_bytes has no room for the reply's root") != std::string::npos);
}

TEST_CASE("an on_batch() that cannot be called does not compile, and the compiler says why") {
  if (!cuda::nvrtc_available()) return;
  const auto error = [](const std::string& members) {
    const std::string text = R"(#pragma once
#include <gyre/device/context.hpp>
#include <support/actors/probe.view.hpp>
using Request = gyre_test::view::ProbeRequest;
using Response = gyre_test::view::ProbeResponse;
struct Several {
  GYRE_DEVICE void on(gyre::Context&, Request::Reader, Response::Builder) {}
)" + members + R"(
};
)";
    return error_of(ActorSet::from_source(text, {"Several"}, gyre_test::test_headers()));
  };
  const std::string fits =
      "  GYRE_DEVICE void on_batch(gyre::Context&, gyre::Requests<Request>, gyre::Replies<Response>) {}\n";
  const auto says = [&](const std::string& members, const std::string& what) {
    return error(members).find(what) != std::string::npos;
  };
  CHECK(error(fits) == "it compiled");
  CHECK(says("  GYRE_DEVICE void on_batch(gyre::Context&, gyre::Requests<Request>) {}",
             "on_batch() fits none of the actor's handlers"));
  CHECK(says(fits + "  static constexpr bool side_by_side = true;",
             "on_batch() and side_by_side exclude each other"));
  CHECK(says(fits + "  static constexpr bool rollback_on_error = true;",
             "on_batch() and rollback_on_error exclude each other"));
  CHECK(says(fits + "  static constexpr uint32_t most_in_batch = 33;", "most_in_batch is 2 to 32 messages"));
}

TEST_CASE("NVRTC names actor and message of what handlers cannot send, and of broken protocols") {
  if (gyre_test::without_nvrtc()) return;
  std::vector<SourceText> headers;
  for (const SourceFile& file : gyre_rally_actors::sources.files) {
    headers.push_back({std::string(file.name), std::string(file.text)});
  }
  const std::string text = gyre_test::read_file(GYRE_TEST_MISTAKES);
  const auto error_of_mistake = [&](int number) {
    return error_of(ActorSet::from_source("#define MISTAKE " + std::to_string(number) + "\n" + text,
                                          {"gyre_mistakes::Sender", "gyre_mistakes::Keeper"}, headers));
  };
  CHECK(error_of_mistake(0) == "it compiled");
  // What stands behind each mistake, as in mistakes_test.sh.
  const auto behind = [](const std::string& line, const std::string& mark) {
    const size_t at = line.find(mark);
    return at == std::string::npos ? std::string() : line.substr(at + mark.size());
  };
  int number = 0, mistakes = 0;
  std::string error;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (const std::string digits = behind(line, "if MISTAKE == "); !digits.empty())
      number = std::stoi(digits);
    if (std::string names = behind(line, "// names: "); !names.empty()) {
      ++mistakes;
      error = error_of_mistake(number);
      INFO("mistake " << number << ":\n" << error);
      const size_t comma = names.find(", ");
      CHECK(error.find(names.substr(0, comma)) != std::string::npos);
      CHECK(error.find(names.substr(comma + 2)) != std::string::npos);
    }
    if (const std::string says = behind(line, "// says: "); !says.empty()) {
      INFO("mistake " << number << ":\n" << error);
      CHECK(error.find(says) != std::string::npos);
    }
  }
  CHECK(mistakes == 16);
}

TEST_CASE("actors that know each other by their protocols compile", "[.slow]") {
  if (gyre_test::without_nvrtc()) return;
  const auto set = ActorSet::of<gyre_rally::Ping, gyre_rally::Pong>(gyre_rally_actors::sources);
  for (const uint32_t block : {32u, 256u}) {
    const cuda::CompiledKernel kernel = cuda::compile(set, 90, block);
    INFO(kernel.log);
    CHECK(kernel.log.empty());
    check_description(kernel, set.description());
  }
}

TEST_CASE("a kernel that does not compile is an error with the compiler's own lines") {
  if (gyre_test::without_nvrtc()) return;
  try {
    cuda::compile_text("__global__ void broken(int* p) { *p = undeclared; }", "broken", 90,
                       {"--gpu-architecture=sm_90"}, {});
    FAIL("it compiled");
  } catch (const Error& error) {
    const std::string text = error.what();
    INFO(text);
    CHECK(text.find("broken") != std::string::npos);
    CHECK(text.find("9.0") != std::string::npos);
    CHECK(text.find("identifier \"undeclared\" is undefined") != std::string::npos);
    CHECK(text.find("gyre_kernel.cu(1)") != std::string::npos);
  }
}

TEST_CASE("an error names the lines of embedded source that it is about, and those that led there") {
  if (gyre_test::without_nvrtc()) return;
  const std::string text = R"(#pragma once
#include <gyre/device/context.hpp>
#include <helper.hpp>
#include <support/actors/probe.view.hpp>
struct Broken {
  GYRE_DEVICE void on(gyre::Context&, gyre_test::view::ProbeNote::Reader in) {
    half(in);
  }
};
)";
  auto headers = gyre_test::test_headers();
  headers.push_back({"helper.hpp", "template <class T>\nvoid half(T x) {\n\tx.no_such_member();\n}\n"});
  const std::string error = error_of(ActorSet::from_source(text, {"Broken"}, headers));
  INFO(error);
  CHECK(error.find("compiling gyre::worker_kernel<Broken> for compute capability 9.0") != std::string::npos);
  CHECK(error.find("no_such_member") < error.find("The source lines it names:"));
  CHECK(error.find("\nhelper.hpp:3: x.no_such_member();\n") != std::string::npos);
  CHECK(error.find("\nactors_from_source.hpp:7: half(in);\n") != std::string::npos);
}

TEST_CASE("source lines are found in whatever the log calls a file, each once") {
  const SourceFile headers[] = {{"a(1).hpp", "first\n  second\n"}, {"b.hpp", "only"}};
  const std::string log =
      "a(1).hpp(2): error: bad\n    second\n    ^\n          detected during:\n"
      "            instantiation of \"f\" at line 1 of b.hpp\n"
      "            instantiation of \"g\" at line 1 of \"gyre_kernel.cu\"\n"
      "a(1).hpp(2): error: bad again\nelsewhere.hpp(3): error: not ours\nb.hpp(9): error: no such line\n"
      "b.hpp(): nothing\nptxas fatal : (C7600) at line of x\n";
  CHECK(cuda::source_lines(log, "#include <b.hpp>\n", headers) ==
        "a(1).hpp:2: second\nb.hpp:1: only\ngyre_kernel.cu:1: #include <b.hpp>\n");
  CHECK(cuda::source_lines("", "text", headers).empty());
}

TEST_CASE("an architecture that NVRTC does not know is refused with those that it knows") {
  if (gyre_test::without_nvrtc()) return;
  try {
    cuda::compile(builtin_actors(), 52, 32);
    FAIL("it compiled");
  } catch (const Error& error) {
    const std::string text = error.what();
    INFO(text);
    CHECK(text.find("compute capability 5.2") != std::string::npos);
    CHECK(text.find(" 9.0") != std::string::npos);
  }
}

TEST_CASE("actors given as source text compile, and the module describes them") {
  if (gyre_test::without_nvrtc()) return;
  const ActorSet actors = gyre_test::counter_from_source();
  const cuda::CompiledKernel kernel = cuda::compile(actors, 90, 64);
  CHECK(kernel.log.empty());
  const HandlerTypes ask{gyre_test::view::ProbeRequest::type_id, gyre_test::view::ProbeResponse::type_id};
  const HandlerTypes tell{gyre_test::view::ProbeNote::type_id, 0};
  check_description(kernel, {{{16, ~0u, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {ask, tell}, {0, 0}},
                             {{0, 12, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {ask}, {0}}});
}

TEST_CASE("actors that send compile, and the module says how many messages a handler may send", "[.slow]") {
  if (gyre_test::without_nvrtc()) return;
  const auto actors = ActorSet::of<gyre_relay::Relay, gyre_relay::Sink>(gyre_relay_actors::sources);
  CHECK(actors.most_sent() == gyre_relay::Relay::most);
  // By several warps; sending_on_fake_cuda_tests compiles them by one, too.
  check_that_they_compile(actors, 128);
  const std::string problem = cuda::grid_problem(actors.grid_scoped(), {});
  CHECK(problem.find("gyre::Sending") != problem.npos);
}

TEST_CASE("actors that ask compile, and the module says so and how many replies they take", "[asking]") {
  if (gyre_test::without_nvrtc()) return;
  const auto actors = ActorSet::of<gyre_asking::Bank, gyre_asking::Cell>(gyre_asking_actors::sources);
  CHECK(actors.rights().asks);
  CHECK(actors.description()[0].reply_handlers == 2);
  CHECK_FALSE(actors.description()[1].rights().asks);
  check_that_they_compile(actors, 128);
  Options few{.workers = 2}, many{.workers = 3};
  // Each worker has a reply ring, and a table of calls.
  const auto silent = ActorSet::of<gyre_relay::Relay, gyre_relay::Sink>(gyre_relay_actors::sources);
  const uint64_t more = OpenCalls::capacity * (few.slot_bytes + sizeof(OpenCall));
  CHECK(actors.mail_bytes(few) >= silent.mail_bytes(few) + 2 * more);
  CHECK(actors.mail_bytes(many) >= silent.mail_bytes(many) + 3 * more);
}

TEST_CASE("actors that tell the host compile, and the module says so", "[.slow]") {
  if (gyre_test::without_nvrtc()) return;
  using namespace gyre_telling;
  const auto actors = ActorSet::of<Asker, Silent>(gyre_telling_actors::sources);
  check_that_they_compile(actors, 32);
  const auto speakers = ActorSet::of<Speaker, Chorus>(gyre_telling_actors::sources);
  CHECK(speakers.rights().tells_host);
  CHECK(speakers.description()[0].rights().tells_host);
  CHECK_FALSE(speakers.description()[1].rights().tells_host);
  CHECK_FALSE(ActorSet::of<Silent>(gyre_telling_actors::sources).rights().tells_host);
}

namespace {
// On a block of several warps, which has what a CPU worker has.
template <class... Actors>
void check_message_bytes(const ActorSources& sources) {
  const ActorSet actors = ActorSet::of<Actors...>(sources);
  for (const RingShape shape : {RingShape{64, 64, 1}, RingShape{256, 512, 1}}) {
    for (const uint32_t workers : {1, 33, 528}) {
      const uint32_t words = Worker<Actors...>::message_memory(shape).words() +
                             Worker<Actors...>::staging_layout(shape, workers).words();
      CHECK(cuda::message_bytes(shape, workers, false, actors.description()) == words * sizeof(uint32_t));
    }
  }
}
}  // namespace

TEST_CASE("a launch reserves as much shared memory for messages as a worker lays out there") {
  check_message_bytes<gyre_relay::Relay, gyre_relay::Sink>(gyre_relay_actors::sources);
  check_message_bytes<gyre_asking::Cell, gyre_asking::Router, gyre_asking::Keeper>(
      gyre_asking_actors::sources);
  check_message_bytes<gyre_telling::Speaker, gyre_telling::Chorus>(gyre_telling_actors::sources);
  check_message_bytes<gyre_telling::Asker>(gyre_telling_actors::sources);
  check_message_bytes<gyre_clock::Clock, gyre_clock::Bell, gyre_clock::Metronome>(gyre_clock_actors::sources);
  check_message_bytes<gyre_clock::Bell, gyre_clock::ClockThatAsks>(gyre_clock_actors::sources);
  check_message_bytes<gyre_crowd::Caller, gyre_crowd::Hearer, gyre_crowd::Other>(gyre_crowd_actors::sources);
  check_message_bytes<gyre_bodies::Sender, gyre_bodies::Store, gyre_bodies::Porter, gyre_bodies::Modest>(
      gyre_bodies_actors::sources);
  check_message_bytes<gyre_bodies::Modest, gyre_bodies::Store>(gyre_bodies_actors::sources);
}

TEST_CASE("actors that set timers compile, and the module says so", "[.slow]") {
  if (gyre_test::without_nvrtc()) return;
  using namespace gyre_clock;
  const auto actors = ActorSet::of<Bell, Metronome>(gyre_clock_actors::sources);
  check_that_they_compile(actors, 32);
  CHECK(actors.rights().sets_timers);
  CHECK(actors.description()[1].rights().sets_timers);
  CHECK_FALSE(actors.description()[0].rights().sets_timers);
  // A place for each timer, and one for its message.
  const uint64_t bytes = MailLayout::timers * (MailLayout::timer_bytes + uint64_t(64));
  const auto silent = ActorSet::of<Bell>(gyre_clock_actors::sources);
  CHECK(actors.mail_bytes({.workers = 2}) >= silent.mail_bytes({.workers = 2}) + 2 * bytes);
}

TEST_CASE("actors that send to many compile, and the module says so", "[.slow]") {
  if (gyre_test::without_nvrtc()) return;
  using namespace gyre_crowd;
  const auto actors = ActorSet::of<Chatter, Other>(gyre_crowd_actors::sources);
  check_that_they_compile(actors, 32);
  CHECK(actors.rights().sends_to_many);
  CHECK(actors.description()[0].rights().sends_to_many);
  CHECK_FALSE(actors.description()[1].rights().sends_to_many);
  // A table of subscriptions for each worker, and a key for each actor.
  const auto others = ActorSet::of<Other>(gyre_crowd_actors::sources);
  const auto clocks = ActorSet::of<gyre_clock::Bell>(gyre_clock_actors::sources);
  CHECK_FALSE(others.rights().sends_to_many);
  const uint64_t bytes = uint64_t(MailLayout::subscriptions) * MailLayout::subscription_bytes;
  CHECK(actors.mail_bytes({.workers = 2}) >= clocks.mail_bytes({.workers = 2}) + 2 * bytes);
  constexpr uint32_t room = 1000;
  const uint64_t tables = ActorTables<Chatter, Other>::bytes(room, true);
  CHECK(actors.actor_bytes(room) == tables);
  CHECK(tables >= ActorTables<Chatter, Other>::bytes(room) + 2 * room * sizeof(uint64_t) - 2 * 256);
}

TEST_CASE("actors that send large messages compile, and the module says so", "[.slow]") {
  if (gyre_test::without_nvrtc()) return;
  using namespace gyre_bodies;
  const auto actors = ActorSet::of<Porter, Store>(gyre_bodies_actors::sources);
  check_that_they_compile(actors, 32);
  CHECK(actors.rights().sends_large);
  CHECK(actors.description()[0].rights().sends_large);
  CHECK_FALSE(actors.description()[1].rights().sends_large);
}

TEST_CASE("files that lie in the current folder are not part of a program") {
  if (gyre_test::without_nvrtc()) return;
  const fs::path stray = "gyre_stray_header_of_a_test.hpp";
  gyre_test::write_file(stray, "#define STRAY 1\n");
  for (const char* const include :
       {"#include \"gyre_stray_header_of_a_test.hpp\"\n", "#include <gyre_stray_header_of_a_test.hpp>\n"}) {
    const std::string error =
        error_of(gyre_test::counter_from_source(include + std::string(gyre_test::counter_text)));
    INFO(error);
    CHECK(error.find("could not open source file") != std::string::npos);
  }
  fs::remove(stray);
}

TEST_CASE("a program that was compiled before comes from the disk, and is compiled anew where it is damaged",
          "[kept]") {
  if (gyre_test::without_nvrtc()) return;
  const gyre_test::TemporaryFolder folder;
  const gyre_test::Environment cache("GYRE_CACHE_DIR", folder.path().c_str());
  const ActorSet actors = gyre_test::counter_from_source();
  const cuda::CompileOptions cached{.cache = true};
  const cuda::CompiledKernel first = cuda::compile(actors, 90, 32, cached);
  CHECK_FALSE(first.from_cache);
  const cuda::CompiledKernel again = cuda::compile(gyre_test::counter_from_source(), 90, 32, cached);
  CHECK(again.from_cache);
  CHECK(again.cubin == first.cubin);
  CHECK(again.lowered_name == first.lowered_name);
  CHECK(again.lowered_description == first.lowered_description);
  CHECK_FALSE(cuda::compile(actors, 90, 32).from_cache);

  for (const fs::directory_entry& file : fs::directory_iterator(folder.path())) {
    fs::resize_file(file.path(), fs::file_size(file.path()) / 2);
  }
  CHECK_FALSE(cuda::compile(actors, 90, 32, cached).from_cache);
  CHECK(cuda::compile(actors, 90, 32, cached).from_cache);
}

TEST_CASE("a cache that cannot be used is no error", "[kept]") {
  if (gyre_test::without_nvrtc()) return;
  const gyre_test::TemporaryFolder folder;
  gyre_test::write_file(folder.path() / "file", "text");
  const gyre_test::Environment cache("GYRE_CACHE_DIR", (folder.path() / "file").c_str());
  const cuda::CompiledKernel kernel =
      cuda::compile(gyre_test::counter_from_source(), 90, 32, {.cache = true});
  CHECK_FALSE(kernel.from_cache);
  CHECK_FALSE(kernel.cubin.empty());
}

TEST_CASE(
    "a program is kept on request: what it was compiled from, PTX and cubin, and why it did not compile",
    "[kept]") {
  if (gyre_test::without_nvrtc()) return;
  const gyre_test::TemporaryFolder folder;
  const gyre_test::Environment cache("GYRE_CACHE_DIR", (folder.path() / "cache").c_str());
  const fs::path kept = folder.path() / "not" / "there yet";
  const ActorSet actors = gyre_test::counter_from_source();
  const cuda::CompileOptions options{.cache = true, .keep_program = kept.string()};
  for (int launch = 0; launch < 2; ++launch) {  // from the cache there would be no PTX
    const cuda::CompiledKernel kernel = cuda::compile(actors, 90, 32, options);
    CHECK_FALSE(kernel.from_cache);
    CHECK(gyre_test::read_file(kept / "kernel.cubin") == kernel.cubin);
    const std::string ptx = gyre_test::read_file(kept / "kernel.ptx");
    CHECK(ptx.find(".target sm_90") != std::string::npos);
    CHECK(ptx.find(".entry " + kernel.lowered_name) != std::string::npos);
    CHECK(gyre_test::read_file(kept / "kernel.cu") == cuda::program_of(actors, 90, 32).text);
    CHECK(gyre_test::read_file(kept / "include/actors_from_source.hpp") == gyre_test::counter_text);
    const std::string said = gyre_test::read_file(kept / "options.txt");
    CHECK(said.find("--gpu-architecture=sm_90\n") == 0);
    CHECK(said.find(kernel.lowered_name) != std::string::npos);
    CHECK(gyre_test::read_file(kept / "compile.log").empty());
  }
  const ActorSet broken =
      gyre_test::counter_from_source(std::string(gyre_test::counter_text) + "#error stop here\n");
  CHECK_THROWS_AS(cuda::compile(broken, 90, 32, options), Error);
  CHECK(gyre_test::read_file(kept / "compile.log").find("stop here") != std::string::npos);
  CHECK_FALSE(fs::exists(kept / "kernel.cubin"));
  CHECK_FALSE(fs::exists(kept / "kernel.ptx"));

  gyre_test::write_file(folder.path() / "file", "text");
  try {
    cuda::compile(actors, 90, 32, {.keep_program = (folder.path() / "file").string()});
    FAIL("it was kept in a file");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("--keep-program") != std::string::npos);
  }
}

TEST_CASE("a signal that comes while NVRTC compiles reaches the program's own handler", "[kept]") {
  if (gyre_test::without_nvrtc()) return;
  static std::atomic<int> caught{0};
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) { ++caught; };
  sigaction(SIGINT, &action, &before);
  std::atomic<bool> compiled{false};
  const pthread_t compiler = pthread_self();
  std::thread sender([&] {
    while (!compiled) {
      pthread_kill(compiler, SIGINT);
      std::this_thread::yield();
    }
  });
  CHECK_FALSE(cuda::compile(gyre_test::counter_from_source(), 90, 32).cubin.empty());
  compiled = true;
  sender.join();
  sigaction(SIGINT, &before, nullptr);
  CHECK(caught > 0);
}

TEST_CASE("the program pins floating point and includes every actor header") {
  const cuda::Program program = cuda::program_of(builtin_actors(), 90, 64);
  CHECK(program.text.find("#include <gyre/device/builtin/echo.hpp>") != std::string::npos);
  CHECK(program.text.find("#include <gyre/device/builtin/vector_add.hpp>") != std::string::npos);
  for (const char* const option : {"--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true",
                                   "--gpu-architecture=sm_90", "-DGYRE_BLOCK=64", "--no-source-include"}) {
    CHECK(std::count(program.options.begin(), program.options.end(), option) == 1);
  }
}

TEST_CASE("without a GPU the CUDA engine says what is missing, and nothing falls back in silence") {
  if (cuda::Driver::device_count() > 0) return gyre_test::skip("a CUDA device is here");
  try {
    Runtime::launch(builtin_actors(), {.engine = EngineKind::cuda});
    FAIL("it launched");
  } catch (const EngineUnavailable& error) {
    CHECK(std::string(error.what()).find("CUDA") != std::string::npos);
    CHECK(std::string(error.what()).find("--engine cpu") != std::string::npos);
  }
  CHECK(Runtime::launch(builtin_actors(), {.engine = EngineKind::automatic}).engine() == EngineKind::cpu);
}
