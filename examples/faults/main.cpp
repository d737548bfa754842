// What the sender sees of a handler's fault: example_faults none|null|trap|check|endless|compile [cpu].
// docs/how-to/debugging.md says what each appears like. On CPU threads null and trap kill the process, as in
// any program.
#include <faulty_actors_sources.hpp>
#include <gyre/gyre.hpp>

#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <faults/faulty.hpp>
#include <faults/faulty.official.hpp>

using namespace faults;
using namespace std::chrono_literals;

namespace {

gyre::ActorSet actors(bool broken) {
  if (!broken) return gyre::ActorSet::of<Faulty>(faulty_actors::sources);
  const std::string text =
      "#include <faults/faulty.view.hpp>\n"
      "struct Broken {\n"
      "  GYRE_DEVICE void on(gyre::Context& ctx, faults::view::Provoke::Reader in) {\n"
      "    ctx.fail(in.number_of_faults());\n"
      "  }\n"
      "};\n";
  std::vector<gyre::SourceText> headers;
  for (const gyre::SourceFile& file : faulty_actors::sources.files) {
    headers.push_back({std::string(file.name), std::string(file.text)});
  }
  return gyre::ActorSet::from_source(text, {"Broken"}, headers);
}

int run(const std::string& what, bool on_cpu) {
  const std::map<std::string, Fault> faults = {{"none", Fault::NONE},       {"null", Fault::NULL_POINTER},
                                               {"trap", Fault::TRAP},       {"check", Fault::CHECK},
                                               {"endless", Fault::ENDLESS}, {"compile", Fault::NONE}};
  if (faults.count(what) == 0) {
    std::fprintf(stderr, "use: example_faults none|null|trap|check|endless|compile [cpu]\n");
    return 2;
  }
  gyre::Options options;
  if (on_cpu) options.engine = gyre::EngineKind::cpu;
  gyre::Runtime runtime = gyre::Runtime::launch(actors(what == "compile"), options);
  gyre::Client client = runtime.client();
  const gyre::Address<Faulty> faulty{.key = 3};
  const auto ask = [&](Fault fault) {
    return client.ask<Provoke>(
        faulty, [&](Provoke::Builder request) { request.setFault(fault); }, 900ms);
  };
  const auto print = [](const char* which, gyre::Future<gyre::Reply<Survived>> future) {
    const auto begin = std::chrono::steady_clock::now();
    const auto reply = future.get();
    const auto ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    if (reply) {
      std::printf("%s: survived %lu times (%.0f ms)\n", which, reply.value()->getTimes(), ms);
    } else {
      std::printf("%s, after %.0f ms: %s\n", which, ms, reply.error().message().c_str());
    }
  };

  print("before", ask(Fault::NONE));
  auto first = ask(faults.at(what));
  auto second = ask(Fault::NONE);
  print("the fault", std::move(first));
  print("behind it", std::move(second));
  print("afterwards", ask(Fault::NONE));
  if (!runtime.failure().empty()) std::printf("Runtime::failure(): %s\n", runtime.failure().c_str());
  const gyre::Termination report = runtime.terminate(500ms);
  std::printf("terminated in %.0f ms, state %s%s; the books %s\n", report.terminate_ms,
              gyre::name(runtime.state()).data(), report.worker_stuck ? ", a worker is stuck" : "",
              report.books.balanced() ? "balance" : "do not balance");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "", argc > 2 && std::string(argv[2]) == "cpu");
  } catch (const gyre::Error& error) {
    std::printf("gyre::Error: %s\n", error.what());
    return 1;
  }
}
