// What a result says about how it was made.
#include "bench/machine.hpp"

#include "gyre/runtime/builtin_actors.hpp"
#include "support/catch.hpp"

namespace {

using namespace gyre::bench;

TEST_CASE("a command is written as a shell reads it, its program without a folder") {
  CHECK(command_text({"/somewhere/bin/gyre-bench", "rtt", "--json", "a/b.json"}) ==
        "gyre-bench rtt --json a/b.json");
  CHECK(command_text({"gyre-bench", "two words", "", "it's", "$HOME", "a\nb"}) ==
        "gyre-bench 'two words' '' 'it'\\''s' '$HOME' 'a\nb'");
}

TEST_CASE("a result has the commit of the build and the command of the process") {
  const Machine machine = machine_of({.engine = gyre::EngineKind::cpu});
  const gyre::tools::Json json = to_json(machine);
  CHECK(json["commit"].as_string() == gyre::tools::build_commit().id);
  CHECK(json["dirty"] == gyre::tools::Json(gyre::tools::build_commit().dirty));
  CHECK(json["command"].as_string().starts_with("bench_tests"));
}

TEST_CASE("a build that was changed after its commit says so") {
  CHECK(gyre::tools::BuildCommit{"0123456789ab", false}.text() == "0123456789ab");
  CHECK(gyre::tools::BuildCommit{"0123456789ab", true}.text() == "0123456789ab and changes");
}

}  // namespace
