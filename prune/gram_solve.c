/* gram_solve.c - from sums to weights.
 *
 * The unknown is the change D = W - W0: with E = C - G W0,  (G + lambda d I) D = E  over the free
 * entries of each output. So entries that must stay need no treatment of their own, and a strong
 * ridge leaves the weights as they are instead of pulling them to zero. */
#include "prune/gram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/linalg.h"

static const double grid[] = {1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1};
enum { N_GRID = sizeof grid / sizeof *grid };

/* Outputs of one group that share their free entries. */
struct output {
    const bool *free; /* [side], NULL: all */
    size_t side, index;
};

struct solver {
    const struct accel_gram *g;
    struct output *output; /* [n_group][n_y], those with the same free entries side by side */
    const double *w0;
    double *trial;         /* like w0 */
    double *error;         /* [side, n_y]  E of a group */
    double *a, *b, *ridge; /* [side, side], [side, n_y], [side] */
    size_t *entry;         /* [side] free entries */
};

static int by_free(const void *x, const void *y)
{
    const struct output *a = x, *b = y;
    int c = a->free && b->free ? memcmp(a->free, b->free, a->side * sizeof *a->free) : 0;
    return c ? c : a->index < b->index ? -1 : a->index > b->index;
}

static bool is_same(const struct output *a, const struct output *b)
{
    return !a->free || !memcmp(a->free, b->free, a->side * sizeof *a->free);
}

static size_t class_end(const struct output *o, size_t from, size_t n)
{
    size_t to = from + 1;
    while (to < n && is_same(&o[from], &o[to]))
        to++;
    return to;
}

static size_t list_free(size_t *entry, const struct output *o)
{
    size_t n = 0;
    for (size_t i = 0; i < o->side; i++)
        if (!o->free || o->free[i])
            entry[n++] = i;
    return n;
}

static double cost(const struct solver *s)
{
    const struct accel_gram *g = s->g;
    double sum = 0;
    for (size_t i = 0; i < g->n_group; i++) {
        const struct output *o = s->output + i * g->n_y;
        for (size_t k = 0, end; k < g->n_y; k = end) {
            end = class_end(o, k, g->n_y);
            double n = (double)list_free(s->entry, &o[k]);
            sum += n * n * (n / 6 + (double)(end - k));
        }
    }
    return sum;
}

/* E = C - G W0 of a group, over the samples of the first `parts` parts. */
static enum accel_err find_error(struct solver *s, size_t group, int parts)
{
    const struct accel_gram *g = s->g;
    size_t side = g->n_x + 1, n = side * g->n_y;
    const double *w0 = s->w0 + group * n;
    for (size_t i = 0; i < n; i++)
        s->error[i] = 0;
    for (int p = 0; p < parts; p++)
        ACCEL_TRY(
            accel_linalg_symmetric(s->error, g->g[p] + group * side * side, w0, side, g->n_y, 1));
    for (size_t i = 0; i < n; i++) {
        double c = 0;
        for (int p = 0; p < parts; p++)
            c += g->c[p][group * n + i];
        s->error[i] = c - s->error[i];
    }
    return ACCEL_OK;
}

static double at(const struct accel_gram *g, size_t group, int parts, size_t i, size_t k)
{
    size_t side = g->n_x + 1, where = (group * side + i) * side + k;
    double sum = 0;
    for (int p = 0; p < parts; p++)
        sum += g->g[p][where];
    return sum;
}

/* Of the inputs that are not always zero: what was zeroed must count as what was cut out. */
static double mean_square(const struct accel_gram *g, size_t group, int parts)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < g->n_x; i++) {
        double square = at(g, group, parts, i, i);
        sum += square;
        n += square != 0;
    }
    return n ? sum / (double)n : 0;
}

/* One class of outputs into `w` [side, n_y] of the group. */
static enum accel_err solve_class(bool *definite, struct solver *s, double *w, size_t group,
                                  int parts, const struct output *o, size_t n_o, double lambda)
{
    const struct accel_gram *g = s->g;
    size_t n = list_free(s->entry, o);
    double ridge = lambda * mean_square(g, group, parts) + 1e-300;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k <= i; k++)
            s->a[i * n + k] = at(g, group, parts, s->entry[i], s->entry[k]);
        for (size_t k = 0; k < n_o; k++)
            s->b[i * n_o + k] = s->error[s->entry[i] * g->n_y + o[k].index];
        s->ridge[i] = s->entry[i] < g->n_x ? ridge : 1e-9 * s->a[i * n + i];
    }
    ACCEL_TRY(accel_linalg_ridge(definite, s->a, s->ridge, s->b, n, n_o));
    for (size_t i = 0; *definite && i < n; i++)
        for (size_t k = 0; k < n_o; k++)
            w[s->entry[i] * g->n_y + o[k].index] += s->b[i * n_o + k];
    return ACCEL_OK;
}

/* W of all groups for one ridge, into s->trial. */
static enum accel_err solve_all(bool *definite, struct solver *s, int parts, double lambda)
{
    const struct accel_gram *g = s->g;
    size_t n = (g->n_x + 1) * g->n_y;
    *definite = true;
    memcpy(s->trial, s->w0, g->n_group * n * sizeof *s->trial);
    for (size_t i = 0; *definite && i < g->n_group; i++) {
        const struct output *o = s->output + i * g->n_y;
        ACCEL_TRY(find_error(s, i, parts));
        for (size_t k = 0, end; *definite && k < g->n_y; k = end) {
            end = class_end(o, k, g->n_y);
            ACCEL_TRY(solve_class(definite, s, s->trial + i * n, i, parts, o + k, end - k, lambda));
        }
    }
    for (size_t i = 0; *definite && i < g->n_group * n; i++)
        *definite = isfinite(s->trial[i]);
    return ACCEL_OK;
}

enum accel_err accel_gram_error(double *out, const struct accel_gram *g, enum accel_gram_part part,
                                const double *w)
{
    size_t side = g->n_x + 1, n = side * g->n_y;
    double *gw = accel_calloc(n, sizeof *gw);
    enum accel_err err = gw ? ACCEL_OK : accel_fail_nomem();
    *out = 0;
    for (size_t i = 0; !err && i < g->n_group; i++) {
        err = accel_linalg_symmetric(gw, g->g[part] + i * side * side, w + i * n, side, g->n_y, 0);
        for (size_t k = 0; !err && k < n; k++)
            *out += w[i * n + k] * (gw[k] - 2 * g->c[part][i * n + k]);
        for (size_t k = 0; !err && k < g->n_y; k++)
            *out += g->yy[part][i * g->n_y + k];
    }
    accel_free(gw);
    return err;
}

static enum accel_err search(struct accel_gram_fit *fit, struct solver *s)
{
    const struct accel_gram *g = s->g;
    double best, error;
    ACCEL_TRY(accel_gram_error(&best, g, ACCEL_GRAM_HELD, s->w0));
    double per = (double)g->n_row[ACCEL_GRAM_HELD] * (double)(g->n_group * g->n_y);
    fit->before = fit->after = best / per;
    for (int i = 0; i < N_GRID; i++) {
        bool definite;
        ACCEL_TRY(solve_all(&definite, s, 1, grid[i]));
        if (!definite)
            continue;
        ACCEL_TRY(accel_gram_error(&error, g, ACCEL_GRAM_HELD, s->trial));
        if (!(error < best))
            continue;
        best = error;
        fit->kept = true;
        fit->lambda = grid[i];
        fit->after = error / per;
    }
    return ACCEL_OK;
}

static enum accel_err solver_init(struct solver *s, const bool *free)
{
    const struct accel_gram *g = s->g;
    size_t side = g->n_x + 1, n = side * g->n_y;
    s->output = accel_calloc(g->n_group * g->n_y, sizeof *s->output);
    s->trial = accel_calloc(g->n_group * n, sizeof *s->trial);
    s->error = accel_calloc(n, sizeof *s->error);
    s->a = accel_calloc(side * side, sizeof *s->a);
    s->b = accel_calloc(n, sizeof *s->b);
    s->ridge = accel_calloc(side, sizeof *s->ridge);
    s->entry = accel_calloc(side, sizeof *s->entry);
    if (!s->output || !s->trial || !s->error || !s->a || !s->b || !s->ridge || !s->entry)
        return accel_fail_nomem();
    for (size_t i = 0; i < g->n_group; i++) {
        struct output *o = s->output + i * g->n_y;
        for (size_t k = 0; k < g->n_y; k++)
            o[k] = (struct output){free ? free + (i * g->n_y + k) * side : NULL, side, k};
        if (free && g->n_y)
            qsort(o, g->n_y, sizeof *o, by_free);
    }
    return ACCEL_OK;
}

enum accel_err accel_gram_solve(struct accel_gram_fit *fit, const struct accel_gram *g, double *w,
                                const bool *free)
{
    struct solver s = {.g = g, .w0 = w};
    bool definite;
    *fit = (struct accel_gram_fit){.lambda = NAN};
    enum accel_err err = solver_init(&s, free);
    if (!err && cost(&s) * (N_GRID + 1) > ACCEL_GRAM_MACS)
        err = accel_fail(ACCEL_ENOSUP, "solving takes %.3g multiply-adds, more than %.3g",
                         cost(&s) * (N_GRID + 1), ACCEL_GRAM_MACS);
    if (!err && g->n_row[ACCEL_GRAM_FIT] && g->n_row[ACCEL_GRAM_HELD])
        err = search(fit, &s);
    if (!err && fit->kept) {
        err = solve_all(&definite, &s, ACCEL_GRAM_PARTS, fit->lambda);
        fit->kept = definite;
        if (!err && definite)
            memcpy(w, s.trial, g->n_group * (g->n_x + 1) * g->n_y * sizeof *w);
    }
    accel_free(s.output);
    accel_free(s.trial);
    accel_free(s.error);
    accel_free(s.a);
    accel_free(s.b);
    accel_free(s.ridge);
    accel_free(s.entry);
    return err;
}
