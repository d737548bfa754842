// Sizes of a worker's memory: mailboxes, and the replies that it builds at the same time.
#include <gyre/device/worker/mail_memory.hpp>
#include <gyre/device/worker/message_memory.hpp>

#include "support/catch.hpp"

using namespace gyre;

TEST_CASE("a mailbox has half as many spare slots as its senders are granted at first, or more") {
  for (uint32_t workers = 1; workers < 3000; ++workers) {
    const uint32_t slots = MailLayout::of(workers, 64, {}, {}).shape().slots;
    const uint32_t needed = workers * MailLayout::allowance * 3 / 2;
    INFO(workers << " workers, " << slots << " slots");
    REQUIRE((slots & (slots - 1)) == 0);
    REQUIRE(slots >= needed);
    REQUIRE((slots == MailLayout::least_slots || slots / 2 < needed));
  }
}

TEST_CASE(
    "replies that are built at the same time hold a slot each, and a warp's reads end within their memory") {
  for (const uint32_t slot_bytes : {64u, 128u, 192u, 256u, 512u, 576u, 1024u, 1088u, 16384u}) {
    const RingShape shape{64, slot_bytes, 1};
    for (const uint32_t most_gathered : {0u, 2u, 32u}) {
      for (const bool side_by_side : {false, true}) {
        const MessageMemory memory(shape, true, side_by_side, most_gathered);
        INFO(slot_bytes << " bytes a slot, side by side: " << side_by_side
                        << ", gathered: " << most_gathered);
        REQUIRE(memory.reply_stride() >= shape.packets() * words_a_packet);
        REQUIRE(memory.reply_stride() % 8 == 4);  // an odd multiple of 16 bytes
        REQUIRE(memory.reply_words() % 4 == 0);
        REQUIRE((memory.replies() - 1) * memory.reply_stride() + message_words(shape) <=
                memory.reply_words());
      }
    }
  }
}
