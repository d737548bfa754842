// The programs' JSON, patterns and options: what they keep of the libraries behind them.
#include "json.hpp"

#include <gyre/bridge/errors/error.hpp>

#include "command_line.hpp"
#include "common_options.hpp"
#include "patterns.hpp"
#include "support/catch.hpp"

using namespace gyre;
using namespace gyre::tools;
using gyre_test::containing;

TEST_CASE("a document is written as it was built: pairs that begin with a text are an object") {
  Json document = {{"name", "rtt"}, {"checked", true}, {"p50", 1.5}, {"least", -3}, {"none", nullptr}};
  document["most"] = uint64_t(18446744073709551615u);
  document["list"] = {1, 2.5, "three"};
  document["names"] = std::vector<std::string>{"a", "b\"\n"};
  document["rows"].push_back({{"cpu", 7}});
  document["rows"].back()["more"] = Json::array();
  CHECK(document.text() ==
        R"({"checked":true,"least":-3,"list":[1,2.5,"three"],"most":18446744073709551615,"name":"rtt",)"
        R"("names":["a","b\"\n"],"none":null,"p50":1.5,"rows":[{"cpu":7,"more":[]}]})");
  Json nested;
  nested["a"].push_back(1);
  CHECK(nested.text(2) == "{\n  \"a\": [\n    1\n  ]\n}");
  CHECK(Json::parse(document.text()) == document);
}

TEST_CASE("values are read as what they are, and a wrong kind, key or index is an error with the value") {
  const Json document = Json::parse(R"({"n": 7, "x": 2.0, "text": "so", "list": [1, 2]})");
  CHECK(document["n"].as_uint64() == 7);
  CHECK(document["n"].as_double() == 7);
  CHECK(document["x"] == 2);
  CHECK(document["text"].as_string() == "so");
  CHECK(document["list"].elements().size() == 2);
  CHECK(document["list"][1] == 2);
  CHECK(document.has("n"));
  CHECK_FALSE(document.has("m"));
  CHECK_THROWS_WITH(document["m"], containing("has no key m"));
  CHECK_THROWS_WITH(document["list"][2], containing("[1,2] has no element 2"));
  CHECK_THROWS_WITH(document["text"].as_uint64(), containing("\"so\" is no whole number"));
  CHECK_THROWS_AS(document["x"].as_uint64(), Error);
  CHECK(Json::parse("{\"n\": ").empty());
  CHECK_FALSE(Json::parse("printed before {}").has("n"));
}

TEST_CASE("a copy of a value is its own, and an object takes over another's keys") {
  Json first = {{"a", 1}};
  Json second = first;
  second.update({{"a", 2}, {"b", 3}});
  CHECK(first.text() == R"({"a":1})");
  CHECK(second.text() == R"({"a":2,"b":3})");
}

TEST_CASE("patterns give the match and its groups") {
  CHECK(search("driver 580.65.06 of", "([0-9]+)[.]([0-9]+)") == Found{"580.65", "580", "65"});
  CHECK(search("none", "[0-9]").empty());
  CHECK(match("nvidia0", "nvidia[0-9]+") == Found{"nvidia0"});
  CHECK(match("nvidiactl", "nvidia[0-9]+").empty());
  CHECK(replace_all("a1b22", "[0-9]+", "-") == "a-b-");
  CHECK(read_architecture("--arch", "compute_75") == 75);
  CHECK_THROWS_WITH(read_architecture("--arch", "sm_9"), "reading --arch: sm_9 must be like sm_90");
}

TEST_CASE("options set their variables, and what is outside their range is wrong usage") {
  enum class Colour { red = 3, blue = 5 };
  const auto parse = [](std::vector<const char*> arguments, auto&& look) {
    Program program("A program.", "test");
    const ProgramCommand command = program.command().add_subcommand("run", "Runs.");
    uint32_t rows = 4;
    std::vector<std::string> names;
    Colour colour = Colour::red;
    bool flag = false;
    std::string chosen;
    command.add_option("--rows", rows, "rows").range(1u, 9u);
    command.add_option("--names", names, "names").separated_by(',');
    command.add_choice("--colour", colour,
                       std::map<std::string, Colour>{{"red", Colour::red}, {"blue", Colour::blue}}, "colour");
    command.add_flag("--flag", flag, "flag");
    command.when_chosen([&] { chosen = command.count("--rows") != 0 ? "with rows" : "without"; });
    arguments.insert(arguments.begin(), "test");
    const auto exit_code = program.parse(int(arguments.size()), const_cast<char**>(arguments.data()));
    look(rows, names, colour, flag, chosen);
    return exit_code.value_or(-1);
  };
  const auto ignore = [](auto&&...) {};
  CHECK(parse({"run", "--rows", "7", "--names", "a,b", "--colour", "blue", "--flag"},
              [](uint32_t rows, const auto& names, Colour colour, bool flag, const auto& chosen) {
                CHECK(rows == 7);
                CHECK(names == std::vector<std::string>{"a", "b"});
                CHECK(colour == Colour::blue);
                CHECK(flag);
                CHECK(chosen == "with rows");
              }) == -1);
  CHECK(parse({"run"}, [](uint32_t rows, auto&&, Colour colour, bool, const auto& chosen) {
          CHECK(rows == 4);
          CHECK(colour == Colour::red);
          CHECK(chosen == "without");
        }) == -1);
  CHECK(parse({"run", "--rows", "10"}, ignore) == bad_usage);
  CHECK(parse({"run", "--colour", "green"}, ignore) == bad_usage);
  CHECK(parse({}, ignore) == bad_usage);
}
