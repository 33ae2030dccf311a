/* Operators that give the same elements another shape: Identity, Reshape, Flatten, Squeeze,
 * Unsqueeze.
 *
 * The open size of a Reshape (-1) is found with the trial values of the symbols: elements of the
 * input divided by those of the other axes, in every trial. That gives a number, or the symbol of
 * these values, without any algebra on products. */
#include "ops/link_util.h"
#include "ops/op_util.h"
#include "ops/reshape_links.h"

static enum accel_err identity_infer(struct accel_node *n)
{
    struct accel_value *x = accel_operand(n, 0);
    if (x && n->n_out && n->out[0])
        n->out[0]->is_tensor = x->is_tensor;
    return accel_result_like(n, 0, accel_operand_dtype(n, 0), x);
}

static int identity_carry(const struct accel_node *n, int axis)
{
    (void)n;
    return axis;
}

/* ------------------------------------------------------------------------------ Reshape */

struct reshape {
    bool attr; /* opset < 5: the shape is an attribute */
    bool allow_zero;
};

static enum accel_err reshape_parse(struct accel_node *n, int opset)
{
    struct reshape *p = accel_op_params(n, sizeof *p);
    int64_t zero;
    if (!p)
        return ACCEL_ENOMEM;
    ACCEL_TRY(accel_attr_int(&zero, n, "allowzero", 0));
    p->attr = opset < 5;
    p->allow_zero = zero != 0;
    return ACCEL_OK;
}

/* Sizes asked for; *open: axis that is -1, or -1; *gaps: a size is neither number nor symbol. */
static enum accel_err reshape_target(struct accel_shape *out, int *open, bool *gaps,
                                     const struct accel_node *n)
{
    const struct reshape *p = n->params;
    const struct accel_value *x = accel_operand(n, 0);
    struct accel_value *v = accel_operand(n, 1);
    const struct accel_known *k = v ? accel_known_get(v) : NULL;
    struct accel_list list = {.n = -1};
    *open = -1;
    if (p->attr)
        ACCEL_TRY(accel_list_get(&list, n, "shape", -1));
    if (p->attr && list.n <= ACCEL_KNOWN_MAX)
        ACCEL_TRY(accel_shape_new(out, n, (int)list.n));
    else
        ACCEL_TRY(accel_shape_from_input(out, n, 1));
    *gaps = false;
    for (int i = 0; i < out->rank; i++) {
        int64_t c;
        bool constant = p->attr;
        if (p->attr)
            c = list.at[i];
        else
            constant = k && accel_known_constant(&c, k, i);
        if (constant && c < -1)
            return accel_fail(ACCEL_EMODEL, "size %lld on axis %d", (long long)c, i);
        if (constant && c == -1) {
            if (*open >= 0)
                return accel_fail(ACCEL_EMODEL, "more than one size is -1");
            *open = i;
        } else if (constant && c == 0 && !p->allow_zero) {
            out->dim[i] = accel_operand_dim(n, 0, i);
            if (x && x->shape.rank >= 0 && i >= x->shape.rank)
                return accel_fail(ACCEL_ESHAPE, "size 0 on axis %d of an input of rank %d", i,
                                  x->shape.rank);
        } else if (constant) {
            out->dim[i] = accel_dim_of(c);
        }
        *gaps = *gaps || (i != *open && out->dim[i].n < 0 && out->dim[i].sym < 0);
    }
    return ACCEL_OK;
}

/* Elements in trial p, without axis `skip`; false when unknown or too many. */
static bool count_in_trial(int64_t *out, const struct accel_shape *sh,
                           const struct accel_symbols *s, int p, int skip)
{
    *out = 1;
    for (int i = 0; i < sh->rank; i++)
        if (i != skip) {
            int64_t d = accel_dim_probe(sh->dim[i], s, p);
            if (d < 0 || __builtin_mul_overflow(*out, d, out))
                return false;
        }
    return sh->rank >= 0;
}

static enum accel_err fill_open(struct accel_shape *out, int open, const struct accel_shape *in,
                                struct accel_symbols *s)
{
    int64_t probe[ACCEL_N_PROBES];
    for (int p = 0; p < ACCEL_N_PROBES; p++) {
        int64_t all, rest;
        if (!count_in_trial(&all, in, s, p, -1) || !count_in_trial(&rest, out, s, p, open) ||
            rest == 0 || all % rest != 0)
            return ACCEL_OK;
        probe[p] = all / rest;
    }
    return accel_dim_of_probes(&out->dim[open], s, probe);
}

static enum accel_err check_counts(const struct accel_shape *in, struct accel_shape *out, int open)
{
    int64_t all = accel_shape_count(in), rest = 1;
    if (all < 0)
        return ACCEL_OK;
    for (int i = 0; i < out->rank; i++)
        if (i != open && (out->dim[i].n < 0 || __builtin_mul_overflow(rest, out->dim[i].n, &rest)))
            return ACCEL_OK;
    if (open < 0 ? all != rest : rest == 0 ? all != 0 : all % rest != 0)
        return accel_fail(ACCEL_ESHAPE, "%lld elements do not fit a shape of %lld", (long long)all,
                          (long long)rest);
    return ACCEL_OK;
}

static enum accel_err reshape_infer(struct accel_node *n)
{
    struct accel_shape out;
    const struct accel_value *x = accel_operand(n, 0);
    int open;
    bool gaps;
    ACCEL_TRY(reshape_target(&out, &open, &gaps, n));
    if (out.rank >= 0 && x && x->shape.rank >= 0 && !gaps) {
        ACCEL_TRY(check_counts(&x->shape, &out, open));
        if (open >= 0)
            ACCEL_TRY(fill_open(&out, open, &x->shape, accel_operand_symbols(n)));
    }
    accel_result_set(n, 0, accel_operand_dtype(n, 0), out);
    return ACCEL_OK;
}

/* Element i of the target as a number: false when it depends on a symbol. */
static bool target_at(int64_t *out, const struct accel_list *list, const struct accel_known *k,
                      int64_t i)
{
    if (!k) {
        *out = i < list->n ? list->at[i] : 0;
        return list->known && i < list->n;
    }
    return accel_known_constant(out, k, i);
}

/* The target: an attribute in `list`, or the contents of input 1. False: it is not known. */
static bool target_of(struct accel_list *list, const struct accel_known **k,
                      const struct accel_node *n, struct accel_links *l)
{
    const struct reshape *p = n->params;
    *list = (struct accel_list){.n = -1};
    *k = NULL;
    if (p->attr)
        return accel_links_ok(l, accel_list_get(list, n, "shape", -1)) && list->known;
    if (!accel_operand(n, 1))
        return false;
    *k = accel_known_get(n->in[1]);
    if (!*k)
        (void)accel_links_ok(l, n->graph->model->symbols.failed);
    return *k && !(*k)->real && (*k)->n == accel_slot_rank(n, accel_link_out(n, 0));
}

/* Axis of the output that the target leaves open; -1: none, -2: the target is not known. */
static int open_axis(const struct accel_node *n, struct accel_links *l)
{
    struct accel_list list;
    const struct accel_known *k;
    int64_t c;
    if (!target_of(&list, &k, n, l))
        return -2;
    for (int i = 0; i < accel_slot_rank(n, accel_link_out(n, 0)); i++)
        if (target_at(&c, &list, k, i) && c == -1)
            return i;
    return -1;
}

static void reshape_links(const struct accel_node *n, struct accel_links *l)
{
    int open = open_axis(n, l);
    if (open > -2)
        accel_reshape_links(l, open);
}

static void reshape_zero(const struct accel_node *n, struct accel_zero *z)
{
    int open = open_axis(n, z->links);
    if (open > -2)
        accel_reshape_zero(z, open);
}

/* One size of the target after a cut: -1 stays, 0 too where it still copies the right size. */
static int64_t new_target(const struct accel_resize *r, int i, bool constant, int64_t old)
{
    const struct accel_node *n = r->node;
    const struct reshape *p = n->params;
    int y = accel_link_out(n, 0);
    if (constant && old == -1)
        return -1;
    if (constant && old == 0 && !p->allow_zero &&
        accel_resize_now(r, 0, i) == accel_resize_now(r, y, i))
        return 0;
    if (accel_dim_known(n->out[0]->shape.dim[i]))
        return accel_resize_now(r, y, i);
    return accel_resize_hit(r, y, i) ? -1 : ACCEL_SIZE_VARIES;
}

static enum accel_err reshape_resize(struct accel_node *n, struct accel_resize *r)
{
    struct accel_links l = {.node = n};
    struct accel_list list;
    const struct accel_known *k;
    const struct reshape *p = n->params;
    int rank = accel_slot_rank(n, accel_link_out(n, 0));
    bool opens = true, known = target_of(&list, &k, n, &l);
    if (!known || rank < 0)
        return l.err;
    int64_t *want = ACCEL_NEW(&n->graph->model->arena, int64_t, rank);
    if (!want)
        return accel_fail_nomem();
    for (int i = 0; i < rank; i++) {
        int64_t old = 0;
        bool constant = target_at(&old, &list, k, i);
        want[i] = new_target(r, i, constant, old);
        opens = opens && want[i] != -1;
    }
    if (p->attr)
        return accel_resize_attr_ints(r, "shape", want, (size_t)rank);
    return accel_resize_ints(r, 1, want, rank, opens ? -1 : ACCEL_SIZE_VARIES);
}

/* An empty list means all axes too: without one there is none to write, and nothing is said. */
static void squeeze_links(const struct accel_node *n, struct accel_links *l)
{
    bool listed = accel_operand(n, 1) || accel_attr_find(n, "axes");
    for (int i = 0; i < accel_slot_rank(n, 0); i++)
        listed = listed || n->in[0]->shape.dim[i].n == 1;
    if (listed)
        accel_reshape_links(l, -1);
}

/* Without a list every axis of size 1 goes, and a cut may have made new ones: the list is written.
 */
static enum accel_err squeeze_resize(struct accel_node *n, struct accel_resize *r)
{
    int rank = accel_slot_rank(n, 0);
    if (accel_operand(n, 1) || accel_attr_find(n, "axes") || rank < 0 ||
        !accel_resize_hit_any(r, 0))
        return ACCEL_OK;
    int64_t *axes = ACCEL_NEW(&n->graph->model->arena, int64_t, rank), count = 0;
    if (!axes)
        return accel_fail_nomem();
    for (int i = 0; i < rank; i++)
        if (n->in[0]->shape.dim[i].n == 1)
            axes[count++] = i;
    if (n->graph->opset < 13)
        return accel_resize_attr_ints(r, "axes", axes, (size_t)count);
    return accel_resize_ints(r, 1, axes, count, ACCEL_SIZE_VARIES);
}

/* Flatten, Squeeze, Unsqueeze: there is no target that a cut could contradict. */
static void free_links(const struct accel_node *n, struct accel_links *l)
{
    (void)n;
    accel_reshape_links(l, -1);
}

static void free_zero(const struct accel_node *n, struct accel_zero *z)
{
    (void)n;
    accel_reshape_zero(z, -1);
}

/* ------------------------------------------------------------------------------ Flatten */

struct flatten {
    int64_t axis;
};

static enum accel_err flatten_parse(struct accel_node *n, int opset)
{
    struct flatten *p = accel_op_params(n, sizeof *p);
    (void)opset;
    return p ? accel_attr_int(&p->axis, n, "axis", 1) : ACCEL_ENOMEM;
}

static enum accel_err flatten_infer(struct accel_node *n)
{
    const struct flatten *p = n->params;
    int rank = accel_operand_rank(n, 0);
    struct accel_dim d[2] = {accel_dim_of(1), accel_dim_of(1)};
    if (rank < 0) {
        d[0] = d[1] = accel_dim_unknown();
        return accel_result_dims(n, 0, accel_operand_dtype(n, 0), 2, d);
    }
    if (p->axis < -rank || p->axis > rank)
        return accel_fail(ACCEL_ESHAPE, "axis %lld of an input of rank %d", (long long)p->axis,
                          rank);
    int64_t axis = p->axis < 0 ? p->axis + rank : p->axis;
    for (int i = 0; i < rank; i++) {
        struct accel_dim *half = &d[i >= axis];
        ACCEL_TRY(accel_dim_mul(half, accel_operand_symbols(n), *half, accel_operand_dim(n, 0, i)));
    }
    return accel_result_dims(n, 0, accel_operand_dtype(n, 0), 2, d);
}

/* ------------------------------------------------------------------------------ Squeeze, Unsqueeze
 */

/* All axes of size 1 go; of unknown rank when a size is not known. */
static enum accel_err squeeze_all(struct accel_node *n)
{
    const struct accel_shape *x = &n->in[0]->shape;
    struct accel_shape out = {-1, NULL};
    int rank = 0, k = 0;
    for (int i = 0; i < x->rank; i++) {
        if (x->dim[i].n < 0) {
            accel_result_set(n, 0, accel_operand_dtype(n, 0), out);
            return ACCEL_OK;
        }
        rank += x->dim[i].n != 1;
    }
    ACCEL_TRY(accel_shape_new(&out, n, rank));
    for (int i = 0; i < x->rank; i++)
        if (x->dim[i].n != 1)
            out.dim[k++] = x->dim[i];
    accel_result_set(n, 0, accel_operand_dtype(n, 0), out);
    return ACCEL_OK;
}

static enum accel_err squeeze_infer(struct accel_node *n)
{
    const struct accel_value *x = accel_operand(n, 0);
    struct accel_list axes;
    struct accel_shape out = {-1, NULL};
    int rank = accel_operand_rank(n, 0), k = 0;
    ACCEL_TRY(accel_list_get(&axes, n, "axes", 1));
    if (rank >= 0 && !axes.given)
        return squeeze_all(n);
    if (rank >= 0 && axes.n > rank)
        return accel_fail(ACCEL_ESHAPE, "%lld axes of an input of rank %d", (long long)axes.n,
                          rank);
    if (rank >= 0 && axes.known) {
        bool *mark = accel_op_scratch(n, rank, sizeof *mark);
        if (!mark)
            return ACCEL_ENOMEM;
        ACCEL_TRY(accel_axes_mark(mark, &axes, rank));
        ACCEL_TRY(accel_shape_new(&out, n, rank - (int)axes.n));
        for (int i = 0; i < rank; i++) {
            if (!mark[i])
                out.dim[k++] = x->shape.dim[i];
            else if (accel_dim_known(x->shape.dim[i]) && x->shape.dim[i].n != 1)
                return accel_fail(ACCEL_ESHAPE, "axis %d has size %lld, not 1", i,
                                  (long long)x->shape.dim[i].n);
        }
    } else if (rank >= 0 && axes.n >= 0) {
        ACCEL_TRY(accel_shape_new(&out, n, rank - (int)axes.n));
    }
    accel_result_set(n, 0, accel_operand_dtype(n, 0), out);
    return ACCEL_OK;
}

static enum accel_err unsqueeze_infer(struct accel_node *n)
{
    const struct accel_value *x = accel_operand(n, 0);
    struct accel_list axes;
    struct accel_shape out = {-1, NULL};
    int rank = accel_operand_rank(n, 0);
    ACCEL_TRY(accel_list_get(&axes, n, "axes", 1));
    if (rank >= 0 && axes.n >= 0 && axes.n <= ACCEL_KNOWN_MAX)
        ACCEL_TRY(accel_shape_new(&out, n, rank + (int)axes.n));
    if (out.rank > 0 && axes.known) {
        bool *mark = accel_op_scratch(n, out.rank, sizeof *mark);
        if (!mark)
            return ACCEL_ENOMEM;
        ACCEL_TRY(accel_axes_mark(mark, &axes, out.rank));
        for (int i = 0, k = 0; i < out.rank; i++)
            out.dim[i] = mark[i] ? accel_dim_of(1) : x->shape.dim[k++];
    }
    accel_result_set(n, 0, accel_operand_dtype(n, 0), out);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------------------ rows */

static const struct accel_attr_rule reshape_attrs[] = {
    {"shape", ACCEL_ATTR_INTS, 0}, {"allowzero", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule flatten_attrs[] = {{"axis", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule axes_attrs[] = {{"axes", ACCEL_ATTR_INTS, 0}, {0}};

const struct accel_op accel_op_identity = {
    .name = "Identity",
    .domain = "",
    .since = 1,
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .flags = ACCEL_OP_MOVES | ACCEL_OP_VIEWS,
    .infer = identity_infer,
    .links = accel_link_unary,
    .zero = accel_zero_moved,
    .carry = identity_carry,
    .forward = accel_kernel_copy,
    .examples = (const char *const[]){"2x3", "scalar", NULL},
};

const struct accel_op accel_op_reshape = {
    .name = "Reshape",
    .domain = "",
    .since = 1,
    .min_in = 1,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flags = ACCEL_OP_MOVES | ACCEL_OP_VIEWS,
    .attrs = reshape_attrs,
    .parse = reshape_parse,
    .infer = reshape_infer,
    .links = reshape_links,
    .zero = reshape_zero,
    .resize = reshape_resize,
    .sizes = 1u << 1,
    .carry = accel_carry_by_position,
    .forward = accel_kernel_copy,
    .examples = (const char *const[]){"2x3x4 [2,12]", "2x3x4 [0,-1]", "2x6x4 [2,2,3,4]",
                                      "2x12 [2,3,4]", "6x4 [2,12]", "4x6 [2,3,-1]", NULL},
};

const struct accel_op accel_op_flatten = {
    .name = "Flatten",
    .domain = "",
    .since = 1,
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .flags = ACCEL_OP_MOVES | ACCEL_OP_VIEWS,
    .attrs = flatten_attrs,
    .parse = flatten_parse,
    .infer = flatten_infer,
    .links = free_links,
    .zero = free_zero,
    .carry = accel_carry_by_position,
    .forward = accel_kernel_copy,
    .examples = (const char *const[]){"2x3x4x5", "2x3x4 | axis=-1", NULL},
};

const struct accel_op accel_op_squeeze = {
    .name = "Squeeze",
    .domain = "",
    .since = 1,
    .min_in = 1,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flags = ACCEL_OP_MOVES | ACCEL_OP_VIEWS,
    .attrs = axes_attrs,
    .infer = squeeze_infer,
    .links = squeeze_links,
    .zero = free_zero,
    .resize = squeeze_resize,
    .carry = accel_carry_by_position,
    .forward = accel_kernel_copy,
    .examples = (const char *const[]){"1x3x1x5", "1x3x1x5 [2]", NULL},
};

const struct accel_op accel_op_unsqueeze = {
    .name = "Unsqueeze",
    .domain = "",
    .since = 1,
    .min_in = 1,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flags = ACCEL_OP_MOVES | ACCEL_OP_VIEWS,
    .attrs = axes_attrs,
    .infer = unsqueeze_infer,
    .links = free_links,
    .zero = free_zero,
    .carry = accel_carry_by_position,
    .forward = accel_kernel_copy,
    .examples = (const char *const[]){"3x4 [0,-1]", NULL},
};
