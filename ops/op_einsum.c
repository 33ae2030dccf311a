/* Einsum: "bhik,bhjk->bhij" names the axes of every input by letters; equal letters are equal axes,
 * letters missing from the output are summed, "..." stands for any leading axes, which broadcast.
 *
 * parse() checks the equation once and keeps it without spaces; infer() and cost() walk it with
 * `struct scan`, which collects the size behind every letter. */
#include <limits.h>
#include <string.h>

#include "graph/attr.h"
#include "ops/arith.h"
#include "ops/link_util.h"
#include "ops/operand.h"
#include "ops/real.h"

#define N_LETTERS 52

struct einsum_params {
    const char *terms; /* "bhik,bhjk", no spaces */
    const char *out;   /* "bhij" */
};

struct scan {
    struct accel_dim size[N_LETTERS];
    bool used[N_LETTERS];
    struct accel_shape dots; /* axes behind "..."; rank -1: not known */
    bool has_dots;
};

static int letter(char c)
{
    return c >= 'a' && c <= 'z' ? c - 'a' : c >= 'A' && c <= 'Z' ? c - 'A' + 26 : -1;
}

/* One term: letters and at most one "...". Counts the letters. */
static enum accel_err check_term(const char *at, size_t len, int *letters, bool *dots)
{
    *letters = 0;
    *dots = false;
    for (size_t i = 0; i < len; i++) {
        if (letter(at[i]) >= 0) {
            ++*letters;
        } else if (len - i >= 3 && strncmp(at + i, "...", 3) == 0 && !*dots) {
            *dots = true;
            i += 2;
        } else {
            return accel_fail(ACCEL_EMODEL, "attribute 'equation' has a wrong term: \"%.*s\"",
                              (int)(len < 100 ? len : 100), at);
        }
    }
    return ACCEL_OK;
}

/* The output of an equation without "->": "..." and the letters that occur once, sorted. */
static void implicit_out(char *out, const char *terms)
{
    static const char order[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    unsigned char times[N_LETTERS] = {0};
    for (const char *s = terms; *s; s++)
        if (letter(*s) >= 0 && times[letter(*s)] < 2)
            times[letter(*s)]++;
    if (strstr(terms, "..."))
        out = stpcpy(out, "...");
    for (const char *s = order; *s; s++)
        if (times[letter(*s)] == 1)
            *out++ = *s;
    *out = '\0';
}

static enum accel_err check_out(const struct einsum_params *p)
{
    bool used[N_LETTERS] = {false}, dots;
    int letters;
    ACCEL_TRY(check_term(p->out, strlen(p->out), &letters, &dots));
    for (const char *s = p->out; *s; s++) {
        int l = letter(*s);
        if (l < 0)
            continue;
        if (used[l] || !strchr(p->terms, *s))
            return accel_fail(ACCEL_EMODEL, "attribute 'equation' has output '%c' %s", *s,
                              used[l] ? "twice" : "that no input has");
        used[l] = true;
    }
    return ACCEL_OK;
}

static enum accel_err parse(struct accel_node *n, int opset)
{
    const char *text;
    (void)opset;
    ACCEL_TRY(accel_attr_string(&text, n, "equation", ""));
    struct einsum_params *p = ACCEL_NEW(&n->graph->model->arena, struct einsum_params, 1);
    size_t len = strlen(text), k = 0;
    char *terms = ACCEL_NEW(&n->graph->model->arena, char, len + 1);
    char *out = ACCEL_NEW(&n->graph->model->arena, char, len + N_LETTERS + 4);
    if (!p || !terms || !out)
        return accel_fail_nomem();
    for (size_t i = 0; i < len; i++)
        if (text[i] != ' ')
            terms[k++] = text[i];
    char *arrow = strstr(terms, "->");
    if (arrow) {
        strcpy(out, arrow + 2);
        *arrow = '\0';
    } else {
        implicit_out(out, terms);
    }
    *p = (struct einsum_params){terms, out};
    int count = 0;
    for (const char *s = terms;; s++) {
        size_t term = strcspn(s, ",");
        int letters;
        bool dots;
        ACCEL_TRY(check_term(s, term, &letters, &dots));
        count++;
        s += term;
        if (!*s)
            break;
    }
    if (count != n->n_in)
        return accel_fail(ACCEL_EMODEL, "attribute 'equation' has %d terms for %d inputs", count,
                          n->n_in);
    ACCEL_TRY(check_out(p));
    n->params = p;
    return ACCEL_OK;
}

static enum accel_err join_letter(struct scan *s, char c, struct accel_dim d)
{
    int l = letter(c);
    struct accel_dim before = s->used[l] ? s->size[l] : accel_dim_of(1);
    if (!accel_dim_stretch(&s->size[l], before, d))
        return accel_fail(ACCEL_ESHAPE, "axis '%c' is %lld and %lld", c, (long long)before.n,
                          (long long)d.n);
    s->used[l] = true;
    return ACCEL_OK;
}

/* Lays `count` axes of input i, from `first` on, under the dots. */
static enum accel_err join_dots(struct scan *s, const struct accel_node *n, int i, int first,
                                int count)
{
    struct accel_shape wide;
    s->has_dots = true;
    if (s->dots.rank < 0 || count < 0) {
        s->dots.rank = -1;
        return ACCEL_OK;
    }
    int rank = count > s->dots.rank ? count : s->dots.rank;
    ACCEL_TRY(accel_shape_new(&wide, n, rank));
    for (int k = 0; k < rank; k++) {
        int a = k - (rank - s->dots.rank), b = k - (rank - count);
        struct accel_dim u = a >= 0 ? s->dots.dim[a] : accel_dim_of(1);
        struct accel_dim v = b >= 0 ? accel_operand_dim(n, i, first + b) : accel_dim_of(1);
        if (!accel_dim_stretch(&wide.dim[k], u, v))
            return accel_fail(ACCEL_ESHAPE, "an axis of \"...\" is %lld and %lld", (long long)u.n,
                              (long long)v.n);
    }
    s->dots = wide;
    return ACCEL_OK;
}

static enum accel_err scan_term(struct scan *s, const struct accel_node *n, int i, const char *term,
                                size_t len)
{
    int rank = accel_operand_rank(n, i), letters, axis = 0;
    bool dots;
    ACCEL_TRY(check_term(term, len, &letters, &dots));
    if (rank >= 0 && (dots ? rank < letters : rank != letters))
        return accel_fail(ACCEL_ESHAPE, "input %d has rank %d, the equation says \"%.*s\"", i, rank,
                          (int)(len < 100 ? len : 100), term);
    for (size_t k = 0; k < len; k++) {
        if (term[k] != '.') {
            struct accel_dim d = rank < 0 ? accel_dim_unknown() : accel_operand_dim(n, i, axis);
            ACCEL_TRY(join_letter(s, term[k], d));
            axis++;
            continue;
        }
        ACCEL_TRY(join_dots(s, n, i, axis, rank < 0 ? -1 : rank - letters));
        axis += rank < 0 ? 0 : rank - letters;
        k += 2;
    }
    return ACCEL_OK;
}

static enum accel_err scan(struct scan *s, const struct accel_node *n)
{
    const struct einsum_params *p = n->params;
    const char *at = p->terms;
    *s = (struct scan){.dots = {0, NULL}};
    for (int i = 0; i < n->n_in; i++) {
        size_t len = strcspn(at, ",");
        ACCEL_TRY(scan_term(s, n, i, at, len));
        at += len + (at[len] == ',');
    }
    return ACCEL_OK;
}

static enum accel_err infer(struct accel_node *n)
{
    const struct einsum_params *p = n->params;
    struct scan s;
    struct accel_shape y;
    ACCEL_TRY(scan(&s, n));
    bool dots = strstr(p->out, "...") != NULL;
    if (dots && s.dots.rank < 0)
        return accel_result_like(n, 0, accel_operand_dtype(n, 0), NULL);
    int rank = (int)strlen(p->out) + (dots ? s.dots.rank - 3 : 0), axis = 0;
    ACCEL_TRY(accel_shape_new(&y, n, rank));
    for (const char *c = p->out; *c; c++) {
        if (*c != '.') {
            y.dim[axis++] = s.size[letter(*c)];
            continue;
        }
        for (int k = 0; k < s.dots.rank; k++)
            y.dim[axis++] = s.dots.dim[k];
        c += 2;
    }
    accel_result_set(n, 0, accel_operand_dtype(n, 0), y);
    return ACCEL_OK;
}

/* All index combinations, once per product of two factors. */
static void cost(const struct accel_node *n, struct accel_cost *c)
{
    struct scan s;
    c->macs = -1;
    if (scan(&s, n) != ACCEL_OK || (s.has_dots && s.dots.rank < 0))
        return;
    int64_t all = n->n_in - 1;
    for (int l = 0; l < N_LETTERS; l++)
        if (s.used[l])
            all = accel_macs_mul(all, s.size[l].n);
    for (int k = 0; k < s.dots.rank; k++)
        all = accel_macs_mul(all, s.dots.dim[k].n);
    c->macs = all;
}

/* ------------------------------------------------------------------ links */

/* Axis that the term names by this letter; -1: none. */
static int axis_of_letter(const char *term, size_t len, char c)
{
    const char *at = memchr(term, c, len);
    return at ? (int)(at - term) : -1;
}

/* Equations whose letters are axes one to one: no dots, no letter twice in a term. */
static bool is_plain(const struct accel_node *n)
{
    const struct einsum_params *p = n->params;
    const char *at = p->terms;
    if (strchr(p->terms, '.') || strchr(p->out, '.'))
        return false;
    for (int i = 0; i < n->n_in; i++) {
        size_t len = strcspn(at, ",");
        if ((int)len != accel_slot_rank(n, i))
            return false;
        for (size_t k = 0; k < len; k++)
            if (memchr(at + k + 1, at[k], len - k - 1))
                return false;
        at += len + (at[len] == ',');
    }
    return true;
}

/* Operands with the axis of a letter (size 1 left out) into `at`, the output last; how many. -1:
 * one of another size. */
static int letter_sides(struct accel_axis *at, const struct accel_node *n, char c,
                        struct accel_dim d)
{
    const struct einsum_params *p = n->params;
    const char *term = p->terms;
    int count = 0, out = axis_of_letter(p->out, strlen(p->out), c);
    for (int i = 0; i < n->n_in; i++) {
        size_t len = strcspn(term, ",");
        int axis = axis_of_letter(term, len, c);
        term += len + (term[len] == ',');
        if (axis < 0 || n->in[i]->shape.dim[axis].n == 1)
            continue;
        if (!accel_dim_same(n->in[i]->shape.dim[axis], d))
            return -1;
        at[count++] = (struct accel_axis){i, axis};
    }
    if (count && out >= 0)
        at[count++] = (struct accel_axis){accel_link_out(n, 0), out};
    return count;
}

/* Calls `each` with the sides of every letter; `summed`: the output does not have it. */
static void each_letter(struct accel_links *l, void *ctx,
                        void (*each)(void *ctx, int count, const struct accel_axis *at,
                                     bool summed))
{
    const struct accel_node *n = l->node;
    const struct einsum_params *p = n->params;
    struct scan s;
    struct accel_axis *at = ACCEL_NEW(&l->arena, struct accel_axis, n->n_in + 1);
    if (!at) {
        l->err = accel_fail_nomem();
        return;
    }
    if (!is_plain(n) || !accel_links_ok(l, scan(&s, n)))
        return;
    for (int k = 0; k < N_LETTERS; k++) {
        char c = (char)(k < 26 ? 'a' + k : 'A' + k - 26);
        int count = s.used[k] ? letter_sides(at, n, c, s.size[k]) : 0;
        if (count > 0)
            each(ctx, count, at, !strchr(p->out, c));
    }
}

static void link_letter(void *ctx, int count, const struct accel_axis *at, bool summed)
{
    accel_links_axes(ctx, count, at);
    if (summed)
        accel_links_need0(ctx, count, at);
}

/* Operands of size 1 are no sides; letters of size 1 alone are never cut. */
static void links(const struct accel_node *n, struct accel_links *l)
{
    for (int i = 0; is_plain(n) && i < n->n_in; i++)
        for (int axis = 0; axis < accel_slot_rank(n, i); axis++)
            if (n->in[i]->shape.dim[axis].n == 1)
                accel_links_seen(l, i, axis);
    each_letter(l, l, link_letter);
}

static void zero_letter(void *ctx, int count, const struct accel_axis *at, bool summed)
{
    struct accel_zero *z = ctx;
    for (int i = 0; !summed && i < count - 1; i++)
        accel_zero_copy0(z, at[i].slot, at[i].axis, at[count - 1].slot, at[count - 1].axis);
}

static void zero(const struct accel_node *n, struct accel_zero *z)
{
    (void)n;
    each_letter(z->links, z, zero_letter);
}

/* ------------------------------------------------------------------ kernel */

#define N_AXES                                                                                     \
    (N_LETTERS + 16) /* letters, then the axes behind the dots, counted from the last              \
                      */

/* Sizes of all axes, and how far one step along each moves in an operand. */
struct walk {
    int64_t size[N_AXES];
    int order[N_AXES]; /* axes of the output, then those that are summed */
    int n_out, n_order;
};

/* Steps of one term in an array; sizes of 1 stretch. */
static enum accel_err term_steps(int64_t step[N_AXES], struct walk *w, const char *term, size_t len,
                                 const struct accel_array *a)
{
    int letters = 0, axis = a->rank;
    int64_t span = 1;
    for (int i = 0; i < N_AXES; i++)
        step[i] = 0;
    for (size_t k = 0; k < len; k++)
        letters += letter(term[k]) >= 0;
    int dots = a->rank - letters;
    if (dots > 16)
        return accel_fail(ACCEL_ENOSUP, "%d axes behind the dots", dots);
    for (size_t k = len; k-- > 0;) {
        bool dot = term[k] == '.';
        for (int d = 0; d < (dot ? dots : 1); d++) {
            int id = dot ? N_LETTERS + d : letter(term[k]);
            int64_t size = a->dim[--axis];
            step[id] += size == 1 ? 0 : span; /* a letter that comes twice walks the diagonal */
            w->size[id] = size > w->size[id] || size == 0 ? size : w->size[id];
            span *= size;
        }
        k -= dot ? 2 : 0;
    }
    return ACCEL_OK;
}

static void add_axis(struct walk *w, int id)
{
    for (int i = 0; i < w->n_order; i++)
        if (w->order[i] == id)
            return;
    w->order[w->n_order++] = id;
}

/* Output axes in their order, then the others. */
static void order_axes(struct walk *w, const struct einsum_params *p, int dots)
{
    for (const char *s = p->out; *s; s++) {
        if (*s != '.') {
            add_axis(w, letter(*s));
            continue;
        }
        for (int d = dots - 1; d >= 0; d--)
            add_axis(w, N_LETTERS + d);
        s += 2;
    }
    w->n_out = w->n_order;
    for (int i = 0; i < N_AXES; i++)
        if (w->size[i] != 1)
            add_axis(w, i);
}

static size_t scratch(const struct accel_call *c)
{
    return (size_t)c->node->n_in * (N_AXES + 1) * sizeof(int64_t);
}

static enum accel_err forward(const struct accel_call *c)
{
    const struct einsum_params *p = c->node->params;
    int64_t(*step)[N_AXES] = c->scratch, *at = (int64_t *)(step + c->node->n_in),
    count[N_AXES] = {0};
    int dots = 0, n = c->node->n_in;
    struct walk w = {.n_out = 0};
    const char *term = p->terms;
    if (accel_op_is_int(&c->y[0]))
        return accel_fail(ACCEL_ENOSUP, "Einsum of integers");
    for (int i = 0; i < N_AXES; i++)
        w.size[i] = 1;
    for (int i = 0; i < n; i++) {
        size_t len = strcspn(term, ",");
        ACCEL_TRY(term_steps(step[i], &w, term, len, &c->x[i]));
        term += len + (term[len] == ',');
    }
    int letters = 0;
    for (const char *s = p->out; *s; s++)
        letters += letter(*s) >= 0;
    if (strchr(p->out, '.'))
        dots = c->y[0].rank - letters;
    order_axes(&w, p, dots);
    int64_t terms = 1;
    for (int i = w.n_out; i < w.n_order; i++)
        terms *= w.size[w.order[i]];
    for (int i = 0; i < n; i++)
        at[i] = 0;
    for (int64_t i = 0; i < c->y[0].n; i++) {
        double sum = 0;
        for (int64_t t = 0; t < terms; t++) {
            double v = 1;
            for (int k = 0; k < n; k++)
                v *= (double)((const real *)c->x[k].data)[at[k]];
            sum += v;
            for (int o = w.n_order - 1; o >= 0; o--) { /* one step, the last axis fastest */
                int id = w.order[o];
                count[id]++;
                for (int k = 0; k < n; k++)
                    at[k] += step[k][id];
                if (count[id] < w.size[id])
                    break;
                for (int k = 0; k < n; k++)
                    at[k] -= step[k][id] * w.size[id];
                count[id] = 0;
            }
        }
        ((real *)c->y[0].data)[i] = (real)sum;
    }
    return ACCEL_OK;
}

static const struct accel_attr_rule attrs[] = {{"equation", ACCEL_ATTR_STRING, ACCEL_REQUIRED},
                                               {0}};
static const char *const examples[] = {"2x3 3x4 | equation=ij,jk->ik",
                                       "3x3 | equation=ii->i",
                                       "2x3x4 2x5x4 | equation=...ik,...jk->...ij",
                                       "3 4 | equation=i,j->ij",
                                       "2x3x4 2x5x4 | equation=bik,bjk->bij",
                                       "3x4 4x5 5 | equation=ij,jk,k->i",
                                       NULL};

const struct accel_op accel_op_einsum = {
    .name = "Einsum",
    .domain = "",
    .since = 12,
    .min_in = 1,
    .max_in = INT_MAX,
    .min_out = 1,
    .max_out = 1,
    .attrs = attrs,
    .parse = parse,
    .infer = infer,
    .links = links,
    .zero = zero,
    .cost = cost,
    .forward = forward,
    .scratch = scratch,
    .examples = examples,
};
