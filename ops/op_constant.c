/* Values that come from shapes or from nothing: Shape, Size, Constant, ConstantOfShape, Range,
 * EyeLike. Shape and Size set the contents of their output from the dims; constant propagation does
 * the rest. */
#include <limits.h>
#include <math.h>

#include "ops/arith.h"
#include "ops/link_util.h"
#include "ops/op_util.h"
#include "ops/real.h"

struct shape {
    int64_t start, end;
};

static enum accel_err shape_parse(struct accel_node *n, int opset)
{
    struct shape *p = accel_op_params(n, sizeof *p);
    (void)opset;
    if (!p)
        return ACCEL_ENOMEM;
    ACCEL_TRY(accel_attr_int(&p->start, n, "start", 0));
    return accel_attr_int(&p->end, n, "end", INT64_MAX);
}

static int64_t clamp(int64_t v, int64_t rank)
{
    v = v < 0 ? v + rank : v;
    return v < 0 ? 0 : v > rank ? rank : v;
}

static enum accel_err shape_infer(struct accel_node *n)
{
    const struct shape *p = n->params;
    int rank = accel_operand_rank(n, 0);
    struct accel_dim d = accel_dim_unknown();
    if (rank < 0)
        return accel_result_dims(n, 0, ACCEL_I64, 1, &d);
    int64_t start = clamp(p->start, rank), end = clamp(p->end, rank);
    end = end < start ? start : end;
    d = accel_dim_of(end - start);
    ACCEL_TRY(accel_result_dims(n, 0, ACCEL_I64, 1, &d));
    if (!n->n_out || !n->out[0])
        return ACCEL_OK;
    return accel_known_set_dims(n->out[0], d.n ? n->in[0]->shape.dim + start : NULL, d.n);
}

static enum accel_err size_infer(struct accel_node *n)
{
    int rank = accel_operand_rank(n, 0);
    struct accel_dim all = accel_dim_of(1);
    ACCEL_TRY(accel_result_dims(n, 0, ACCEL_I64, 0, NULL));
    if (rank < 0 || !n->n_out || !n->out[0])
        return ACCEL_OK;
    for (int i = 0; i < rank; i++)
        ACCEL_TRY(accel_dim_mul(&all, accel_operand_symbols(n), all, n->in[0]->shape.dim[i]));
    return accel_known_set_dims(n->out[0], &all, 1);
}

/* What becomes of the numbers is followed by those who cut, from here to where they end. */
static void shape_links(const struct accel_node *n, struct accel_links *l)
{
    (void)n;
    accel_links_seen_all(l, 0);
}

/* ------------------------------------------------------------------------------ Constant */

static const struct form {
    const char *name;
    enum accel_dtype dtype;
    bool list;
} forms[] = {{"value_float", ACCEL_F32, false},     {"value_int", ACCEL_I64, false},
             {"value_string", ACCEL_STRING, false}, {"value_floats", ACCEL_F32, true},
             {"value_ints", ACCEL_I64, true},       {"value_strings", ACCEL_STRING, true}};

enum { N_FORMS = sizeof forms / sizeof *forms };

static const struct accel_attr *constant_form(const struct form **out, const struct accel_node *n)
{
    for (int i = 0; i < N_FORMS; i++) {
        const struct accel_attr *a = accel_attr_find(n, forms[i].name);
        *out = &forms[i];
        if (a && !a->ref)
            return a;
    }
    return NULL;
}

static enum accel_err shape_of_tensor(struct accel_node *n, int slot, const struct accel_tensor *t)
{
    struct accel_shape out;
    ACCEL_TRY(accel_shape_new(&out, n, t->rank));
    for (int i = 0; i < t->rank; i++)
        out.dim[i] = accel_dim_of(t->dim[i]);
    accel_result_set(n, slot, t->dtype, out);
    return ACCEL_OK;
}

/* The one element of a tensor attribute, or 0 of F32 when there is none. */
struct fill {
    enum accel_dtype dtype;
    double value;
    int64_t whole;
};

static enum accel_err constant_infer(struct accel_node *n)
{
    const struct form *form;
    if (!n->n_out || !n->out[0] || n->out[0]->tensor)
        return ACCEL_OK;
    const struct accel_attr *a = accel_attr_find(n, "value");
    if (a && a->n == 1 && a->tensors && a->tensors[0])
        return shape_of_tensor(n, 0, a->tensors[0]);
    a = constant_form(&form, n);
    if (!a)
        return ACCEL_OK;
    struct accel_dim d = accel_dim_of((int64_t)a->n);
    return accel_result_dims(n, 0, form->dtype, form->list, &d);
}

static void constant_links(const struct accel_node *n, struct accel_links *l)
{
    accel_links_seen_all(l, accel_link_out(n, 0));
}

static enum accel_err constant_forward(const struct accel_call *c)
{
    const struct form *form;
    const struct accel_attr *a = constant_form(&form, c->node);
    const struct accel_array *y = &c->y[0];
    if (!a || form->dtype == ACCEL_STRING || (form->list && (int64_t)a->n != y->n))
        return accel_fail(ACCEL_ENOSUP, "Constant of this form");
    for (int64_t i = 0; i < y->n; i++)
        if (form->dtype == ACCEL_I64)
            ((int64_t *)y->data)[i] = form->list ? a->ints[i] : a->i;
        else
            ((real *)y->data)[i] = (real)(form->list ? a->floats[i] : a->f);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------------------ ConstantOfShape */

static enum accel_err fill_parse(struct accel_node *n, int opset)
{
    struct fill *p = accel_op_params(n, sizeof *p);
    const struct accel_attr *a = accel_attr_find(n, "value");
    (void)opset;
    if (!p)
        return ACCEL_ENOMEM;
    p->dtype = ACCEL_F32;
    if (!a || a->ref || !a->tensors || !a->tensors[0])
        return ACCEL_OK;
    const struct accel_tensor *t = a->tensors[0];
    if (t->n != 1)
        return accel_fail(ACCEL_EMODEL, "value has %llu elements, must have one",
                          (unsigned long long)t->n);
    p->dtype = t->dtype;
    unsigned char elem[16];
    if (t->size > sizeof elem || accel_dtype_find(t->dtype)->cls == ACCEL_CLASS_OTHER)
        return ACCEL_OK;
    ACCEL_TRY(accel_tensor_read(t, 0, 1, elem));
    if (accel_dtype_find(t->dtype)->cls == ACCEL_CLASS_INT)
        accel_dtype_to_i64(t->dtype, elem, 0, 1, &p->whole);
    else
        accel_dtype_to_f64(t->dtype, elem, 0, 1, &p->value);
    return ACCEL_OK;
}

static enum accel_err fill_infer(struct accel_node *n)
{
    const struct fill *p = n->params;
    struct accel_shape out;
    ACCEL_TRY(accel_shape_from_input(&out, n, 0));
    accel_result_set(n, 0, p->dtype, out);
    return ACCEL_OK;
}

/* Axes are made by the sizes. One whose size only the run tells stays as it is. */
static void fill_links(const struct accel_node *n, struct accel_links *l)
{
    int y = accel_link_out(n, 0);
    for (int axis = 0; axis < accel_slot_rank(n, y); axis++)
        if (accel_dim_known(n->out[0]->shape.dim[axis]))
            accel_links_seen(l, y, axis);
}

static void fill_zero(const struct accel_node *n, struct accel_zero *z)
{
    const struct fill *p = n->params;
    int y = accel_link_out(n, 0);
    for (int axis = 0; accel_dtype_is_float(p->dtype) && axis < accel_slot_rank(n, y); axis++)
        accel_zero_set(z, y, axis, (float)p->value);
}

static enum accel_err fill_resize(struct accel_node *n, struct accel_resize *r)
{
    int y = accel_link_out(n, 0), rank = accel_slot_rank(n, y);
    if (rank < 0)
        return ACCEL_OK;
    int64_t *want = ACCEL_NEW(&n->graph->model->arena, int64_t, rank);
    if (!want)
        return accel_fail_nomem();
    for (int axis = 0; axis < rank; axis++) {
        bool number = accel_dim_known(n->out[0]->shape.dim[axis]);
        want[axis] = number ? accel_resize_now(r, y, axis) : ACCEL_SIZE_VARIES;
    }
    return accel_resize_ints(r, 0, want, rank, ACCEL_SIZE_VARIES);
}

static enum accel_err fill_forward(const struct accel_call *c)
{
    const struct fill *p = c->node->params;
    const struct accel_array *y = &c->y[0];
    bool whole = accel_op_is_int(y);
    for (int64_t i = 0; i < y->n; i++)
        if (whole)
            ((int64_t *)y->data)[i] = p->whole;
        else
            ((real *)y->data)[i] = (real)p->value;
    return ACCEL_OK;
}

/* ------------------------------------------------------------------------------ Range */

/* Number of steps in trial t; -1 when it cannot be told. */
static int64_t range_count(const struct accel_node *n, int t)
{
    double v[3];
    for (int i = 0; i < 3; i++) {
        struct accel_value *x = accel_operand(n, i);
        const struct accel_known *k = x ? accel_known_get(x) : NULL;
        if (!k || k->n != 1)
            return -1;
        v[i] = k->real ? (double)((const float *)k->probe[t])[0]
                       : (double)((const int64_t *)k->probe[t])[0];
    }
    double count = v[2] != 0 ? ceil((v[1] - v[0]) / v[2]) : -1;
    return count > 9e15 || isnan(count) ? -1 : count < 0 ? 0 : (int64_t)count;
}

static enum accel_err range_infer(struct accel_node *n)
{
    struct accel_dim d;
    int64_t probe[ACCEL_N_PROBES];
    for (int t = 0; t < ACCEL_N_PROBES; t++)
        probe[t] = range_count(n, t);
    ACCEL_TRY(accel_dim_of_probes(&d, accel_operand_symbols(n), probe));
    return accel_result_dims(n, 0, accel_operand_dtype(n, 0), 1, &d);
}

static enum accel_err range_forward(const struct accel_call *c)
{
    const struct accel_array *y = &c->y[0];
    for (int64_t i = 0; i < y->n; i++)
        if (accel_op_is_int(y))
            ((int64_t *)y->data)[i] =
                accel_int_add(((const int64_t *)c->x[0].data)[0],
                              accel_int_mul(i, ((const int64_t *)c->x[2].data)[0]));
        else
            ((real *)y->data)[i] =
                ((const real *)c->x[0].data)[0] + (real)i * ((const real *)c->x[2].data)[0];
    return ACCEL_OK;
}

/* ------------------------------------------------------------------------------ EyeLike */

struct eye {
    int64_t dtype, k;
};

static enum accel_err eye_parse(struct accel_node *n, int opset)
{
    struct eye *p = accel_op_params(n, sizeof *p);
    (void)opset;
    if (!p)
        return ACCEL_ENOMEM;
    ACCEL_TRY(accel_attr_int(&p->dtype, n, "dtype", 0));
    if (p->dtype < 0 || p->dtype >= ACCEL_N_DTYPES)
        return accel_fail(ACCEL_EMODEL, "dtype is %lld", (long long)p->dtype);
    return accel_attr_int(&p->k, n, "k", 0);
}

static enum accel_err eye_infer(struct accel_node *n)
{
    const struct eye *p = n->params;
    ACCEL_TRY(accel_operand_check_rank(n, 0, 2));
    return accel_result_like(n, 0,
                             p->dtype ? (enum accel_dtype)p->dtype : accel_operand_dtype(n, 0),
                             accel_operand(n, 0));
}

static enum accel_err eye_forward(const struct accel_call *c)
{
    const struct eye *p = c->node->params;
    const struct accel_array *y = &c->y[0];
    for (int64_t i = 0; i < y->n; i++) {
        bool one = i % y->dim[1] - i / y->dim[1] == p->k;
        if (accel_op_is_int(y))
            ((int64_t *)y->data)[i] = one;
        else
            ((real *)y->data)[i] = one;
    }
    return ACCEL_OK;
}

/* The output's length is known from infer; where it begins, from its params or the rank. */
static enum accel_err shape_forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0];
    int64_t start, *out = c->y[0].data;
    ACCEL_TRY(accel_attr_int(&start, c->node, "start", 0));
    start = start < 0 ? start + x->rank : start;
    start = start < 0 ? 0 : start > x->rank ? x->rank : start;
    for (int64_t i = 0; i < c->y[0].n && start + i < x->rank; i++)
        out[i] = x->dim[start + i];
    return ACCEL_OK;
}

static enum accel_err size_forward(const struct accel_call *c)
{
    *(int64_t *)c->y[0].data = c->x[0].n;
    return ACCEL_OK;
}

/* ------------------------------------------------------------------------------ rows */

static const struct accel_attr_rule shape_attrs[] = {
    {"start", ACCEL_ATTR_INT, 0}, {"end", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule constant_attrs[] = {
    {"value", ACCEL_ATTR_TENSOR, 0},
    {"value_float", ACCEL_ATTR_FLOAT, 0},
    {"value_floats", ACCEL_ATTR_FLOATS, 0},
    {"value_int", ACCEL_ATTR_INT, 0},
    {"value_ints", ACCEL_ATTR_INTS, 0},
    {"value_string", ACCEL_ATTR_STRING, 0},
    {"value_strings", ACCEL_ATTR_STRINGS, 0},
    {"sparse_value", ACCEL_ATTR_SPARSE_TENSOR, 0},
    {0}};
static const struct accel_attr_rule fill_attrs[] = {{"value", ACCEL_ATTR_TENSOR, 0}, {0}};
static const struct accel_attr_rule range_attrs[] = {{"stash_type", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule eye_attrs[] = {
    {"dtype", ACCEL_ATTR_INT, 0}, {"k", ACCEL_ATTR_INT, 0}, {0}};

#define ROW(op_name, first, n_in, flag, rules, prs, inf, fwd, eg, ...)                             \
    {                                                                                              \
        .name = (op_name), .domain = "", .since = (first), .min_in = (n_in), .max_in = (n_in),     \
        .min_out = 1, .max_out = 1, .flags = (flag), .attrs = (rules), .parse = (prs),             \
        .infer = (inf), .forward = (fwd), .examples = (const char *const[]){(eg), NULL},           \
        __VA_ARGS__                                                                                \
    }

const struct accel_op accel_op_shape =
    ROW("Shape", 1, 1, ACCEL_OP_MOVES | ACCEL_OP_MEASURES, shape_attrs, shape_parse, shape_infer,
        shape_forward, "2x3x4 | start=1", .links = shape_links);
const struct accel_op accel_op_size =
    ROW("Size", 1, 1, ACCEL_OP_MOVES | ACCEL_OP_MEASURES, NULL, NULL, size_infer, size_forward,
        "2x3", .links = shape_links);
const struct accel_op accel_op_constant =
    ROW("Constant", 1, 0, 0, constant_attrs, NULL, constant_infer, constant_forward,
        "| value_ints=1,2", .links = constant_links);
const struct accel_op accel_op_constant_of_shape =
    ROW("ConstantOfShape", 9, 1, 0, fill_attrs, fill_parse, fill_infer, fill_forward, "[3,4]",
        .links = fill_links, .zero = fill_zero, .resize = fill_resize, .sizes = 1u << 0);
const struct accel_op accel_op_range =
    ROW("Range", 11, 3, 0, range_attrs, NULL, range_infer, range_forward,
        "scalar[2] scalar[9] scalar[3]", .keep = 1u << 0 | 1u << 1 | 1u << 2);
const struct accel_op accel_op_eye_like = ROW("EyeLike", 9, 1, 0, eye_attrs, eye_parse, eye_infer,
                                              eye_forward, "3x4 | k=1", .links = NULL);
