/* gram.c - sums over samples. Rows become double in blocks of a few hundred, the constant beside
 * them, and go through one symmetric and one general product per group. How W follows from the sums
 * stands in gram_solve.c. */
#include "prune/gram.h"

#include <string.h>

#include "base/alloc.h"
#include "base/linalg.h"

enum { BLOCK = 256 }; /* rows in double at a time */

static bool sizes(size_t out[3], size_t n_group, size_t n_x, size_t n_y)
{
    size_t side = n_x + 1;
    return n_x < ACCEL_LINALG_MAX && n_y <= ACCEL_LINALG_MAX &&
           !__builtin_mul_overflow(n_group, side * side, &out[0]) &&
           !__builtin_mul_overflow(n_group, side * n_y, &out[1]) &&
           !__builtin_mul_overflow(n_group, n_y, &out[2]);
}

size_t accel_gram_size(size_t n_group, size_t n_x, size_t n_y)
{
    size_t n[3], sum;
    if (!sizes(n, n_group, n_x, n_y) || __builtin_add_overflow(n[0], n[1], &sum) ||
        __builtin_add_overflow(sum, n[2], &sum) ||
        __builtin_mul_overflow(sum, ACCEL_GRAM_PARTS * sizeof(double), &sum))
        return SIZE_MAX;
    return sum;
}

enum accel_err accel_gram_init(struct accel_gram *g, size_t n_group, size_t n_x, size_t n_y)
{
    size_t n[3];
    *g = (struct accel_gram){.n_group = n_group, .n_x = n_x, .n_y = n_y};
    ACCEL_TRY(accel_linalg_open());
    if (!sizes(n, n_group, n_x, n_y))
        return accel_fail(ACCEL_ENOSUP, "%zu inputs and %zu outputs, %d are possible", n_x, n_y,
                          ACCEL_LINALG_MAX);
    g->room = accel_calloc(BLOCK, (n_x + 1 + n_y) * sizeof *g->room);
    bool ok = g->room;
    for (int p = 0; ok && p < ACCEL_GRAM_PARTS; p++) {
        g->g[p] = accel_calloc(n[0], sizeof(double));
        g->c[p] = accel_calloc(n[1], sizeof(double));
        g->yy[p] = accel_calloc(n[2], sizeof(double));
        ok = g->g[p] && g->c[p] && g->yy[p];
    }
    if (ok)
        return ACCEL_OK;
    accel_gram_clear(g);
    return accel_fail_nomem();
}

void accel_gram_clear(struct accel_gram *g)
{
    for (int p = 0; p < ACCEL_GRAM_PARTS; p++) {
        accel_free(g->g[p]);
        accel_free(g->c[p]);
        accel_free(g->yy[p]);
    }
    accel_free(g->room);
    *g = (struct accel_gram){0};
}

/* One group of a block: x and y begin at its first column. */
static enum accel_err add_block(struct accel_gram *g, enum accel_gram_part part, size_t group,
                                const float *x, const float *y, size_t rows)
{
    size_t side = g->n_x + 1, n_y = y ? g->n_y : 0, x_step = g->n_group * g->n_x,
           y_step = g->n_group * g->n_y;
    double *wide_x = g->room, *wide_y = g->room + BLOCK * side, *yy = g->yy[part] + group * g->n_y;
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < g->n_x; i++)
            wide_x[r * side + i] = (double)x[r * x_step + i];
        wide_x[r * side + g->n_x] = 1;
        for (size_t k = 0; k < n_y; k++) {
            double v = wide_y[r * n_y + k] = (double)y[r * y_step + k];
            yy[k] += v * v;
        }
    }
    ACCEL_TRY(accel_linalg_square(g->g[part] + group * side * side, side, wide_x, side, rows));
    if (!n_y)
        return ACCEL_OK;
    return accel_linalg_cross(g->c[part] + group * side * n_y, n_y, side, n_y, wide_x, side, wide_y,
                              n_y, rows);
}

enum accel_err accel_gram_add(struct accel_gram *g, enum accel_gram_part part, const float *x,
                              const float *y, size_t rows)
{
    for (size_t first = 0; first < rows; first += BLOCK) {
        size_t n = rows - first < BLOCK ? rows - first : BLOCK;
        const float *at_x = x + first * g->n_group * g->n_x;
        const float *at_y = y ? y + first * g->n_group * g->n_y : NULL;
        for (size_t i = 0; i < g->n_group; i++)
            ACCEL_TRY(add_block(g, part, i, at_x + i * g->n_x, y ? at_y + i * g->n_y : NULL, n));
    }
    g->n_row[part] += rows;
    return ACCEL_OK;
}
