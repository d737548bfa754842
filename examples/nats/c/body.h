/* The bodies of averages::Average's messages, as C sees them: body.cpp makes and reads them by Cap'n Proto's
 * library. */
#ifndef BODY_H
#define BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the Cap'n Proto type id of an Add. */
uint64_t add_type_id(void);

/* Writes an Add with one number as a stream. Returns its size in bytes; 0 if `room` is too small. */
size_t write_add(double number, void* bytes, size_t room);

/* Reads a Mean from a stream. Returns false if the bytes are none. */
bool read_mean(const void* bytes, size_t size, double* mean, uint64_t* count);

#ifdef __cplusplus
}
#endif
#endif
