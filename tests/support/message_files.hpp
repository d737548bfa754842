// What the tests' programs share that answer messages out of files: arguments, bytes, and the messages in
// them.
#pragma once

#include <capnp/serialize-packed.h>
#include <capnp/serialize.h>
#include <kj/io.h>
#include <gyre/gyre.hpp>

#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace gyre_test {

using Bytes = std::vector<std::byte>;

/// `--engine auto|cuda|cpu` and `--packed`, wherever they are, and the other arguments.
struct Arguments {
  gyre::Options options{.slots = 16, .timeout = std::chrono::seconds(60)};
  gyre::Encoding encoding = gyre::Encoding::stream;
  std::vector<std::string> others;

  Arguments(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string argument = argv[i];
      if (argument == "--packed") {
        encoding = gyre::Encoding::packed;
      } else if (argument == "--engine" && i + 1 < argc) {
        options.engine = engine_named(argv[++i]);
      } else if (argument.starts_with("--")) {
        throw std::invalid_argument("unknown option " + argument + "; there are --engine NAME and --packed");
      } else {
        others.push_back(argument);
      }
    }
  }

 private:
  static gyre::EngineKind engine_named(const std::string& name) {
    using enum gyre::EngineKind;
    for (const auto kind : {automatic, cuda, cpu}) {
      if (name == gyre::name(kind)) return kind;
    }
    throw std::invalid_argument("unknown engine " + name + "; there are auto, cuda and cpu");
  }
};

/// Runs a program's body; what it throws becomes a message and an exit code: 2 for bad usage, 3 where the
/// engine is not available, 1 otherwise.
inline int run_reporting(const std::function<int()>& body) {
  const auto report = [](const char* what, int code) {
    std::cerr << what << "\n";
    return code;
  };
  try {
    return body();
  } catch (const std::invalid_argument& error) {
    return report(error.what(), 2);
  } catch (const gyre::EngineUnavailable& error) {
    return report(error.what(), 3);
  } catch (const kj::Exception& error) {
    return report(error.getDescription().cStr(), 1);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
}

inline Bytes read_all(std::istream& in) {
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const auto* const begin = reinterpret_cast<const std::byte*>(bytes.data());
  return {begin, begin + bytes.size()};
}
inline void write_all(std::ostream& out, const Bytes& bytes) {
  out.write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  if (!out.flush()) throw std::runtime_error("the output cannot be written");
}

/// Calls `use(bytes)` for each of the messages that lie one behind another, with its own
/// bytes.
template <class Use>
void for_each_message(const Bytes& all, gyre::Encoding encoding, Use use) {
  std::span<const std::byte> rest = all;
  while (!rest.empty()) {
    const kj::ArrayPtr<const kj::byte> bytes(reinterpret_cast<const kj::byte*>(rest.data()), rest.size());
    kj::ArrayInputStream in(bytes);
    {
      capnp::ReaderOptions options;
      options.traversalLimitInWords = ~uint64_t(0) >> 1;
      if (encoding == gyre::Encoding::packed) {
        capnp::PackedMessageReader message(in, options);
      } else {
        capnp::InputStreamMessageReader message(in, options);
      }
    }
    const size_t size = rest.size() - in.tryGetReadBuffer().size();
    use(rest.first(size));
    rest = rest.subspan(size);
  }
}

/// The replies of the actor at `to` to the messages in `all`, one behind another, in the same encoding.
template <class Request, class Actor>
Bytes answers(gyre::Client client, gyre::Address<Actor> to, const Bytes& all, gyre::Encoding encoding) {
  Bytes replies;
  for_each_message(all, encoding, [&](std::span<const std::byte> bytes) {
    const gyre::Encoded request{bytes, encoding};
    const auto reply = client.ask<Request>(to, request, gyre::AskOptions{{}, 4 << 20}).get();
    if (!reply) throw std::runtime_error(reply.error().message());
    const Bytes encoded = gyre::encode(reply.value().body(), encoding);
    replies.insert(replies.end(), encoded.begin(), encoded.end());
  });
  return replies;
}

}  // namespace gyre_test
