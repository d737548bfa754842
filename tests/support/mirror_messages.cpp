// mirror_messages [--engine auto|cuda|cpu] [--packed] [FILE …]: sends each message in each FILE to a Mirror,
// and writes the replies to FILE.reply; without a FILE, from standard input to standard output. Messages lie
// one behind another, as `capnp encode` writes them; so do the replies.
#include <gyre_mirror_actors_sources.hpp>

#include "support/actors/mirror.hpp"
#include "support/message_files.hpp"
#include "tests/messages/kinds.official.hpp"

using namespace gyre_test;

int main(int argc, char** argv) {
  return run_reporting([&] {
    const Arguments arguments(argc, argv);
    auto runtime =
        gyre::Runtime::launch(gyre::ActorSet::of<Mirror>(gyre_mirror_actors::sources), arguments.options);
    const auto mirrored = [&](std::istream& in) {
      return answers<gyre::test::Kinds>(runtime.client(), gyre::Address<Mirror>{}, read_all(in),
                                        arguments.encoding);
    };
    if (arguments.others.empty()) write_all(std::cout, mirrored(std::cin));
    for (const std::string& name : arguments.others) {
      std::ifstream in(name, std::ios::binary);
      if (!in) throw std::invalid_argument("the file " + name + " cannot be read");
      std::ofstream out(name + ".reply", std::ios::binary);
      write_all(out, mirrored(in));
    }
    return runtime.terminate().books.balanced() ? 0 : 1;
  });
}
