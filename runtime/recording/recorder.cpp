#include <capnp/message.h>
#include <capnp/serialize.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gyre/messages/recording.capnp.h>
#include <gyre/runtime/c/gyre.h>
#include <pthread.h>
#include <sys/file.h>
#include <unistd.h>
#include <gyre/runtime/core/backoff.hpp>
#include <gyre/runtime/core/deadline.hpp>
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/recording/record_ring.hpp>
#include <gyre/runtime/recording/recorder.hpp>
#include <gyre/runtime/system/leave_thread.hpp>
#include <gyre/runtime/system/signals_blocked.hpp>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <unordered_map>

namespace gyre::detail {

namespace format = messages::recording;

namespace {

// How a record lies in the ring: this, and a body behind it.
struct Entry {
  enum class Type : uint32_t { sent, outcome, relaunched };
  Type type;
  uint32_t status = 0;  // of an outcome
  int64_t time_ns;
  uint64_t body_bytes = 0;
  uint32_t detail = 0;
  uint32_t reserved = 0;
  Recorder::Sent sent{};  // of an outcome its `call` alone
};

constexpr size_t buffer_bytes = size_t(1) << 20;
constexpr std::chrono::milliseconds nap{2};

capnp::Data::Reader data_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}

}  // namespace

// The ring and the file behind it. put() is for any thread, run() for the recorder's own.
class Recorder::File {
 public:
  File(const std::string& path, uint64_t ring_bytes)
      : path_(path), began_ns_(host_now_ns()), ring_(ring_bytes) {
    descriptor_ = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) {
      throw Error(fmt::format("recording messages to {}: the file cannot be made: {}; check its folder", path,
                              std::generic_category().message(errno)));
    }
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      close_file();
      throw Error(fmt::format(
          "recording messages to {}: another runtime records there; give each a file of its own", path));
    }
    (void)!ftruncate(descriptor_, 0);  // a device has no length
  }
  ~File() { close_file(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& path() const { return path_; }
  int64_t now_ns() const { return host_now_ns() - began_ns_; }
  void put(const Entry& entry, std::span<const std::byte> first, std::span<const std::byte> rest) noexcept {
    if (ring_.put({std::as_bytes(std::span(&entry, 1)), first, rest})) return;
    dropped_.fetch_add(1, std::memory_order_relaxed);  // a number alone
  }
  void write_header(const ActorSet& actors, const Options& options, const std::string& device);
  void run() noexcept;
  void ask_to_end() { ending_.store(true, std::memory_order_release); }  // pairs with the load in run()
  // Pairs with the store in run().
  bool finished() const { return finished_.load(std::memory_order_acquire); }

 private:
  bool take_records();
  void write(std::span<const std::byte> record);
  void write_end();
  template <class Fill>
  void write_record(Fill&& fill);
  void flush();
  void fail(const char* doing, const std::string& cause);
  void close_file() noexcept {
    if (descriptor_ >= 0) close(descriptor_);
    descriptor_ = -1;
  }

  const std::string path_;
  const int64_t began_ns_;
  int descriptor_ = -1;
  RecordRing ring_;
  std::atomic<uint64_t> dropped_{0};
  std::atomic<bool> ending_{false}, finished_{false};
  // The recorder's thread's.
  std::string buffer_;
  std::unordered_map<CallId, uint64_t> open_;  // numbers of messages that have no outcome yet
  uint64_t sent_ = 0, outcomes_ = 0;
  bool failed_ = false;
};

template <class Fill>
void Recorder::File::write_record(Fill&& fill) {
  capnp::MallocMessageBuilder message;
  fill(message.initRoot<format::Record>());
  const auto words = capnp::messageToFlatArray(message);
  const auto bytes = words.asBytes();
  buffer_.append(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
  if (buffer_.size() >= buffer_bytes) flush();
}

void Recorder::File::write_header(const ActorSet& actors, const Options& options, const std::string& device) {
  write_record([&](format::Record::Builder record) {
    auto header = record.initHeader();
    header.setVersion(format::VERSION);
    header.setGyre(GYRE_VERSION);
    header.setDevice(device);
    header.setWorkers(options.workers);
    header.setSlotBytes(options.slot_bytes);
    header.setArenaBytes(options.arena_bytes);
    header.setMaxReplyBytes(options.max_reply_bytes);
    header.setActorsPerWorker(options.actors_per_worker);
    header.setSpillBytes(options.spill_bytes);
    header.setBodyBytes(options.body_bytes);
    header.setBodyPoolBytes(options.body_pool_bytes);
    const std::vector<Handler>& handlers = actors.handlers();
    auto list = header.initHandlers(uint32_t(handlers.size()));
    for (uint32_t n = 0; n < list.size(); ++n) {
      list[n].setActor(std::string(actors.actor_name(handlers[n].actor_type)));
      list[n].setMessage(std::string(actors.message_name(handlers[n].actor_type, handlers[n].message_type)));
      list[n].setActorType(handlers[n].actor_type);
      list[n].setMessageType(handlers[n].message_type);
      list[n].setRequest(handlers[n].request);
      list[n].setResponse(handlers[n].response);
    }
  });
}

void Recorder::File::write(std::span<const std::byte> bytes) {
  Entry entry;
  std::memcpy(static_cast<void*>(&entry), bytes.data(), sizeof entry);
  const auto body = data_of(bytes.subspan(sizeof entry, entry.body_bytes));
  if (entry.type == Entry::Type::relaunched) {
    write_record(
        [&](format::Record::Builder record) { record.initRelaunched().setTimeNs(uint64_t(entry.time_ns)); });
    return;
  }
  if (entry.type == Entry::Type::outcome) {
    const auto message = open_.find(entry.sent.call);
    if (message == open_.end()) return;
    write_record([&](format::Record::Builder record) {
      auto outcome = record.initOutcome();
      outcome.setNumber(message->second);
      outcome.setTimeNs(uint64_t(entry.time_ns));
      outcome.setStatus(entry.status);
      outcome.setDetail(entry.detail);
      outcome.setBody(body);
    });
    open_.erase(message);
    ++outcomes_;
    return;
  }
  if (entry.sent.call != 0) open_[entry.sent.call] = sent_;
  write_record([&](format::Record::Builder record) {
    auto sent = record.initSent();
    sent.setNumber(sent_);
    sent.setKind(format::Kind(entry.sent.kind));
    sent.setWorker(entry.sent.worker);
    sent.setTicket(entry.sent.ticket);
    sent.setActorType(entry.sent.actor_type);
    sent.setMessageType(entry.sent.message_type);
    sent.setKey(entry.sent.key);
    sent.setTimeNs(uint64_t(entry.time_ns));
    sent.setTimeoutNs(entry.sent.timeout.count());
    sent.setExpiresAfterNs(entry.sent.expires_after.count());
    sent.setBody(body);
  });
  ++sent_;
}

void Recorder::File::write_end() {
  write_record([&](format::Record::Builder record) {
    auto end = record.initEnd();
    end.setTimeNs(uint64_t(now_ns()));
    end.setSent(sent_);
    end.setOutcomes(outcomes_);
    end.setDropped(dropped_.load(std::memory_order_relaxed));
  });
}

void Recorder::File::flush() {
  for (size_t done = 0; done < buffer_.size();) {
    const ssize_t written = ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (written >= 0) {
      done += size_t(written);
    } else if (errno != EINTR) {
      throw Error(std::generic_category().message(errno));
    }
  }
  buffer_.clear();
}

// From now on records are taken and dropped.
void Recorder::File::fail(const char* doing, const std::string& cause) {
  failed_ = true;
  log(LogLevel::error, [&] {
    return fmt::format("recording messages to {}: {}: {}; the file has no end, and {} messages", path_, doing,
                       cause, sent_);
  });
}

bool Recorder::File::take_records() {
  bool any = false;
  while (ring_.take([this](std::span<const std::byte> record) {
    if (failed_) return;
    try {
      write(record);
    } catch (const std::exception& error) {
      fail("writing", error.what());
    }
  })) {
    any = true;
  }
  return any;
}

void Recorder::File::run() noexcept {
  for (;;) {
    const bool ending = ending_.load(std::memory_order_acquire);  // pairs with the store in ask_to_end()
    const bool any = take_records();
    if (any) continue;
    try {
      if (ending && !failed_) write_end();
      if (!failed_) flush();
    } catch (const std::exception& error) {
      if (!failed_) fail("writing", error.what());
    }
    if (ending) break;
    std::this_thread::sleep_for(nap);
  }
  close_file();
  if (const uint64_t dropped = dropped_.load(std::memory_order_relaxed); dropped != 0) {
    log(LogLevel::warning, [&] {
      return fmt::format("recording messages to {}: {} records found no room on their way to the file", path_,
                         dropped);
    });
  }
  finished_.store(true, std::memory_order_release);  // pairs with the load in finished()
}

Recorder::Recorder(const std::string& path, uint64_t ring_bytes)
    : file_(std::make_shared<File>(path, ring_bytes)) {}

Recorder::~Recorder() {
  if (!fork_.forked()) end(host_now_ns() + 1'000'000'000);
  leave_thread(thread_, fork_.forked());
}

void Recorder::begin(const ActorSet& actors, const Options& options, const std::string& device) {
  file_->write_header(actors, options, device);
  try {
    const SignalsBlocked blocked;
    thread_ = std::thread([file = file_] { file->run(); });
  } catch (const std::system_error& error) {
    throw Error(fmt::format(
        "starting the thread that records messages: {}; end other threads or raise their limit (ulimit -u)",
        error.what()));
  }
  pthread_setname_np(thread_.native_handle(), "gyre-recorder");
}

void Recorder::sent(const Sent& sent, uint64_t first_word, const void* rest, uint32_t body_bytes) noexcept {
  Entry entry{.type = Entry::Type::sent, .time_ns = file_->now_ns(), .body_bytes = body_bytes};
  entry.sent = sent;
  if (body_bytes == 0) return file_->put(entry, {}, {});
  file_->put(entry, std::as_bytes(std::span(&first_word, 1)),
             {static_cast<const std::byte*>(rest), body_bytes - sizeof first_word});
}

void Recorder::outcome(CallId call, Status status, uint32_t detail) noexcept {
  Entry entry{.type = Entry::Type::outcome, .status = uint32_t(status), .time_ns = file_->now_ns()};
  entry.detail = detail;
  entry.sent.call = call;
  file_->put(entry, {}, {});
}

void Recorder::answer(CallId call, const void* body, uint64_t body_bytes) noexcept {
  Entry entry{.type = Entry::Type::outcome, .time_ns = file_->now_ns(), .body_bytes = body_bytes};
  entry.sent.call = call;
  file_->put(entry, {static_cast<const std::byte*>(body), body_bytes}, {});
}

void Recorder::relaunched() noexcept {
  file_->put({.type = Entry::Type::relaunched, .time_ns = file_->now_ns()}, {}, {});
}

void Recorder::end(int64_t deadline_ns) noexcept {
  if (!thread_.joinable()) return;
  file_->ask_to_end();
  Backoff backoff(WaitPolicy::polite);
  while (!file_->finished()) {
    if (host_now_ns() >= deadline_ns) {
      log(LogLevel::error, [&] {
        return fmt::format("recording messages to {}: the file did not take them in time; it has no end",
                           file_->path());
      });
      return thread_.detach();
    }
    backoff.pause();
  }
  thread_.join();
}

}  // namespace gyre::detail
