/* rng.c - xoshiro256++ seeded by splitmix64.
 *
 * A generator of our own because rand() differs from one C library to the next, and files written
 * with a seed must be the same bytes everywhere. xoshiro256++ passes the known batteries, has a
 * period of 2^256 - 1 and costs about a nanosecond. Its state must not be all zero, and seeds that
 * differ in one bit should give unrelated streams: splitmix64 takes care of both, as the authors
 * recommend.
 *
 * Source: D. Blackman, S. Vigna, "Scrambled Linear Pseudorandom Number Generators", ACM TOMS 47
 * (2021); G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA
 * 2014. */
#include "base/rng.h"

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

struct accel_rng accel_rng_init(uint64_t seed)
{
    struct accel_rng r;
    for (int i = 0; i < 4; i++)
        r.s[i] = splitmix(&seed);
    return r;
}

static uint64_t rotate(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t accel_rng_next(struct accel_rng *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotate(s[0] + s[3], 23) + s[0];
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

double accel_rng_uniform(struct accel_rng *r)
{
    return (double)(accel_rng_next(r) >> 11) * 0x1p-53;
}
