// The shared object of the tests' witnesses, for gyre-nats on the CPU engine.
#include <fcntl.h>
#include <unistd.h>
#include <gyre/runtime/c/export_actors.hpp>
#include <witness_sources.hpp>

#include <chrono>
#include <cstdlib>
#include <thread>

#include <witness/witness.hpp>
#include <witness/witness.official.hpp>

namespace witness {
namespace {

int64_t now_ns() {  // CLOCK_MONOTONIC, which the tests read as well
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int open_record() {
  const char* const name = std::getenv("GYRE_WITNESS_FILE");
  return name == nullptr ? -1 : open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

}  // namespace

uint64_t act_and_record(uint64_t key, uint64_t id, uint32_t sleep_us) {
  static const int file = open_record();
  struct {
    uint64_t process, key, id;
    int64_t begun_ns, ended_ns;
  } record{uint64_t(getpid()), key, id, now_ns(), 0};
  if (sleep_us != 0) std::this_thread::sleep_for(std::chrono::microseconds(sleep_us));
  record.ended_ns = now_ns();
  // One write of an appended file: records of several processes do not mix.
  if (file >= 0 && write(file, &record, sizeof record) != ssize_t(sizeof record)) std::abort();
  return uint64_t(record.begun_ns);
}

}  // namespace witness

GYRE_EXPORT_ACTORS(witness, gyre::ActorSet::of<witness::Witness>(witness::sources))
