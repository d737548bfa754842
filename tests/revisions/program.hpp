// What the two programs do, each with its own schema and its own actor:
//   revision_N request                      writes orders
//   revision_N serve [--engine NAME]        reads orders, asks its Clerk, writes the receipts
//   revision_N check M                      reads the receipts of the orders that it wrote, served by
//   revision_M
#pragma once

#include <capnp/serialize.h>

#include "support/message_files.hpp"

namespace gyre_revisions {

/// What the receipts did not say as they should.
class Checks {
 public:
  template <class A, class B>
  void equal(const char* what, const A& expected, const B& seen) {
    ++made_;
    if (expected == seen) return;
    failed_ = true;
    std::cerr << "receipt " << receipt << ": " << what << ": expected " << kj::str(expected).cStr()
              << ", seen " << kj::str(seen).cStr() << "\n";
  }
  int result() const {
    std::cerr << made_ << " checks" << (failed_ ? ", some of them failed" : "") << "\n";
    return failed_ || made_ == 0 ? 1 : 0;
  }

  uint32_t receipt = 0;  // the one that is being looked at

 private:
  uint32_t made_ = 0;
  bool failed_ = false;
};

/// fill(Order::Builder, i) makes one of the `count` orders, check(Checks&, Receipt::Reader, i, revision)
/// looks at its receipt from that revision.
template <class Order, class Receipt, class Clerk, class Fill, class Check>
int run_program(int argc, char** argv, const gyre::ActorSources& sources, uint32_t count, Fill fill,
                Check check) {
  return gyre_test::run_reporting([&] {
    const gyre_test::Arguments arguments(argc, argv);
    const auto& words = arguments.others;
    const auto is = [&](const char* word, size_t number) {
      return words.size() == number && words[0] == word;
    };
    if (is("request", 1)) {
      for (uint32_t i = 0; i < count; ++i) {
        capnp::MallocMessageBuilder message;
        fill(message.initRoot<Order>(), i);
        capnp::writeMessageToFd(1, message);
      }
      return 0;
    }
    if (is("serve", 1)) {
      auto runtime = gyre::Runtime::launch(gyre::ActorSet::of<Clerk>(sources), arguments.options);
      gyre_test::write_all(std::cout,
                           gyre_test::answers<Order>(runtime.client(), gyre::Address<Clerk>{},
                                                     gyre_test::read_all(std::cin), gyre::Encoding::stream));
      return runtime.terminate().books.balanced() ? 0 : 1;
    }
    if (is("check", 2)) {
      Checks checks;
      const auto receipts = gyre_test::read_all(std::cin);
      gyre_test::for_each_message(receipts, gyre::Encoding::stream, [&](std::span<const std::byte> bytes) {
        kj::ArrayInputStream in({reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()});
        capnp::InputStreamMessageReader message(in);
        if (checks.receipt < count)
          check(checks, message.getRoot<Receipt>(), checks.receipt, std::stoi(words[1]));
        ++checks.receipt;
      });
      checks.equal("receipts", count, checks.receipt);
      return checks.result();
    }
    throw std::invalid_argument("usage: request | serve [--engine NAME] | check REVISION");
  });
}

}  // namespace gyre_revisions
