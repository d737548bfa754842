// What a warm message costs its sender besides looking at memory: no allocation, no lock, no system call.
// An executable of its own: it replaces the global operator new, and malloc and pthread_mutex_lock of what it
// links come by it.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gyre/gyre.hpp>
#include <gyre_test_actors_sources.hpp>
#include <support/actors/probe.official.hpp>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <new>
#include <thread>
#include <vector>

#include "support/actors/probe.hpp"
#include "support/catch.hpp"
#include "support/hostile_frames.hpp"
#include "support/skip.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GYRE_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GYRE_TEST_SANITIZED 1
#endif
#endif

using namespace gyre;
using namespace gyre_test;
using namespace std::chrono_literals;

namespace {

// Of the calling thread alone, and only while `counting`.
thread_local bool counting = false;
thread_local uint64_t allocations = 0, allocated_bytes = 0, locks = 0;

void* counted(void* memory, size_t bytes) {
  if (counting) {
    ++allocations;
    allocated_bytes += bytes;
  }
  return memory;
}

}  // namespace

extern "C" {
void* __real_malloc(size_t bytes);
void* __real_calloc(size_t count, size_t bytes);
void* __real_realloc(void* memory, size_t bytes);
void* __real_aligned_alloc(size_t alignment, size_t bytes);
int __real_pthread_mutex_lock(pthread_mutex_t* mutex);
int __real_pthread_mutex_trylock(pthread_mutex_t* mutex);
void* __wrap_malloc(size_t bytes) { return counted(__real_malloc(bytes), bytes); }
void* __wrap_calloc(size_t count, size_t bytes) {
  return counted(__real_calloc(count, bytes), count * bytes);
}
void* __wrap_realloc(void* memory, size_t bytes) { return counted(__real_realloc(memory, bytes), bytes); }
void* __wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return counted(__real_aligned_alloc(alignment, bytes), bytes);
}
int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
  if (counting) ++locks;
  return __real_pthread_mutex_lock(mutex);
}
int __wrap_pthread_mutex_trylock(pthread_mutex_t* mutex) {
  if (counting) ++locks;
  return __real_pthread_mutex_trylock(mutex);
}
}

// None is inlined: g++ would see memory of malloc freed by operator delete, and the reverse, and warn.
[[gnu::noinline]] void* operator new(size_t bytes) {
  if (void* const memory = std::malloc(bytes != 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes != 0 ? bytes : 1);
}
[[gnu::noinline]] void* operator new(size_t bytes, std::align_val_t alignment) {
  const size_t a = size_t(alignment);
  if (void* const memory = std::aligned_alloc(a, (bytes + a - 1) / a * a)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { operator delete(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  operator delete(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { operator delete(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  operator delete(memory);
}

namespace {

constexpr Address<Probe> probe{7};
constexpr uint64_t rounds = 20'000;

// Asks and tells of every kind that fit slots, each answer checked. True if all were right.
bool send(Client& client, uint64_t count) {
  using Asked = Future<Reply<ProbeResponse>>;
  std::array<Asked, 20> batch;
  const auto ask = [](uint64_t argument) {
    return [argument](ProbeRequest::Builder request) {
      request.setAction(Action::ANSWER);
      request.setArgument(argument);
    };
  };
  const auto note = [](ProbeNote::Builder n) { n.setValue(1); };
  const auto right = [](Asked& future, uint64_t argument) {
    const auto reply = future.get();
    return reply && reply.value()->getValue() == 2 * argument + 1;
  };
  for (uint64_t i = 0; i < count; ++i) {
    auto long_one = client.ask<ProbeRequest>(probe, ask(i));
    auto short_one = client.ask<ProbeRequest>(probe, ask(i + 1), 900ms);
    if (!right(long_one, i) || !right(short_one, i + 1)) return false;
    if (!client.tell<ProbeNote>(probe, note)) return false;
    if (i % 50 != 0) continue;
    const auto ask_i = [&](size_t k, ProbeRequest::Builder request) { ask(i + k)(request); };
    if (client.ask_many<ProbeRequest>(probe, batch, ask_i) != batch.size()) return false;
    for (size_t k = 0; k < batch.size(); ++k) {
      if (!right(batch[k], i + k)) return false;
    }
    const auto note_i = [](size_t, ProbeNote::Builder n) { n.setValue(1); };
    if (!client.tell_many<ProbeNote>(probe, 20, note_i)) return false;
    auto dropped = client.ask<ProbeRequest>(probe, ask(i));  // abandoned
  }
  return true;
}

Runtime launch() {
  return Runtime::launch(ActorSet::of<Probe>(gyre_test_actors::sources),
                         {.engine = EngineKind::cpu, .slots = 64, .timeout = 60s, .wait = WaitPolicy::spin});
}

#if !defined(GYRE_TEST_SANITIZED)
// From now on any system call of this thread but write and exit_group ends the process with SIGSYS.
bool forbid_system_calls() {
  const sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog program = {sizeof filter / sizeof *filter, const_cast<sock_filter*>(filter)};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// What a child process makes of `body`: its wait status.
int in_a_child(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(9);
  }
  int status = 0;
  REQUIRE(child > 0);
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

constexpr int no_seccomp = 77;
#endif

}  // namespace

TEST_CASE("a warm message allocates nothing and takes no lock") {
  Runtime runtime = launch();
  Client client = runtime.client();
  REQUIRE(send(client, 500));
  counting = true;
  const bool right = send(client, rounds);
  counting = false;
  CHECK(right);
  CHECK(allocations == 0);
  CHECK(locks == 0);
  CHECK(runtime.terminate().books.balanced());
  // The counters do count.
  counting = true;
  void* volatile allocated = std::malloc(100);  // volatile: else the compiler leaves it out
  std::free(allocated);
  allocated = new uint64_t(1);
  delete static_cast<uint64_t*>(allocated);
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  counting = false;
  pthread_mutex_unlock(&mutex);
  CHECK(allocations == 2);
  CHECK(locks == 1);
}

TEST_CASE(
    "a callback's ask allocates nothing and takes no lock, where it is asked and where it is called back") {
  // Polite: on few processors a poller that spins would keep the worker and the asker from theirs.
  Runtime runtime = Runtime::launch(ActorSet::of<Probe>(gyre_test_actors::sources),
                                    {.engine = EngineKind::cpu, .slots = 64, .timeout = 60s});
  Client client = runtime.client();
  std::atomic<uint64_t> called{0}, wrong{0}, there_allocations{0}, there_locks{0};
  uint64_t asked = 0;
  const auto asking = [&](uint64_t argument) {
    return [argument](ProbeRequest::Builder request) {
      request.setAction(Action::ANSWER);
      request.setArgument(argument);
    };
  };
  // Twenty in flight at a time.
  const auto callbacks = [&](uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      client.ask<ProbeRequest>(probe, asking(i)).then([&called, &wrong, i](auto outcome) {
        if (!outcome || outcome.value()->getValue() != 2 * i + 1) ++wrong;
        ++called;
      });
      ++asked;
      while (asked - called >= 20) std::this_thread::yield();
    }
    while (asked != called) std::this_thread::yield();
  };
  callbacks(500);
  // From here on the poller's thread counts too, until it says what it counted.
  client.ask<ProbeRequest>(probe, asking(0)).then([&](auto) {
    allocations = locks = 0;
    counting = true;
  });
  allocations = locks = 0;
  counting = true;
  callbacks(5000);
  counting = false;
  const uint64_t here_allocations = allocations, here_locks = locks;
  client.ask<ProbeRequest>(probe, asking(0)).then([&](auto) {
    counting = false;
    there_allocations = allocations;
    there_locks = locks;
  });
  CHECK(runtime.terminate().books.balanced());
  CHECK(called == 5500);
  CHECK(wrong == 0);
  CHECK(here_allocations == 0);
  CHECK(here_locks == 0);
  CHECK(there_allocations == 0);
  CHECK(there_locks == 0);
}

#if !defined(GYRE_TEST_SANITIZED)
TEST_CASE("a spinning caller's warm messages make no system call") {
  const auto run = [](bool call_one) {
    return in_a_child([call_one] {
      // The runtime is the child's own: a parent's would refuse it.
      Runtime runtime = launch();
      Client client = runtime.client();
      if (!send(client, 500)) _exit(2);
      if (!forbid_system_calls()) _exit(no_seccomp);
      if (call_one) (void)syscall(SYS_getppid);
      _exit(send(client, rounds) ? 0 : 3);
    });
  };
  const int quiet = run(false);
  if (WIFEXITED(quiet) && WEXITSTATUS(quiet) == no_seccomp) {
    return gyre_test::skip("seccomp filters are not allowed here");
  }
  INFO("wait status " << quiet << (WIFSIGNALED(quiet) ? ": a system call was made" : ""));
  CHECK(WIFEXITED(quiet));
  CHECK(WEXITSTATUS(quiet) == 0);
  const int calling = run(true);  // the filter does see one
  CHECK(WIFSIGNALED(calling));
  CHECK(WTERMSIG(calling) == SIGSYS);
}
#endif

TEST_CASE("a frame from outside takes memory in proportion to its bytes, whatever it claims") {
  const auto pages_touched = [] {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return uint64_t(usage.ru_minflt);
  };
  // As Client::ask takes a frame, with an arena of 64 MiB.
  const auto take = [](const HostileFrame& frame) {
    const auto sent =
        gyre::detail::send_encoded({frame.bytes, frame.encoding}, uint64_t(64) << 20,
                                   [](const gyre::detail::Outgoing&) -> Result<void> { return success(); });
    return sent ? Status::ok : sent.error().status;
  };
  for (const HostileFrame& frame : hostile_frames()) {
    INFO(frame.what << ", " << frame.bytes.size() << " bytes");
    const Status first = take(frame);  // what a thread's first message takes is not the frame's
    CHECK(first != Status::ok);
    const uint64_t pages_before = pages_touched();
    allocated_bytes = 0;
    counting = true;
    const Status again = take(frame);
    counting = false;
    const uint64_t pages = pages_touched() - pages_before;
    CHECK(again == first);
    CHECK(allocated_bytes <= (64 << 10) + 16 * frame.bytes.size());
#if !defined(GYRE_TEST_SANITIZED)
    CHECK(pages * 4096 <= (64 << 10) + 16 * frame.bytes.size());
#else
    (void)pages;
#endif
  }
}

TEST_CASE("each line of the region has one writer") {
  // Offsets within a worker's part, in order; the writer of all up to the next.
  const RegionLayout layout{3, RingShape{16, 128, 1}, 4096, 5};
  struct Part {
    uint64_t begin, end;
    bool hosts;
  };
  std::vector<Part> parts = {{0, layout.host_line(0), true}};  // header and handler types: at launch
  for (uint32_t w = 0; w < layout.workers; ++w) {
    const uint64_t ring = layout.shape.ring_bytes();
    parts.push_back({layout.host_line(w), layout.host_line(w) + sizeof(HostLine), true});
    parts.push_back({layout.worker_line(w), layout.worker_line(w) + sizeof(WorkerLine), false});
    parts.push_back({layout.last_words(w), layout.last_words(w) + sizeof(LastWords), false});
    parts.push_back({layout.log(w), layout.handler_counts(w), false});
    parts.push_back({layout.handler_counts(w), layout.failure_log(w), false});
    parts.push_back({layout.failure_log(w), layout.failure_log(w) + FailureLog::bytes(layout.shape), false});
    parts.push_back({layout.d2h_ring(w), layout.d2h_ring(w) + ring, false});
  }
  for (uint32_t w = 0; w < layout.workers; ++w) {
    const uint64_t inbound = layout.inbound();
    parts.push_back({inbound + layout.command_line(w), inbound + layout.h2d_ring(w), true});
    parts.push_back(
        {inbound + layout.h2d_ring(w), inbound + layout.h2d_ring(w) + layout.shape.ring_bytes(), true});
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    INFO("part " << i);
    CHECK(parts[i].begin % 64 == 0);
    // x86 prefetches lines in pairs: lines of different writers lie 128 bytes apart.
    if (i != 0 && parts[i].hosts != parts[i - 1].hosts) CHECK(parts[i].begin % 128 == 0);
    CHECK(parts[i].begin < parts[i].end);
    CHECK(parts[i].end == (i + 1 < parts.size() ? parts[i + 1].begin : layout.rings_bytes()));
  }
}
