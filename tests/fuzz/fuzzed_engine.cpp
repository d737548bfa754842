// An engine process that says what $GYRE_FUZZ_ANSWERS holds, a file of records: with each request that comes
// it sends the next one. Not instrumented: one is started for each input.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/fuzzed_engine.hpp"

using namespace gyre_fuzz;

namespace {

int shared_memory(uint64_t bytes, bool sealed) {
  const int file = memfd_create("fuzzed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (ftruncate(file, off_t(bytes)) != 0) _exit(3);
  if (sealed) fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return file;
}

void send_record(const Record& record, const char* bytes) {
  char control[CMSG_SPACE(4 * sizeof(int))] = {};
  iovec part{const_cast<char*>(bytes), record.bytes};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  int files[4];
  const uint32_t count = record.descriptors % 5;
  for (uint32_t n = 0; n < count; ++n) files[n] = shared_memory(record.memory_bytes, record.sealed != 0);
  if (count != 0) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(rights), files, count * sizeof(int));
  }
  (void)!sendmsg(3, &header, MSG_NOSIGNAL);
  for (uint32_t n = 0; n < count; ++n) close(files[n]);
}

}  // namespace

int main() {
  static char bytes[1 << 16], request[1 << 16];
  const int answers = open(std::getenv("GYRE_FUZZ_ANSWERS"), O_RDONLY | O_CLOEXEC);
  Record record;
  for (bool first = true; read(answers, &record, sizeof record) == sizeof record; first = false) {
    if (record.bytes > sizeof bytes || read(answers, bytes, record.bytes) != ssize_t(record.bytes)) _exit(3);
    if (!first && read(3, request, sizeof request) <= 0) _exit(0);
    send_record(record, bytes);
  }
  if (record.then == Record::closes) close(3);
  for (;;) {
    if (record.then == Record::closes) pause();
    const bool gone = read(3, request, sizeof request) <= 0;
    if (!gone && record.then == Record::crashes) raise(SIGSEGV);
    if (gone || record.then == Record::ends) _exit(0);
  }
}
