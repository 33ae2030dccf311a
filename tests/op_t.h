/* op_t.h - one operator at a time: a model of a single node from one line of text.
 *
 *     "2x3x8x8 4x3x3x3 - | pads=1,1,1,1 auto_pad=VALID"
 *
 * Inputs: dims (a letter is a symbol, "?" a size or a rank that is not known, "scalar"), "-" left
 * out, "[1,2]" an int64 constant, "f[1,2.5]" a float one, "f2x2[1,2,3,4]" with dims, "i8:2x3"
 * another type. Attributes get the kind that the operator's rules name. */
#ifndef ACCEL_TESTS_OP_T_H
#define ACCEL_TESTS_OP_T_H

#include <stdio.h>
#include <string.h>

#include "graph/attr.h"
#include "graph/constprop.h"
#include "graph/infer.h"
#include "ops/ops.h"
#include "tests/t.h"

#define OP_MAX_IN 16

struct op_run {
    struct accel_model *m;
    struct accel_node *n;
    enum accel_err err;
};

static inline void op_dims(struct accel_model *m, struct accel_value *v, char *text)
{
    v->declared.rank = strcmp(text, "?") == 0 ? -1 : 0;
    if (v->declared.rank < 0 || strcmp(text, "scalar") == 0)
        return;
    v->declared.dim = ACCEL_NEW(&m->arena, struct accel_dim, strlen(text));
    for (char *save, *d = strtok_r(text, "x", &save); d; d = strtok_r(NULL, "x", &save)) {
        struct accel_dim *to = &v->declared.dim[v->declared.rank++];
        if (*d == '?')
            *to = accel_dim_unknown();
        else if (*d >= 'A' && *d <= 'Z')
            ck_ok(accel_dim_named(to, &m->symbols, d));
        else
            *to = accel_dim_of(atoll(d));
    }
}

static inline void op_constant(struct accel_model *m, struct accel_value *v, char *values)
{
    struct accel_tensor *t = ACCEL_NEW(&m->arena, struct accel_tensor, 1);
    int64_t *dim = ACCEL_NEW(&m->arena, int64_t, v->declared.rank + 1);
    bool real = v->declared_dtype == ACCEL_F32;
    void *data = ACCEL_NEW(&m->arena, int64_t, strlen(values) + 1);
    for (char *save, *e = strtok_r(values, ",", &save); e; e = strtok_r(NULL, ",", &save), t->n++)
        if (real)
            ((float *)data)[t->n] = strtof(e, NULL);
        else
            ((int64_t *)data)[t->n] = atoll(e);
    t->rank = v->declared.rank < 0 ? 1 : v->declared.rank;
    dim[0] = (int64_t)t->n;
    for (int i = 0; i < v->declared.rank; i++)
        dim[i] = v->declared.dim[i].n;
    t->name = v->name;
    t->dtype = v->declared_dtype;
    t->dim = dim;
    t->size = t->n * (real ? 4 : 8);
    t->data = data;
    v->tensor = t;
}

static inline struct accel_value *op_input(struct accel_model *m, int i, char *text)
{
    static const struct {
        const char *name;
        enum accel_dtype dtype;
    } types[] = {{"u8:", ACCEL_U8},   {"i8:", ACCEL_I8},   {"i32:", ACCEL_I32},
                 {"i64:", ACCEL_I64}, {"f64:", ACCEL_F64}, {"bool:", ACCEL_BOOL}};
    char name[16];
    struct accel_value *v;
    if (strcmp(text, "-") == 0)
        return NULL;
    snprintf(name, sizeof name, "in%d", i);
    ck_ok(accel_value_new(&v, m->graph, name));
    v->is_tensor = true;
    v->is_input = true;
    v->declared_dtype = ACCEL_F32;
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (strncmp(text, types[k].name, strlen(types[k].name)) == 0) {
            v->declared_dtype = types[k].dtype;
            text += strlen(types[k].name);
        }
    char *values = strchr(text, '[');
    if (!values) {
        op_dims(m, v, text);
        return v;
    }
    *values++ = '\0';
    values[strlen(values) - 1] = '\0';
    if (*text == 'f')
        text++;
    else
        v->declared_dtype = ACCEL_I64;
    op_dims(m, v, *text ? text : (char[]){"?"});
    op_constant(m, v, values);
    return v;
}

static inline void op_attr(struct accel_node *n, char *text)
{
    char *value = strchr(text, '=');
    int64_t ints[32];
    size_t count = 0;
    *value++ = '\0';
    const struct accel_attr_rule *rule = n->op->attrs;
    while (rule && rule->name && strcmp(rule->name, text) != 0)
        rule++;
    ck_assert_msg(rule && rule->name, "%s has no attribute '%s'", n->op->name, text);
    switch (rule->kind) {
    case ACCEL_ATTR_INT:
        ck_ok(accel_attr_set_int(n, text, atoll(value)));
        break;
    case ACCEL_ATTR_FLOAT:
        ck_ok(accel_attr_set_float(n, text, strtof(value, NULL)));
        break;
    case ACCEL_ATTR_STRING:
        ck_ok(accel_attr_set_string(n, text, value));
        break;
    default:
        for (char *save, *e = strtok_r(value, ",", &save); e; e = strtok_r(NULL, ",", &save))
            ints[count++] = atoll(e);
        ck_ok(accel_attr_set_ints(n, text, ints, count));
    }
}

/* Builds a node of n_out outputs (-1: all it can have), parses and infers; the error stands in
 * r.err, its text in accel_errmsg(). Name "ms:Gelu" means domain com.microsoft. End with op_end().
 */
static inline struct op_run op_begin_outs(const char *op, int opset, const char *line, int n_out)
{
    struct op_run r = {0};
    struct accel_value *in[OP_MAX_IN], *out[8];
    char *copy = strdup(line), *attrs = strstr(copy, "|"), *save;
    const char *domain = strncmp(op, "ms:", 3) == 0 ? "com.microsoft" : "";
    const struct accel_op *row = accel_op_find(*domain ? op + 3 : op, domain);
    int n_in = 0;
    ck_assert_msg(row != NULL, "no operator %s", op);
    n_out = n_out < 0 ? row->max_out : n_out;
    ck_ok(accel_model_new(&r.m, opset));
    if (attrs)
        *attrs++ = '\0';
    for (char *t = strtok_r(copy, " ", &save); t; t = strtok_r(NULL, " ", &save), n_in++)
        in[n_in] = op_input(r.m, n_in, t);
    for (int i = 0; i < n_out; i++) {
        char name[16];
        snprintf(name, sizeof name, "out%d", i);
        ck_ok(accel_value_new(&out[i], r.m->graph, name));
        out[i]->is_tensor = true;
        out[i]->declared.rank = -1;
    }
    ck_ok(accel_node_new(&r.n, r.m->graph, row, row->name, domain, "node", in, n_in, out, n_out));
    if (attrs)
        for (char *t = strtok_r(attrs, " ", &save); t; t = strtok_r(NULL, " ", &save))
            op_attr(r.n, t);
    r.err = row->parse ? row->parse(r.n, opset) : ACCEL_OK;
    if (!r.err)
        r.err = accel_model_infer(r.m);
    free(copy);
    return r;
}

static inline struct op_run op_begin(const char *op, int opset, const char *line)
{
    return op_begin_outs(op, opset, line, -1);
}

static inline void op_end(struct op_run *r)
{
    accel_model_free(r->m);
}

/* The shape of output `slot` is `want`. */
static inline void op_shape_is(const struct op_run *r, int slot, const char *want)
{
    char text[256];
    ck_assert_msg(r->err == ACCEL_OK, "%s: %s", r->n->op_type, accel_errmsg());
    accel_shape_text(&r->n->out[slot]->shape, &r->m->symbols, text, sizeof text);
    ck_assert_msg(strcmp(text, want) == 0, "%s output %d is %s, want %s", r->n->op_type, slot, text,
                  want);
}

/* One line: shape of output 0, and MACs (-2: the operator counts none). */
static inline void op_is(const char *op, int opset, const char *line, const char *shape,
                         int64_t macs)
{
    struct op_run r = op_begin(op, opset, line);
    struct accel_cost cost = {-2};
    ck_assert_msg(r.err == ACCEL_OK, "%s %s: %s", op, line, accel_errmsg());
    op_shape_is(&r, 0, shape);
    if (r.n->op->cost)
        r.n->op->cost(r.n, &cost);
    ck_assert_msg(cost.macs == macs, "%s %s: %lld MACs, want %lld", op, line, (long long)cost.macs,
                  (long long)macs);
    op_end(&r);
}

/* One line that fails, and a word of the error text. */
static inline void op_fails(const char *op, int opset, const char *line, enum accel_err code,
                            const char *word)
{
    struct op_run r = op_begin(op, opset, line);
    ck_assert_msg(r.err == code, "%s %s: got %d, want %d (%s)", op, line, (int)r.err, (int)code,
                  r.err ? accel_errmsg() : "no error");
    ck_assert_msg(strstr(accel_errmsg(), word) != NULL, "'%s' does not say '%s'", accel_errmsg(),
                  word);
    op_end(&r);
}

/* One line whose output 0 is computed: its elements, "1,2.5" (1e-5 for floats). */
static inline void op_gives(const char *op, int opset, const char *line, const char *want)
{
    struct op_run r = op_begin(op, opset, line);
    char *copy = strdup(want), *save, *e = strtok_r(copy, ",", &save);
    ck_assert_msg(r.err == ACCEL_OK, "%s %s: %s", op, line, accel_errmsg());
    const struct accel_known *k = accel_known_get(r.n->out[0]);
    ck_assert_msg(k != NULL, "%s %s gives nothing", op, line);
    int64_t i = 0;
    for (; e && i < k->n; e = strtok_r(NULL, ",", &save), i++) {
        if (!k->real) {
            long long whole = ((const int64_t *)k->probe[0])[i];
            ck_assert_msg(whole == strtoll(e, NULL, 10), "%s %s: element %lld is %lld, want %s", op,
                          line, (long long)i, whole, e);
            continue;
        }
        double got = (double)((const float *)k->probe[0])[i], w = strtod(e, NULL);
        bool same = got == w || (isnan(got) && isnan(w)) || fabs(got - w) <= 1e-5 * (1 + fabs(w));
        ck_assert_msg(same, "%s %s: element %lld is %.9g, want %s", op, line, (long long)i, got, e);
    }
    ck_assert_msg(!e && i == k->n, "%s %s gives %lld elements", op, line, (long long)k->n);
    free(copy);
    op_end(&r);
}

/* One line that constant propagation leaves alone. */
static inline void op_gives_nothing(const char *op, int opset, const char *line)
{
    struct op_run r = op_begin(op, opset, line);
    ck_assert_msg(r.err == ACCEL_OK, "%s %s: %s", op, line, accel_errmsg());
    ck_assert_ptr_null(accel_known_get(r.n->out[0]));
    op_end(&r);
}

#endif
