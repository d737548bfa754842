// Views: a Cap'n Proto message body read and written where it lies, by one text for g++, clang and NVRTC. The
// typed views that capnpc-gyre generates are thin clothes over the classes of these two headers.
//
// A body is one unpacked segment: 8-byte words, little-endian, the root pointer in word 0, its base 16-byte
// aligned.
#pragma once

#include <gyre/messages/builder.hpp>
#include <gyre/messages/reader.hpp>
