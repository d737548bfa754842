// gyre-engine on the fake driver. Writes what it did wrong to a file of its own in $GYRE_TEST_ENGINE_REPORTS,
// and to the file $GYRE_TEST_ENGINE_END how many workers it leaves. Under MPS the fake device has the part
// that the environment says. With $GYRE_TEST_NO_SHAREABLE_MEMORY it has no memory for other processes, with
// $GYRE_TEST_COPIES_NEVER_END its copies go on for ever, and with $GYRE_TEST_OPENING_AWAITS_COPY it opens
// memory of the program once it has copied meanwhile.
#include <signal.h>
#include <unistd.h>
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/process/engine_service.hpp>
#include <gyre/runtime/process/mps.hpp>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "support/actors/faulty.hpp"
#include "support/fake_driver.hpp"
#include "support/stepped.hpp"

int main(int count, char** arguments) {
  std::string report;
  int code = 1;
  {
    // A device fault on SIGUSR1. Blocked in every thread to come, so that this one takes it.
    sigset_t fault;
    sigemptyset(&fault);
    sigaddset(&fault, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &fault, nullptr);
    gyre_test::FakeDriver fake({gyre_test::probe_actors(), gyre::builtin_actors(),
                                gyre::ActorSet::of<gyre_test::Faulty>(gyre_test_actors::sources)});
    const char* const percentage = std::getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    if (percentage != nullptr && gyre::process::mps_runs()) {
      int& multiprocessors = fake.device.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
      multiprocessors = (multiprocessors * std::atoi(percentage) + 99) / 100;
    }
    if (std::getenv("GYRE_TEST_NO_SHAREABLE_MEMORY") != nullptr)
      fake.device.attributes[CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED] = 0;
    fake.device.copies_never_end = std::getenv("GYRE_TEST_COPIES_NEVER_END") != nullptr;
    fake.device.streams_write_no_words = std::getenv("GYRE_TEST_STREAMS_WRITE_NO_WORDS") != nullptr;
    fake.device.opening_awaits_copy = std::getenv("GYRE_TEST_OPENING_AWAITS_COPY") != nullptr;
    // It runs before serve_engine() closes descriptors: sanitizers have some open while a thread starts.
    std::atomic<bool> runs{false};
    std::thread([&fake, &runs, fault] {
      runs = true;
      int number = 0;
      if (sigwait(&fault, &number) == 0) fake.fault();
    }).detach();
    while (!runs) std::this_thread::yield();
    code = gyre::process::serve_engine(count, arguments);
    report = fake.misuse();
    const auto live = fake.live();
    if (const char* const end = std::getenv("GYRE_TEST_ENGINE_END"))
      std::ofstream(end) << live.workers << " workers" << std::endl;
    if (live != gyre_test::FakeDriver::Live{} && live.workers == 0) report += "left: " + live.text() + "\n";
  }
  const char* const folder = std::getenv("GYRE_TEST_ENGINE_REPORTS");
  if (folder != nullptr && !report.empty())
    std::ofstream(std::string(folder) + "/" + std::to_string(getpid())) << report;
  _exit(code);
}
