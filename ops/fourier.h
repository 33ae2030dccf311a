/* fourier.h - discrete Fourier transforms of any size. */
#ifndef ACCEL_OPS_FOURIER_H
#define ACCEL_OPS_FOURIER_H

#include <stddef.h>
#include <stdint.h>

/* Doubles that accel_fourier() needs for n points, the points included; 0: n is no such number. */
size_t accel_fourier_room(int64_t n);

/* x[k] = sum over i of x[i] e^(sign 2 pi j i k / n), n pairs in place at the start of the room;
 * sign -1 forward, 1 back (not divided by n). Cost: n log n. */
void accel_fourier(double *x, int64_t n, int sign);

#endif
