/* rng.h - random numbers from a seed: the same ones on every machine. Not for secrets. */
#ifndef ACCEL_BASE_RNG_H
#define ACCEL_BASE_RNG_H

#include <stdint.h>

/* A stream of numbers. Copying the struct copies the stream's position. */
struct accel_rng {
    uint64_t s[4]; /* never all zero */
};

/* The stream of this seed. Any seed is as good as another. */
struct accel_rng accel_rng_init(uint64_t seed);

/* The next 64 random bits. */
uint64_t accel_rng_next(struct accel_rng *r);

/* Uniform in [0, 1): one of the 2^53 multiples of 2^-53. */
double accel_rng_uniform(struct accel_rng *r);

#endif
