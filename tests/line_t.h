/* line_t.h - a small model from one line of text:
 *
 *     "x:N,3,8,8 w=8,3,3,3 s=i[0,-1] ; Conv x w > c pads=1,1,1,1 ; Relu c > y"
 *
 * Graph inputs (:, a letter is a symbol), constants of random floats (=), integers (=i[...]),
 * floats
 * (=f[...]); then nodes with inputs ("-": left out), outputs behind >, attributes. A domain is
 * written "ms:Name". The last node's first output is the graph's. */
#ifndef ACCEL_TESTS_LINE_T_H
#define ACCEL_TESTS_LINE_T_H

#include <ctype.h>
#include <string.h>

#include "graph/infer.h"
#include "tests/op_t.h"

static inline void line_dims(struct accel_model *m, struct accel_value *v, const char *text)
{
    int n = 0;
    v->declared.rank = 0;
    v->declared.dim = ACCEL_NEW(&m->arena, struct accel_dim, 16);
    while (*text) {
        char word[32] = "";
        size_t len = strcspn(text, ",");
        memcpy(word, text, len);
        if (isalpha((unsigned char)*word))
            ck_ok(accel_dim_named(&v->declared.dim[n], &m->symbols, word));
        else
            v->declared.dim[n] = accel_dim_of(atoll(word));
        n++;
        text += len + (text[len] == ',');
    }
    v->declared.rank = n;
}

static inline void line_value(struct accel_model *m, char *text)
{
    uint32_t seed = (uint32_t)m->n_tensor * 7919u + 1; /* the same line, the same numbers */
    size_t n = strcspn(text, ":=");
    char kind = text[n], *what = text + n + 1;
    struct accel_value *v;
    text[n] = '\0';
    ck_ok(accel_value_new(&v, m->graph, text));
    v->declared_dtype = v->dtype = *what == 'i' ? ACCEL_I64 : ACCEL_F32;
    if (kind == ':') {
        line_dims(m, v, what);
        v->is_input = true;
        m->graph->input[m->graph->n_input++] = v;
        return;
    }
    bool list = (*what == 'i' || *what == 'f') && what[1] == '[';
    struct accel_tensor *t = ACCEL_NEW(&m->arena, struct accel_tensor, 1);
    int64_t *dim = ACCEL_NEW(&m->arena, int64_t, 16), count = 1;
    if (list) {
        what[strlen(what) - 1] = '\0';
        for (const char *c = what + 2; *c; c++)
            count += *c == ',';
        v->declared.rank = 1;
        v->declared.dim = ACCEL_NEW(&m->arena, struct accel_dim, 1);
        v->declared.dim[0] = accel_dim_of(count);
    } else {
        line_dims(m, v, what);
    }
    count = 1;
    for (int i = 0; i < v->declared.rank; i++)
        count *= dim[i] = v->declared.dim[i].n;
    void *data = ACCEL_NEW(&m->arena, int64_t, count + 1);
    char *at = what + 2;
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        double value = list ? strtod(at, &at) : (double)(int32_t)seed / 2147483648.0;
        at += list && *at == ',';
        if (v->dtype == ACCEL_I64)
            ((int64_t *)data)[i] = (int64_t)value;
        else
            ((float *)data)[i] = (float)value;
    }
    *t = (struct accel_tensor){.name = v->name,
                               .dtype = v->dtype,
                               .rank = v->declared.rank,
                               .dim = dim,
                               .n = (uint64_t)count,
                               .data = data};
    t->size = t->n * (v->dtype == ACCEL_I64 ? 8 : 4);
    v->declared.rank = -1; /* nothing but the tensor says it */
    v->shape.rank = -1;
    v->tensor = t;
    ck_ok(accel_model_add_tensor(m, t));
}

static inline void line_node(struct accel_model *m, char *text, int opset)
{
    struct accel_value *in[16], *out[8];
    int n_in = 0, n_out = 0;
    bool behind = false;
    char *save, *name = strtok_r(text, " ", &save), *t;
    const char *domain = strncmp(name, "ms:", 3) == 0 ? "com.microsoft" : "";
    const struct accel_op *op = accel_op_find(*domain ? name + 3 : name, domain);
    struct accel_node *n;
    ck_assert_msg(op || isupper((unsigned char)*name), "no operator %s", name);
    for (; (t = strtok_r(NULL, " ", &save)) && !strchr(t, '=');) {
        if (strcmp(t, ">") == 0) {
            behind = true;
        } else if (behind) {
            ck_ok(accel_value_new(&out[n_out++], m->graph, t));
        } else {
            in[n_in] = strcmp(t, "-") == 0 ? NULL : accel_value_find(m->graph, t);
            ck_assert_msg(in[n_in] || strcmp(t, "-") == 0, "no value %s", t);
            n_in++;
        }
    }
    ck_ok(accel_node_new(&n, m->graph, op, *domain ? name + 3 : name, domain, out[0]->name, in,
                         n_in, out, n_out));
    for (; t; t = strtok_r(NULL, " ", &save))
        op_attr(n, t);
    if (op && op->parse)
        ck_ok(op->parse(n, opset));
    m->graph->output[0] = out[0];
}

/* Built and inferred. Free with accel_model_free(). */
static inline struct accel_model *line_model(int opset, const char *line)
{
    struct accel_model *m;
    char *copy = strdup(line), *save, *part = strtok_r(copy, ";", &save), *save2;
    ck_ok(accel_model_new(&m, opset));
    m->ir_version = 8;
    m->graph->input = ACCEL_NEW(&m->arena, struct accel_value *, 16);
    m->graph->output = ACCEL_NEW(&m->arena, struct accel_value *, 1);
    m->graph->n_output = 1;
    for (char *at = strtok_r(part, " ", &save2); at; at = strtok_r(NULL, " ", &save2))
        line_value(m, at);
    while ((part = strtok_r(NULL, ";", &save)))
        line_node(m, part, opset);
    m->graph->output[0]->is_output = true;
    free(copy);
    ck_ok(accel_model_infer(m));
    return m;
}

static inline struct accel_value *line_find(const struct accel_model *m, const char *name)
{
    struct accel_value *v = accel_value_find(m->graph, name);
    ck_assert_msg(v != NULL, "no value %s", name);
    return v;
}

#endif
