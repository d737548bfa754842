// One body read whole by the official library and by the view, for the fuzzers to compare.
#pragma once

#include <capnp/message.h>
#include <kj/exception.h>
#include <kj/string.h>
#include <gyre/messages/official.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/messages/kinds.official.hpp"
#include "tests/messages/kinds_old.official.hpp"
#include "tests/messages/kinds_text.hpp"

namespace gyre_fuzz {

/// Ends the process, saying what was found: a fuzzer keeps the input then.
template <class... Parts>
[[noreturn]] void found(const Parts&... parts) {
  std::fprintf(stderr, "FOUND: %s\n", kj::str(parts...).cStr());
  std::abort();
}

/// The official library's exceptions without stack traces: most inputs are refused, and traces are slow.
class WithoutTraces final : public kj::ExceptionCallback {
 public:
  StackTraceMode stackTraceMode() override { return StackTraceMode::NONE; }
  void logMessage(kj::LogSeverity, const char*, int, int, kj::String&&) override {}
};

/// What the official library made of a message: its text up to where it refused to go on, and why.
struct Opinion {
  std::string text;
  bool refused = false;
  std::string why;
};

template <class Official>
Opinion official_opinion(capnp::MessageReader& message) {
  Opinion opinion;
  gyre_test::OfficialText text;
  try {
    text.say(capnp::DynamicStruct::Reader(message.getRoot<Official>()));
  } catch (const kj::Exception& exception) {
    opinion.refused = true;
    opinion.why = exception.getDescription().cStr();
  }
  opinion.text = text.take();
  return opinion;
}

/// Of a body of one segment. The words that may be followed are counted as the official library does.
template <class Official>
Opinion official_opinion(const void* body, size_t words, uint64_t traversal_words) {
  const kj::ArrayPtr<const capnp::word> segment(static_cast<const capnp::word*>(body), words);
  capnp::ReaderOptions options;
  options.traversalLimitInWords = traversal_words;
  capnp::SegmentArrayMessageReader message(kj::arrayPtr(&segment, 1), options);
  return official_opinion<Official>(message);
}

}  // namespace gyre_fuzz
