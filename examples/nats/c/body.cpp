#include "body.h"

#include <capnp/message.h>
#include <capnp/serialize.h>

#include "average.capnp.h"

uint64_t add_type_id() { return capnp::typeId<averages::Add>(); }

size_t write_add(double number, void* bytes, size_t room) {
  capnp::MallocMessageBuilder message;
  message.initRoot<averages::Add>().initNumbers(1).set(0, number);
  const size_t size = capnp::computeSerializedSizeInWords(message) * sizeof(capnp::word);
  if (size > room) return 0;
  kj::ArrayOutputStream stream(kj::arrayPtr(static_cast<kj::byte*>(bytes), room));
  capnp::writeMessage(stream, message);
  return size;
}

bool read_mean(const void* bytes, size_t size, double* mean, uint64_t* count) {
  try {
    kj::ArrayInputStream stream(kj::arrayPtr(static_cast<const kj::byte*>(bytes), size));
    capnp::InputStreamMessageReader message(stream);
    const auto reply = message.getRoot<averages::Mean>();
    *mean = reply.getMean();
    *count = reply.getCount();
    return true;
  } catch (const kj::Exception&) {
    return false;
  }
}
