#include "recording.hpp"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <system_error>

namespace gyre::tools {

namespace format = messages::recording;

namespace {

kj::Array<capnp::word> words_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) {
    throw BadOptions(fmt::format("reading the recording {}: {}; check its path", path,
                                 std::generic_category().message(errno)));
  }
  const auto bytes = size_t(file.tellg());
  auto words = kj::heapArray<capnp::word>(bytes / sizeof(capnp::word));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(words.begin()), std::streamsize(words.size() * sizeof(capnp::word)));
  if (!file) throw BadOptions(fmt::format("reading the recording {}: it cannot be read to its end", path));
  return words;
}

std::span<const std::byte> bytes_of(capnp::Data::Reader data) {
  return {reinterpret_cast<const std::byte*>(data.begin()), data.size()};
}

void read_header(const std::string& path, format::Header::Reader header, Recording& recording) {
  if (header.getVersion() != format::VERSION) {
    throw BadOptions(
        fmt::format("reading the recording {}: it is of version {}, by Gyre {}, and this program reads "
                    "version {}; replay "
                    "it with that Gyre",
                    path, header.getVersion(), header.getGyre().cStr(), uint32_t(format::VERSION)));
  }
  recording.gyre = header.getGyre().cStr();
  recording.device = header.getDevice().cStr();
  recording.workers = header.getWorkers();
  recording.slot_bytes = header.getSlotBytes();
  recording.arena_bytes = header.getArenaBytes();
  recording.max_reply_bytes = header.getMaxReplyBytes();
  recording.actors_per_worker = header.getActorsPerWorker();
  recording.spill_bytes = header.getSpillBytes();
  recording.body_bytes = header.getBodyBytes();
  recording.body_pool_bytes = header.getBodyPoolBytes();
  for (const auto handler : header.getHandlers()) {
    recording.handlers.push_back({handler.getActor().cStr(), handler.getMessage().cStr(),
                                  handler.getActorType(), handler.getMessageType(), handler.getRequest()});
  }
}

RecordedMessage message_of(format::Sent::Reader sent) {
  return {sent.getNumber(), sent.getKind(),      sent.getWorker(),
          sent.getTicket(), sent.getActorType(), sent.getMessageType(),
          sent.getKey(),    sent.getTimeNs(),    bytes_of(sent.getBody())};
}

// Threads that send to one worker may record in another order than the one that they send in.
void order_by_tickets(std::span<RecordedEvent> events) {
  std::map<uint32_t, std::vector<size_t>> places;  // by worker
  for (size_t n = 0; n < events.size(); ++n) {
    if (const auto* message = std::get_if<RecordedMessage>(&events[n])) places[message->worker].push_back(n);
  }
  for (const auto& [worker, of_worker] : places) {
    std::vector<RecordedEvent> sorted;
    for (const size_t place : of_worker) sorted.push_back(events[place]);
    std::stable_sort(sorted.begin(), sorted.end(), [](const RecordedEvent& a, const RecordedEvent& b) {
      return std::get<RecordedMessage>(a).ticket < std::get<RecordedMessage>(b).ticket;
    });
    for (size_t n = 0; n < of_worker.size(); ++n) events[of_worker[n]] = sorted[n];
  }
}

}  // namespace

Recording read_recording(const std::string& path) {
  Recording recording;
  recording.words = words_of(path);
  const kj::ArrayPtr<const capnp::word> all = recording.words;
  size_t at = 0;
  uint64_t record = 0;
  size_t launched = 0;  // the first event since the workers began anew
  try {
    for (; at < all.size(); ++record) {
      const auto rest = all.slice(at, all.size());
      if (capnp::expectedSizeInWordsFromPrefix(rest) > rest.size()) break;
      capnp::ReaderOptions options;
      options.traversalLimitInWords = rest.size() + 1;
      capnp::FlatArrayMessageReader message(rest, options);
      const auto read = message.getRoot<format::Record>();
      if (record == 0 && !read.isHeader()) break;
      switch (read.which()) {
        case format::Record::HEADER:
          read_header(path, read.getHeader(), recording);
          break;
        case format::Record::SENT:
          recording.events.emplace_back(message_of(read.getSent()));
          ++recording.sent;
          break;
        case format::Record::OUTCOME: {
          const auto outcome = read.getOutcome();
          recording.events.emplace_back(RecordedOutcome{outcome.getNumber(), outcome.getTimeNs(),
                                                        Status(outcome.getStatus()), outcome.getDetail(),
                                                        bytes_of(outcome.getBody())});
          ++recording.outcomes;
          break;
        }
        case format::Record::RELAUNCHED:
          order_by_tickets(std::span(recording.events).subspan(launched));
          recording.events.emplace_back(RecordedRelaunch{});
          launched = recording.events.size();
          break;
        case format::Record::END:
          recording.dropped = read.getEnd().getDropped();
          break;
      }
      at += size_t(message.getEnd() - rest.begin());
    }
  } catch (const kj::Exception& exception) {
    throw BadOptions(fmt::format("reading the recording {}: record {} is damaged: {}", path, record,
                                 exception.getDescription().cStr()));
  }
  if (record == 0 || recording.workers == 0) {
    throw BadOptions(fmt::format(
        "reading the recording {}: it does not begin as one; give a file that a program wrote with --record",
        path));
  }
  order_by_tickets(std::span(recording.events).subspan(launched));
  return recording;
}

}  // namespace gyre::tools
