/* Symbols are found again in three ways: by name, by the rule that derives them, and by their trial
 * values, all through string keys in maps.
 *
 * Derived symbols are kept in one form, floor((mul*s + add) / div) of a symbol s that is not itself
 * derived if that is possible: floor(floor((m*s + a)/d) + b)/e) = floor((m*s + a + b*d)/(d*e)), and
 * common factors of mul and div are taken out. So (x+1)/2 of (x+1)/2 meets (x+3)/4.
 *
 * Trial values: 1, a small and a large number that look random, so that what is computed from
 * different symbols hardly ever agrees by chance; the large one stays below 2^17, so that products
 * of three fit and single ones are exact as float. */
#include "graph/shape.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

/* Maps store pointers that are not NULL: the index of the symbol plus one. */
static void *pack(int sym)
{
    return (void *)((uintptr_t)sym + 1);
}

static int unpack(void *p)
{
    return p ? (int)((uintptr_t)p - 1) : -1;
}

static enum accel_err remember(struct accel_symbols *s, const char *key, int sym)
{
    char *copy = accel_arena_strndup(&s->inferred, key, strlen(key));
    return copy && accel_map_put(&s->by_rule, copy, pack(sym)) ? ACCEL_OK : accel_fail_nomem();
}

static void probe_key(char *key, size_t size, const int64_t probe[ACCEL_N_PROBES])
{
    snprintf(key, size, "p:%" PRIx64 ":%" PRIx64 ":%" PRIx64, (uint64_t)probe[0],
             (uint64_t)probe[1], (uint64_t)probe[2]);
}

/* Appends a symbol; *out is its index. */
static enum accel_err add(int *out, struct accel_symbols *s, const struct accel_symbol *sym)
{
    if (s->n >= INT_MAX || !ACCEL_GROW(s->at, s->cap, s->n + 1))
        return accel_fail_nomem();
    s->at[s->n] = *sym;
    *out = (int)s->n++;
    char key[64];
    probe_key(key, sizeof key, sym->probe);
    return accel_map_find(&s->by_rule, key) ? ACCEL_OK : remember(s, key, *out);
}

/* Trial values of the next symbol, which no other one has. */
static void choose_probes(int64_t probe[ACCEL_N_PROBES], const struct accel_symbols *s)
{
    uint64_t i = (uint64_t)s->n * 0x632be59bd9b4e019u;
    char key[64];
    for (int tries = 0; tries < 16; tries++) {
        uint64_t z = (i += 0x9e3779b97f4a7c15u);
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        z ^= z >> 31;
        probe[0] = 1;
        probe[1] = 17 + (int64_t)(z & 63);
        probe[2] = 65536 + (int64_t)(z >> 8 & 65535);
        probe_key(key, sizeof key, probe);
        if (!accel_map_find(&s->by_rule, key))
            return;
    }
}

enum accel_err accel_dim_named(struct accel_dim *out, struct accel_symbols *s, const char *name)
{
    int sym = unpack(accel_map_find(&s->by_name, name));
    if (sym < 0) {
        struct accel_symbol fresh = {.bound = -1, .base = -1, .mul = 1, .div = 1};
        fresh.name = accel_arena_strndup(&s->arena, name, strlen(name));
        if (!fresh.name)
            return accel_fail_nomem();
        choose_probes(fresh.probe, s);
        ACCEL_TRY(add(&sym, s, &fresh));
        if (!accel_map_put(&s->by_name, fresh.name, pack(sym)))
            return accel_fail_nomem();
        s->n_kept = s->n;
    }
    *out = accel_dim_bound((struct accel_dim){-1, sym}, s);
    return ACCEL_OK;
}

enum accel_err accel_dim_fresh(struct accel_dim *out, struct accel_symbols *s)
{
    struct accel_symbol fresh = {.bound = -1, .base = -1, .mul = 1, .div = 1};
    choose_probes(fresh.probe, s);
    *out = accel_dim_unknown();
    return add(&out->sym, s, &fresh);
}

enum accel_err accel_dim_of_probes(struct accel_dim *out, struct accel_symbols *s,
                                   const int64_t probe[ACCEL_N_PROBES])
{
    char key[64];
    bool same = true;
    *out = accel_dim_unknown();
    for (int i = 0; i < ACCEL_N_PROBES; i++) {
        if (probe[i] < 0)
            return ACCEL_OK;
        same = same && probe[i] == probe[0];
    }
    if (same) {
        *out = accel_dim_of(probe[0]);
        return ACCEL_OK;
    }
    probe_key(key, sizeof key, probe);
    out->sym = unpack(accel_map_find(&s->by_rule, key));
    if (out->sym >= 0)
        return ACCEL_OK;
    struct accel_symbol sym = {.bound = -1, .base = -1, .mul = 1, .div = 1};
    memcpy(sym.probe, probe, sizeof sym.probe);
    return add(&out->sym, s, &sym);
}

int64_t accel_dim_probe(struct accel_dim d, const struct accel_symbols *s, int p)
{
    return d.n >= 0 ? d.n : d.sym >= 0 ? s->at[d.sym].probe[p] : -1;
}

struct accel_dim accel_dim_bound(struct accel_dim d, const struct accel_symbols *s)
{
    if (d.n < 0 && d.sym >= 0 && (size_t)d.sym < s->n && s->at[d.sym].bound >= 0)
        return accel_dim_of(s->at[d.sym].bound);
    return d;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

/* floor((mul*v + add) / div); false when it overflows. */
static bool apply(int64_t *out, int64_t v, int64_t mul, int64_t plus, int64_t div)
{
    int64_t t;
    if (__builtin_mul_overflow(v, mul, &t) || __builtin_add_overflow(t, plus, &t))
        return false;
    *out = floor_div(t, div);
    return true;
}

/* Rewrites the rule over the symbol that `base` is derived from, where floors can be joined. */
static void rebase(const struct accel_symbols *s, int *base, int64_t *mul, int64_t *plus,
                   int64_t *div)
{
    const struct accel_symbol *b = &s->at[*base];
    int64_t m, p, d, t;
    if (b->base < 0 || (*mul != 1 && b->div != 1))
        return;
    if (__builtin_mul_overflow(*mul, b->mul, &m) || __builtin_mul_overflow(*mul, b->add, &p) ||
        __builtin_mul_overflow(*plus, b->div, &t) || __builtin_add_overflow(p, t, &p) ||
        __builtin_mul_overflow(*div, b->div, &d))
        return;
    *base = b->base;
    *mul = m;
    *plus = p;
    *div = d;
}

enum accel_err accel_dim_derive(struct accel_dim *out, struct accel_symbols *s, struct accel_dim d,
                                int64_t mul, int64_t plus, int64_t div, int64_t off)
{
    *out = accel_dim_unknown();
    if (div <= 0)
        return accel_fail(ACCEL_ESHAPE, "a size divided by %" PRId64, div);
    if (accel_dim_known(d)) {
        int64_t v;
        if (!apply(&v, d.n, mul, plus, div) || __builtin_add_overflow(v, off, &v) || v < 0)
            return accel_fail(ACCEL_ESHAPE,
                              "a size comes out negative or too large (from %" PRId64 ")", d.n);
        *out = accel_dim_of(v);
        return ACCEL_OK;
    }
    int64_t shift;
    if (d.sym < 0 || mul <= 0 || __builtin_mul_overflow(off, div, &shift) ||
        __builtin_add_overflow(plus, shift, &plus))
        return ACCEL_OK;
    int base = d.sym;
    rebase(s, &base, &mul, &plus, &div);
    int64_t g = gcd(mul, div);
    mul /= g;
    div /= g;
    plus = floor_div(plus, g);
    if (mul == 1 && div == 1 && plus == 0) {
        *out = (struct accel_dim){-1, base};
        return ACCEL_OK;
    }
    char key[128];
    snprintf(key, sizeof key, "d:%d:%" PRId64 ":%" PRId64 ":%" PRId64, base, mul, plus, div);
    out->sym = unpack(accel_map_find(&s->by_rule, key));
    if (out->sym >= 0)
        return ACCEL_OK;
    struct accel_symbol sym = {.bound = -1, .base = base, .mul = mul, .add = plus, .div = div};
    for (int i = 0; i < ACCEL_N_PROBES; i++)
        if (!apply(&sym.probe[i], s->at[base].probe[i], mul, plus, div))
            return ACCEL_OK;
        else if (sym.probe[i] < 0)
            sym.probe[i] = 0;
    char probes[64];
    probe_key(probes, sizeof probes, sym.probe);
    out->sym = unpack(accel_map_find(&s->by_rule, probes));
    if (out->sym < 0)
        ACCEL_TRY(add(&out->sym, s, &sym));
    return remember(s, key, out->sym);
}

enum accel_err accel_dim_mul(struct accel_dim *out, struct accel_symbols *s, struct accel_dim a,
                             struct accel_dim b)
{
    *out = accel_dim_unknown();
    if (a.n == 0 || b.n == 0) {
        *out = accel_dim_of(0);
        return ACCEL_OK;
    }
    if (accel_dim_known(a))
        return accel_dim_derive(out, s, b, a.n, 0, 1, 0);
    if (accel_dim_known(b))
        return accel_dim_derive(out, s, a, b.n, 0, 1, 0);
    if (a.sym < 0 || b.sym < 0)
        return ACCEL_OK;
    int64_t probe[ACCEL_N_PROBES];
    for (int i = 0; i < ACCEL_N_PROBES; i++)
        if (__builtin_mul_overflow(s->at[a.sym].probe[i], s->at[b.sym].probe[i], &probe[i]))
            return ACCEL_OK;
    return accel_dim_of_probes(out, s, probe);
}

int64_t accel_shape_count(const struct accel_shape *s)
{
    int64_t n = 1;
    if (s->rank < 0)
        return -1;
    for (int i = 0; i < s->rank; i++)
        if (s->dim[i].n < 0)
            return -1;
    for (int i = 0; i < s->rank; i++)
        if (s->dim[i].n == 0)
            return 0;
    for (int i = 0; i < s->rank; i++)
        if (__builtin_mul_overflow(n, s->dim[i].n, &n))
            return -1;
    return n;
}

const char *accel_dim_text(struct accel_dim d, const struct accel_symbols *s, char *buf,
                           size_t size)
{
    if (d.n >= 0)
        snprintf(buf, size, "%" PRId64, d.n);
    else if (d.sym >= 0 && (size_t)d.sym < s->n && s->at[d.sym].name)
        snprintf(buf, size, "%s", s->at[d.sym].name);
    else
        snprintf(buf, size, "?");
    return buf;
}

const char *accel_shape_text(const struct accel_shape *sh, const struct accel_symbols *s, char *buf,
                             size_t size)
{
    if (sh->rank <= 0) {
        snprintf(buf, size, "%s", sh->rank < 0 ? "?" : "scalar");
        return buf;
    }
    size_t used = 0;
    if (size)
        buf[0] = 0;
    for (int i = 0; i < sh->rank && used + 1 < size; i++) {
        if (i)
            buf[used++] = 'x';
        accel_dim_text(sh->dim[i], s, buf + used, size - used);
        used += strlen(buf + used);
    }
    return buf;
}

enum accel_err accel_symbols_restart(struct accel_symbols *s)
{
    accel_map_clear(&s->by_rule);
    accel_arena_clear(&s->inferred);
    s->n = s->n_kept;
    s->known_size = 0;
    for (size_t i = 0; i < s->n; i++) {
        char key[64];
        probe_key(key, sizeof key, s->at[i].probe);
        ACCEL_TRY(remember(s, key, (int)i));
    }
    return ACCEL_OK;
}

void accel_symbols_clear(struct accel_symbols *s)
{
    accel_map_clear(&s->by_name);
    accel_map_clear(&s->by_rule);
    accel_arena_clear(&s->arena);
    accel_arena_clear(&s->inferred);
    accel_free(s->at);
    *s = (struct accel_symbols){0};
}
