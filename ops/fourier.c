/* fourier.c - a transform of n points costs n log n for every n: powers of two by halves, other
 * sizes as a convolution of such a size (Bluestein: j k = (j^2 + k^2 - (k - j)^2) / 2). */
#include "ops/fourier.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

static void turn(double *x, double re, double im)
{
    double u = x[0] * re - x[1] * im;
    x[1] = x[0] * im + x[1] * re;
    x[0] = u;
}

/* n a power of two, in place; sign -1 forward, 1 back (not divided by n). */
static void transform2(double *x, int64_t n, int sign)
{
    for (int64_t i = 1, j = 0; i < n; i++) {
        int64_t bit = n >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        for (int k = 0; k < 2 && i < j; k++) {
            double t = x[2 * i + k];
            x[2 * i + k] = x[2 * j + k];
            x[2 * j + k] = t;
        }
    }
    for (int64_t half = 1; half < n; half *= 2)
        for (int64_t k = 0; k < half; k++) {
            double at = sign * pi * (double)k / (double)half, re = cos(at), im = sin(at);
            for (int64_t i = k; i < n; i += 2 * half) {
                double *a = x + 2 * i, *b = a + 2 * half;
                turn(b, re, im);
                double u = b[0], v = b[1];
                b[0] = a[0] - u;
                b[1] = a[1] - v;
                a[0] += u;
                a[1] += v;
            }
        }
}

/* The power of two that a convolution of n points needs. */
static int64_t padded(int64_t n)
{
    int64_t m = 1;
    while (m < 2 * n)
        m *= 2;
    return m;
}

size_t accel_fourier_room(int64_t n)
{
    return n > 0 && n < (int64_t)1 << 40 ? (size_t)(4 * n + 4 * padded(n)) : 0;
}

void accel_fourier(double *x, int64_t n, int sign)
{
    int64_t m = padded(n);
    double *w = x + 2 * n, *a = w + 2 * n, *b = a + 2 * m;
    if ((n & (n - 1)) == 0) {
        transform2(x, n, sign);
        return;
    }
    for (int64_t i = 0; i < 2 * m; i++)
        a[i] = b[i] = 0;
    for (int64_t k = 0; k < n; k++) { /* k^2 modulo 2 n keeps the angle exact */
        uint64_t square = (uint64_t)k * (uint64_t)k % (2 * (uint64_t)n);
        double at = sign * pi * (double)square / (double)n;
        w[2 * k] = cos(at);
        w[2 * k + 1] = sin(at);
        a[2 * k] = x[2 * k];
        a[2 * k + 1] = x[2 * k + 1];
        turn(a + 2 * k, w[2 * k], w[2 * k + 1]);
        b[2 * k] = b[2 * (k ? m - k : 0)] = w[2 * k];
        b[2 * k + 1] = b[2 * (k ? m - k : 0) + 1] = -w[2 * k + 1];
    }
    transform2(a, m, -1);
    transform2(b, m, -1);
    for (int64_t k = 0; k < m; k++)
        turn(a + 2 * k, b[2 * k], b[2 * k + 1]);
    transform2(a, m, 1);
    for (int64_t k = 0; k < n; k++) {
        x[2 * k] = a[2 * k] / (double)m;
        x[2 * k + 1] = a[2 * k + 1] / (double)m;
        turn(x + 2 * k, w[2 * k], w[2 * k + 1]);
    }
}
