/* Contents are found by running plain kernels on trial values, so most of this file prepares calls.
 *
 * A value whose elements are the same in all trials is stored once (the probes share memory), and a
 * node whose inputs are all like that runs its kernel once. What is kept lies in the arena of the
 * inference, up to LIMIT bytes for a whole model: a small file can ask for very many contents.
 *
 * Equal results in a few trials prove nothing where an operator compares: n < 10^9 holds in all of
 * them. Such a node runs again with every element that is not constant replaced by c, for each
 * constant c among its inputs, where its results change. A truth value that still depends on a
 * symbol is not kept: And, Or and Where would make "constants" of it. Sizes are never negative, so
 * negative constants need no trial. */
#include "graph/constprop.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

#define LIMIT      ((uint64_t)64 << 20)
#define MAX_TRIALS 32

static struct accel_symbols *symbols_of(const struct accel_value *v)
{
    return &v->graph->model->symbols;
}

static bool is_real(enum accel_dtype dtype)
{
    return accel_dtype_find(dtype)->cls == ACCEL_CLASS_REAL;
}

static bool fits(enum accel_dtype dtype, int64_t n)
{
    const struct accel_dtype_info *info = accel_dtype_find(dtype);
    return info && info->cls != ACCEL_CLASS_OTHER && n >= 0 && n <= ACCEL_KNOWN_MAX;
}

static size_t elem_size(bool real)
{
    return real ? sizeof(float) : sizeof(int64_t);
}

/* Room for n elements in n_probes versions; *out NULL when the budget of the model is used up. */
static enum accel_err known_new(struct accel_known **out, struct accel_symbols *s, int64_t n,
                                bool real, int n_probes)
{
    size_t size = (size_t)n * elem_size(real);
    *out = NULL;
    if (s->known_size + size * (size_t)n_probes > LIMIT)
        return ACCEL_OK;
    s->known_size += size * (size_t)n_probes;
    struct accel_known *k = ACCEL_NEW(&s->inferred, struct accel_known, 1);
    if (!k)
        return accel_fail_nomem();
    k->n = n;
    k->real = real;
    for (int p = 0; p < ACCEL_N_PROBES; p++) {
        k->probe[p] =
            p < n_probes ? accel_arena_new(&s->inferred, size ? size : 1, 1) : k->probe[0];
        if (!k->probe[p])
            return accel_fail_nomem();
    }
    *out = k;
    return ACCEL_OK;
}

/* All probes share one memory: nothing depends on a symbol. */
static bool is_constant(const struct accel_known *k)
{
    return k->probe[1] == k->probe[0];
}

static bool same_in_all(const struct accel_known *k, int64_t i)
{
    size_t size = elem_size(k->real), at = (size_t)i * size;
    for (int p = 1; p < ACCEL_N_PROBES; p++)
        if (memcmp((char *)k->probe[p] + at, (char *)k->probe[0] + at, size) != 0)
            return false;
    return true;
}

/* Reads a small stored constant. */
static enum accel_err read_tensor(struct accel_known **out, struct accel_value *v)
{
    const struct accel_tensor *t = v->tensor;
    int64_t n = (int64_t)t->n;
    void *stored = NULL;
    double *wide = NULL;
    ACCEL_TRY(known_new(out, symbols_of(v), n, is_real(t->dtype), 1));
    if (!*out)
        return ACCEL_OK;
    enum accel_err err = ACCEL_OK;
    stored = accel_calloc((size_t)t->size + 1, 1);
    wide = accel_calloc((size_t)n + 1, sizeof *wide);
    if (!stored || !wide) {
        err = accel_fail_nomem();
        goto done;
    }
    ACCEL_GOTO(err, accel_tensor_read(t, 0, t->n, stored));
    if (!(*out)->real) {
        accel_dtype_to_i64(t->dtype, stored, 0, (size_t)n, (*out)->probe[0]);
    } else {
        accel_dtype_to_f64(t->dtype, stored, 0, (size_t)n, wide);
        for (int64_t i = 0; i < n; i++) {
            float f = ((float *)(*out)->probe[0])[i] = (float)wide[i];
            if (isinf(f) && !isinf(wide[i])) { /* too large for what kernels compute with */
                *out = NULL;
                goto done;
            }
        }
    }
done:
    if (err)
        *out = NULL; /* else its zeros would pass for contents the next time */
    accel_free(stored);
    accel_free(wide);
    return err;
}

static bool is_readable(const struct accel_value *v)
{
    return v->known || (v->tensor && v->tensor->n <= ACCEL_KNOWN_MAX &&
                        fits(v->tensor->dtype, (int64_t)v->tensor->n));
}

static enum accel_err get(const struct accel_known **out, struct accel_value *v)
{
    *out = v->known;
    if (v->known || !is_readable(v))
        return ACCEL_OK;
    ACCEL_TRY(read_tensor(&v->known, v));
    *out = v->known;
    return ACCEL_OK;
}

const struct accel_known *accel_known_get(struct accel_value *v)
{
    const struct accel_known *k;
    enum accel_err err = get(&k, v);
    if (err)
        symbols_of(v)->failed = err;
    return err ? NULL : k;
}

bool accel_known_constant(int64_t *out, const struct accel_known *k, int64_t i)
{
    if (k->real || i < 0 || i >= k->n || !same_in_all(k, i))
        return false;
    *out = ((const int64_t *)k->probe[0])[i];
    return true;
}

enum accel_err accel_known_dim(struct accel_dim *out, struct accel_value *v,
                               const struct accel_known *k, int64_t i)
{
    int64_t probe[ACCEL_N_PROBES];
    *out = accel_dim_unknown();
    if (k->real || i < 0 || i >= k->n)
        return ACCEL_OK;
    if (same_in_all(k, i)) {
        int64_t n = ((const int64_t *)k->probe[0])[i];
        *out = n >= 0 ? accel_dim_of(n) : accel_dim_unknown();
        return ACCEL_OK;
    }
    for (int p = 0; p < ACCEL_N_PROBES; p++) {
        probe[p] = ((const int64_t *)k->probe[p])[i];
        if (probe[p] < 0)
            return ACCEL_OK;
    }
    return accel_dim_of_probes(out, symbols_of(v), probe);
}

static bool all_constant(const struct accel_known *k)
{
    for (int64_t i = 0; !is_constant(k) && i < k->n; i++)
        if (!same_in_all(k, i))
            return false;
    return true;
}

enum accel_err accel_known_ints(const int64_t **out, int64_t *n, struct accel_value *v)
{
    const struct accel_known *k;
    *out = NULL;
    *n = 0;
    ACCEL_TRY(get(&k, v));
    if (!k || k->real || !all_constant(k))
        return ACCEL_OK;
    *out = k->probe[0];
    *n = k->n;
    return ACCEL_OK;
}

enum accel_err accel_known_floats(const float **out, int64_t *n, struct accel_value *v)
{
    const struct accel_known *k;
    *out = NULL;
    *n = 0;
    ACCEL_TRY(get(&k, v));
    if (!k || !k->real || !all_constant(k))
        return ACCEL_OK;
    *out = k->probe[0];
    *n = k->n;
    return ACCEL_OK;
}

enum accel_err accel_known_set_dims(struct accel_value *v, const struct accel_dim *d, int64_t n)
{
    struct accel_symbols *s = symbols_of(v);
    bool numbers = true;
    v->known = NULL;
    if (n < 0 || n > ACCEL_KNOWN_MAX)
        return ACCEL_OK;
    for (int64_t i = 0; i < n; i++) {
        if (d[i].n < 0 && d[i].sym < 0)
            return ACCEL_OK;
        numbers = numbers && d[i].n >= 0;
    }
    struct accel_known *k;
    ACCEL_TRY(known_new(&k, s, n, false, numbers ? 1 : ACCEL_N_PROBES));
    for (int p = 0; k && p < ACCEL_N_PROBES; p++)
        for (int64_t i = 0; i < n; i++)
            ((int64_t *)k->probe[p])[i] = d[i].n >= 0 ? d[i].n : s->at[d[i].sym].probe[p];
    v->known = k;
    return ACCEL_OK;
}

/* ------------------------------------------------------------------------------ running kernels */

/* One node's call: operands with dims, and the contents that go through them. */
struct trial {
    struct accel_node *node;
    struct accel_array *x, *y;        /* [n_in], [n_out] */
    const struct accel_known **known; /* [n_in] */
    struct accel_known **made;        /* [n_out] NULL where there is no output */
    struct accel_arena arena;
    bool constant; /* no input depends on a symbol */
    bool failed;   /* the kernel cannot: not known, no error */
};

/* What a kernel sees of a value. Operators that move elements get them as they are kept here. */
static enum accel_err describe(struct accel_array *a, struct trial *t, const struct accel_value *v)
{
    bool moves = t->node->op->flags & ACCEL_OP_MOVES;
    a->dtype = !moves ? v->dtype : is_real(v->dtype) ? ACCEL_F32 : ACCEL_I64;
    a->rank = v->shape.rank;
    a->n = accel_shape_count(&v->shape);
    int64_t *dim = ACCEL_NEW(&t->arena, int64_t, a->rank);
    if (!dim)
        return accel_fail_nomem();
    for (int i = 0; i < a->rank; i++)
        dim[i] = v->shape.dim[i].n;
    a->dim = dim;
    return ACCEL_OK;
}

/* Kernels rely on every operand that is not optional. */
static bool is_complete(const struct accel_node *n)
{
    if (n->n_in < n->op->min_in || n->n_out < n->op->min_out)
        return false;
    for (int i = 0; i < n->op->min_in; i++)
        if (!n->in[i])
            return false;
    for (int i = 0; i < n->op->min_out; i++)
        if (!n->out[i])
            return false;
    return true;
}

static bool is_candidate(const struct accel_node *n)
{
    if (!n->op || !n->op->forward || n->op->scratch ||
        (n->op->flags & (ACCEL_OP_RANDOM | ACCEL_OP_BODIES)) || !is_complete(n))
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] && !is_readable(n->in[i]))
            return false;
    for (int i = 0; i < n->n_out; i++) {
        const struct accel_value *v = n->out[i];
        if (v && (v->tensor || v->known || !fits(v->dtype, accel_shape_count(&v->shape))))
            return false;
    }
    return true;
}

static enum accel_err prepare(struct trial *t, bool *ready)
{
    struct accel_node *n = t->node;
    t->x = ACCEL_NEW(&t->arena, struct accel_array, n->n_in);
    t->y = ACCEL_NEW(&t->arena, struct accel_array, n->n_out);
    t->known = ACCEL_NEW(&t->arena, const struct accel_known *, n->n_in);
    t->made = ACCEL_NEW(&t->arena, struct accel_known *, n->n_out);
    if (!t->x || !t->y || !t->known || !t->made)
        return accel_fail_nomem();
    t->constant = true;
    *ready = false;
    for (int i = 0; i < n->n_in; i++) {
        struct accel_value *v = n->in[i];
        if (!v)
            continue;
        ACCEL_TRY(get(&t->known[i], v));
        if (!t->known[i] || !fits(v->dtype, accel_shape_count(&v->shape)) ||
            accel_shape_count(&v->shape) != t->known[i]->n ||
            is_real(v->dtype) != t->known[i]->real)
            return ACCEL_OK;
        t->constant = t->constant && is_constant(t->known[i]);
        ACCEL_TRY(describe(&t->x[i], t, v));
    }
    for (int i = 0; i < n->n_out; i++) {
        struct accel_value *v = n->out[i];
        if (!v)
            continue;
        ACCEL_TRY(describe(&t->y[i], t, v));
        ACCEL_TRY(known_new(&t->made[i], symbols_of(v), t->y[i].n, is_real(v->dtype),
                            t->constant ? 1 : ACCEL_N_PROBES));
        if (!t->made[i])
            return ACCEL_OK;
    }
    *ready = true;
    return ACCEL_OK;
}

static enum accel_err run(struct trial *t)
{
    const struct accel_call call = {.node = t->node, .x = t->x, .y = t->y};
    enum accel_err err = t->node->op->forward(&call);
    t->failed = err != ACCEL_OK;
    return err == ACCEL_ENOMEM ? err : ACCEL_OK;
}

static enum accel_err run_probe(struct trial *t, int p)
{
    for (int i = 0; i < t->node->n_in; i++)
        t->x[i].data = t->known[i] ? t->known[i]->probe[p] : NULL;
    for (int i = 0; i < t->node->n_out; i++)
        t->y[i].data = t->made[i] ? t->made[i]->probe[p] : NULL;
    return run(t);
}

/* ------------------------------------------------------------------ operators that compare */

static double element(const struct accel_known *k, int64_t i)
{
    return k->real ? (double)((const float *)k->probe[0])[i]
                   : (double)((const int64_t *)k->probe[0])[i];
}

/* Adds c to the ascending list c[0 … *n) unless it is there; false when the list is full. */
static bool add_trial(double *c, int *n, double value)
{
    int i = 0;
    while (i < *n && c[i] < value)
        i++;
    if (i < *n && !(c[i] > value))
        return true;
    if (*n == MAX_TRIALS)
        return false;
    memmove(c + i + 1, c + i, (size_t)(*n - i) * sizeof *c);
    c[i] = value;
    ++*n;
    return true;
}

/* The constants that the node may compare a size with. False: too many. */
static bool collect(double c[MAX_TRIALS], int *n, const struct trial *t)
{
    *n = 0;
    for (int o = 0; o < t->node->n_out; o++)
        if (t->made[o] && t->y[o].dtype == ACCEL_BOOL && !add_trial(c, n, 0))
            return false;
    for (int i = 0; i < t->node->n_in; i++)
        for (int64_t k = 0; t->known[i] && k < t->known[i]->n; k++) {
            if (!same_in_all(t->known[i], k))
                continue;
            double value = element(t->known[i], k);
            if (value >= 0 && value < 9e18 && !add_trial(c, n, value))
                return false;
        }
    return true;
}

/* The input with c in place of what is not constant. */
static enum accel_err replace(struct trial *t, int i, double c)
{
    const struct accel_known *k = t->known[i];
    size_t size = elem_size(k->real);
    char *copy = accel_arena_new(&t->arena, (size_t)k->n + 1, size);
    if (!copy)
        return accel_fail_nomem();
    for (int64_t e = 0; e < k->n; e++) {
        if (same_in_all(k, e))
            memcpy(copy + (size_t)e * size, (char *)k->probe[0] + (size_t)e * size, size);
        else if (k->real)
            ((float *)(void *)copy)[e] = (float)c;
        else
            ((int64_t *)(void *)copy)[e] = (int64_t)c;
    }
    t->x[i].data = copy;
    return ACCEL_OK;
}

/* *sound: elements equal in all probes stay what they are at every constant compared with, and no
 * truth value depends on a symbol. */
static enum accel_err check_compares(bool *sound, struct trial *t)
{
    double c[MAX_TRIALS];
    int n_c;
    *sound = false;
    for (int o = 0; o < t->node->n_out; o++)
        if (t->made[o] && t->y[o].dtype == ACCEL_BOOL && !all_constant(t->made[o]))
            return ACCEL_OK;
    if (!collect(c, &n_c, t))
        return ACCEL_OK;
    for (int j = 0; j < n_c; j++) {
        for (int i = 0; i < t->node->n_in; i++)
            if (t->known[i])
                ACCEL_TRY(replace(t, i, c[j]));
        for (int o = 0; o < t->node->n_out; o++)
            if (t->made[o]) {
                t->y[o].data = accel_arena_new(&t->arena, (size_t)t->y[o].n + 1, sizeof(int64_t));
                if (!t->y[o].data)
                    return accel_fail_nomem();
            }
        ACCEL_TRY(run(t));
        if (t->failed)
            return ACCEL_OK;
        for (int o = 0; o < t->node->n_out; o++)
            for (int64_t e = 0; t->made[o] && e < t->y[o].n; e++) {
                size_t size = elem_size(t->made[o]->real), at = (size_t)e * size;
                if (same_in_all(t->made[o], e) &&
                    memcmp((char *)t->y[o].data + at, (char *)t->made[o]->probe[0] + at, size) != 0)
                    return ACCEL_OK;
            }
    }
    *sound = true;
    return ACCEL_OK;
}

static bool compares(const struct trial *t)
{
    if (t->node->op->flags & ACCEL_OP_COMPARES)
        return true;
    for (int o = 0; o < t->node->n_out; o++)
        if (t->made[o] && t->node->out[o]->dtype == ACCEL_BOOL)
            return true;
    return false;
}

static enum accel_err propagate(struct trial *t)
{
    bool ok;
    ACCEL_TRY(prepare(t, &ok));
    for (int p = 0; ok && p < (t->constant ? 1 : ACCEL_N_PROBES); p++) {
        ACCEL_TRY(run_probe(t, p));
        ok = !t->failed;
    }
    if (ok && !t->constant && compares(t))
        ACCEL_TRY(check_compares(&ok, t));
    for (int o = 0; ok && o < t->node->n_out; o++)
        if (t->node->out[o])
            t->node->out[o]->known = t->made[o];
    return ACCEL_OK;
}

enum accel_err accel_known_propagate(struct accel_node *n)
{
    if (!is_candidate(n))
        return ACCEL_OK;
    struct trial t = {.node = n};
    enum accel_err err = propagate(&t);
    accel_arena_clear(&t.arena);
    return err;
}
