#include <gyre/messages/envelope.hpp>

#include <cstring>

#include "support/catch.hpp"

TEST_CASE("the envelope's bytes lie where both sides expect them") {
  const gyre::Envelope envelope{
      0x0102030405060708, 0x11121314, 0x21222324, 0x3132333435363738, 0x4142, 0x5152, 0x6162, 0x71, 0x81};
  const unsigned char expected[32] = {8,    7,    6,    5,    4,    3,    2,    1,    0x14, 0x13, 0x12,
                                      0x11, 0x24, 0x23, 0x22, 0x21, 0x38, 0x37, 0x36, 0x35, 0x34, 0x33,
                                      0x32, 0x31, 0x42, 0x41, 0x52, 0x51, 0x62, 0x61, 0x71, 0x81};
  CHECK(std::memcmp(&envelope, expected, sizeof expected) == 0);
}
