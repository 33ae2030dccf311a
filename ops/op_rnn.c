/* LSTM, GRU and RNN: X [T N I], W [D G*H I], R [D G*H H], B [D 2*G*H]
 *   -> Y [T D N H], Y_h [D N H], Y_c [D N H]    (T steps, N batch, D directions, G gates)
 * With layout = 1 the batch comes first: X [N T I], Y [N T D H], Y_h [N D H]. com.microsoft's
 * DynamicQuantizeLSTM stores the weights transposed: W [D I G*H], R [D H G*H]. */
#include <math.h>
#include <string.h>

#include "graph/attr.h"
#include "ops/link_util.h"
#include "ops/operand.h"
#include "ops/rnn.h"

static enum accel_err parse(struct accel_node *n, int opset)
{
    struct accel_rnn_params *p = ACCEL_NEW(&n->graph->model->arena, struct accel_rnn_params, 1);
    const char *direction;
    int64_t layout;
    (void)opset;
    if (!p)
        return accel_fail_nomem();
    ACCEL_TRY(accel_attr_int(&p->hidden, n, "hidden_size", 0));
    ACCEL_TRY(accel_attr_int(&layout, n, "layout", 0));
    ACCEL_TRY(accel_attr_string(&direction, n, "direction", "forward"));
    if (p->hidden < 0)
        return accel_fail(ACCEL_EMODEL, "attribute 'hidden_size' is %lld", (long long)p->hidden);
    if (strcmp(direction, "bidirectional") == 0)
        p->directions = 2;
    else if (strcmp(direction, "forward") == 0 || strcmp(direction, "reverse") == 0)
        p->directions = 1;
    else
        return accel_fail(ACCEL_EMODEL, "attribute 'direction' is \"%.50s\"", direction);
    p->batch_first = layout != 0;
    p->reverse = strcmp(direction, "reverse") == 0;
    n->params = p;
    return accel_rnn_read(p, n, ((const struct accel_rnn *)n->op->family)->gates);
}

/* H, from the attribute or the recurrent weight; both must agree. */
static enum accel_err hidden(struct accel_dim *h, const struct accel_node *n)
{
    const struct accel_rnn *f = n->op->family;
    const struct accel_rnn_params *p = n->params;
    struct accel_dim said = p->hidden ? accel_dim_of(p->hidden) : accel_dim_unknown();
    struct accel_dim r = accel_operand_dim(n, 2, f->transposed ? 1 : 2);
    struct accel_dim w = accel_operand_dim(n, 1, f->transposed ? 2 : 1);
    if (!accel_dim_join(h, said, r))
        return accel_fail(ACCEL_ESHAPE, "hidden_size is %lld, weight '%.200s' says %lld",
                          (long long)said.n, n->in[2]->name, (long long)r.n);
    if (!accel_dim_known(*h) && accel_dim_known(w) && w.n % f->gates == 0)
        *h = accel_dim_of(w.n / f->gates);
    if (accel_dim_known(*h) && accel_dim_known(w) && w.n != accel_macs_mul(h->n, f->gates))
        return accel_fail(ACCEL_ESHAPE, "weight '%.200s' has %lld rows for %d gates of %lld",
                          n->in[1]->name, (long long)w.n, f->gates, (long long)h->n);
    return ACCEL_OK;
}

static enum accel_err check(const struct accel_node *n)
{
    const struct accel_rnn *f = n->op->family;
    const struct accel_rnn_params *p = n->params;
    for (int i = 0; i < 3; i++)
        ACCEL_TRY(accel_operand_check_rank(n, i, 3));
    struct accel_dim in = accel_operand_dim(n, 0, 2);
    struct accel_dim want = accel_operand_dim(n, 1, f->transposed ? 1 : 2);
    struct accel_dim d = accel_operand_dim(n, 1, 0);
    if (accel_dim_differs(in, want))
        return accel_fail(ACCEL_ESHAPE, "input has %lld features, weight '%.200s' expects %lld",
                          (long long)in.n, n->in[1]->name, (long long)want.n);
    if (accel_dim_differs(d, accel_dim_of(p->directions)))
        return accel_fail(ACCEL_ESHAPE, "weight '%.200s' has %lld directions instead of %lld",
                          n->in[1]->name, (long long)d.n, (long long)p->directions);
    return ACCEL_OK;
}

static enum accel_err infer(struct accel_node *n)
{
    const struct accel_rnn_params *p = n->params;
    enum accel_dtype dtype = accel_operand_dtype(n, 0);
    struct accel_dim h = accel_dim_unknown(), d = accel_dim_of(p->directions);
    struct accel_dim t = accel_operand_dim(n, 0, p->batch_first);
    struct accel_dim batch = accel_operand_dim(n, 0, !p->batch_first);
    ACCEL_TRY(check(n));
    ACCEL_TRY(hidden(&h, n));
    struct accel_dim y[2][4] = {{t, d, batch, h}, {batch, t, d, h}};
    struct accel_dim last[2][3] = {{d, batch, h}, {batch, d, h}};
    ACCEL_TRY(accel_result_dims(n, 0, dtype, 4, y[p->batch_first]));
    for (int i = 1; i < n->n_out; i++)
        ACCEL_TRY(accel_result_dims(n, i, dtype, 3, last[p->batch_first]));
    return ACCEL_OK;
}

/* T * N * D * G * H * (I + H) */
static void cost(const struct accel_node *n, struct accel_cost *c)
{
    const struct accel_rnn *f = n->op->family;
    const struct accel_rnn_params *p = n->params;
    struct accel_dim h = accel_dim_unknown(), in = accel_operand_dim(n, 0, 2);
    c->macs = -1;
    if (hidden(&h, n) != ACCEL_OK)
        return;
    if (!accel_dim_known(in))
        in = accel_operand_dim(n, 1, f->transposed ? 1 : 2);
    int64_t steps = accel_macs_mul(accel_operand_dim(n, 0, 0).n, accel_operand_dim(n, 0, 1).n);
    int64_t rows = accel_macs_mul(accel_macs_mul(p->directions, f->gates), h.n);
    c->macs = accel_macs_mul(accel_macs_mul(steps, rows), accel_macs_add(in.n, h.n));
}

static int weights(const struct accel_node *n, struct accel_weight w[4])
{
    const struct accel_rnn *f = n->op->family;
    int out = f->transposed ? 2 : 1, in = f->transposed ? 1 : 2;
    w[0] = (struct accel_weight){1, 3, out, in, -1, f->type, false, 3, 0, 0};
    w[1] = (struct accel_weight){2, 3, out, in, -1, f->type, false, 3, 0, 0};
    return 2;
}

/* ------------------------------------------------------------------ links of the plain ones */

/* Unit h of the state: a row of every gate in W, R, B (twice) and P, a column of R. Time is a wall:
 * what a step leaves behind goes into the next. */
static void link_state(struct accel_links *l, int64_t H)
{
    const struct accel_node *n = l->node;
    int64_t gates = ((const struct accel_rnn *)n->op->family)->gates;
    struct accel_side side[10] = {
        accel_side_of(1, 1, 0, gates, H, 1),
        accel_side_of(2, 1, 0, gates, H, 1),
        accel_side_whole(2, 2),
        accel_side_of(accel_link_in(n, 3), 1, 0, 2 * gates, H, 1),
        accel_side_whole(accel_link_in(n, 5), 2),
        accel_side_whole(accel_link_in(n, 6), 2),
        accel_side_of(accel_link_in(n, 7), 1, 0, 3, H, 1),
    };
    int count = 7;
    for (int o = 0; o < n->n_out && o < 3; o++)
        side[count++] = accel_side_whole(accel_link_out(n, o), o == 0 ? 3 : 2);
    accel_links_tie(l, H, count, side);
}

static void link_batch(struct accel_links *l)
{
    const struct accel_node *n = l->node;
    const struct accel_rnn_params *p = n->params;
    int state = p->batch_first ? 0 : 1;
    struct accel_axis at[8] = {{0, state}, {accel_link_out(n, 0), p->batch_first ? 0 : 2}};
    int count = 2;
    if (accel_operand(n, 4))
        at[count++] = (struct accel_axis){4, 0};
    for (int i = 5; i < 7; i++)
        if (accel_operand(n, i))
            at[count++] = (struct accel_axis){i, state};
    for (int o = 1; o < n->n_out && o < 3; o++)
        at[count++] = (struct accel_axis){accel_link_out(n, o), state};
    accel_links_axes(l, count, at);
}

static void links(const struct accel_node *n, struct accel_links *l)
{
    struct accel_dim h = accel_dim_unknown();
    const struct accel_axis in[2] = {{0, 2}, {1, 2}}, state = {2, 2};
    if (!accel_links_ok(l, hidden(&h, n)) || !accel_dim_known(h) || h.n < 1 || check(n))
        return;
    accel_links_axes(l, 2, in);
    accel_links_need0(l, 2, in);
    accel_links_need0(l, 1, &state);
    link_state(l, h.n);
    link_batch(l);
}

/* The gates' activations take 0 to 0 where the state depends on it. */
static bool keeps_zero(const struct accel_node *n)
{
    const struct accel_rnn_params *p = n->params;
    int gates = ((const struct accel_rnn *)n->op->family)->gates;
    for (int64_t d = 0; d < p->directions && d < 2; d++)
        for (int k = gates == 1 ? 0 : 1; k < (gates == 4 ? 3 : gates == 3 ? 2 : 1); k++) {
            const struct accel_rnn_gate *g = &p->gate[d][k];
            double v = g->f(0, g->alpha, g->beta);
            if (v < 0 || v > 0 || isnan(v))
                return false;
        }
    return true;
}

/* A state without weights, biases and a start stays 0. */
static void zero(const struct accel_node *n, struct accel_zero *z)
{
    bool none = accel_zero_get(z, 1, 1) == 0 && accel_zero_get(z, 2, 1) == 0 && keeps_zero(n);
    if (accel_operand(n, 3))
        none = none && accel_zero_get(z, 3, 1) == 0;
    for (int i = 5; i < 7; i++)
        if (accel_operand(n, i))
            none = none && accel_zero_get(z, i, 2) == 0;
    for (int o = 0; none && o < n->n_out; o++)
        if (n->out[o])
            accel_zero_set(z, accel_link_out(n, o), n->out[o]->shape.rank - 1, 0);
}

static enum accel_err resize(struct accel_node *n, struct accel_resize *r)
{
    if (!accel_attr_find(n, "hidden_size") || !accel_resize_hit(r, 2, 2))
        return ACCEL_OK;
    return accel_resize_attr_int(r, "hidden_size", accel_resize_now(r, 2, 2));
}

#define COMMON_ATTRS                                                                               \
    {"activation_alpha", ACCEL_ATTR_FLOATS, 0}, {"activation_beta", ACCEL_ATTR_FLOATS, 0},         \
        {"activations", ACCEL_ATTR_STRINGS, 0}, {"clip", ACCEL_ATTR_FLOAT, 0},                     \
        {"direction", ACCEL_ATTR_STRING, 0},                                                       \
    {                                                                                              \
        "hidden_size", ACCEL_ATTR_INT, 0                                                           \
    }

static const struct accel_attr_rule lstm_attrs[] = {COMMON_ATTRS,
                                                    {"layout", ACCEL_ATTR_INT, 0},
                                                    {"output_sequence", ACCEL_ATTR_INT, 0},
                                                    {"input_forget", ACCEL_ATTR_INT, 0},
                                                    {0}};
static const struct accel_attr_rule gru_attrs[] = {COMMON_ATTRS,
                                                   {"layout", ACCEL_ATTR_INT, 0},
                                                   {"output_sequence", ACCEL_ATTR_INT, 0},
                                                   {"linear_before_reset", ACCEL_ATTR_INT, 0},
                                                   {0}};
static const struct accel_attr_rule rnn_attrs[] = {
    COMMON_ATTRS, {"layout", ACCEL_ATTR_INT, 0}, {"output_sequence", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule q_attrs[] = {
    COMMON_ATTRS, {"input_forget", ACCEL_ATTR_INT, 0}, {0}};
static const char *const lstm_examples[] = {
    "3x2x4 1x20x4 1x20x5 1x40 | hidden_size=5",
    "3x2x4 2x20x4 2x20x5 | hidden_size=5 direction=bidirectional",
    "3x2x4 1x20x4 1x20x5 1x40 - 1x2x5 1x2x5 1x15 | hidden_size=5", NULL};
static const char *const gru_examples[] = {
    "3x2x4 1x15x4 1x15x5 1x30 | hidden_size=5",
    "3x2x4 1x15x4 1x15x5 1x30 - 1x2x5 | hidden_size=5 linear_before_reset=1", NULL};
static const char *const rnn_examples[] = {"3x2x4 1x5x4 1x5x5 1x10 | hidden_size=5", NULL};
static const char *const q_examples[] = {
    "3x2x4 i8:1x4x20 i8:1x5x20 1x40 - 1x2x5 1x2x5 1x15 1 i8:1 1 i8:1 | hidden_size=5", NULL};

#define FIELDS(onnx, dom, least, most, outs, rules, eg, fwd, ...)                                  \
    .name = (onnx), .domain = (dom), .since = 1, .min_in = (least), .max_in = (most),              \
    .min_out = 0, .max_out = (outs), .attrs = (rules), .parse = parse, .infer = infer,             \
    .cost = cost, .weights = weights, .forward = (fwd),                                            \
    .family = &(const struct accel_rnn){__VA_ARGS__}, .examples = (eg)
#define ROW(onnx, most, outs, rules, eg, ...)                                                      \
    {                                                                                              \
        FIELDS(onnx, "", 3, most, outs, rules, eg, accel_rnn_forward, __VA_ARGS__),                \
            .scratch = accel_rnn_scratch, .links = links, .zero = zero, .resize = resize           \
    }
const struct accel_op accel_op_lstm =
    ROW("LSTM", 8, 3, lstm_attrs, lstm_examples, 4, false, "LSTM");
const struct accel_op accel_op_gru = ROW("GRU", 6, 2, gru_attrs, gru_examples, 3, false, "GRU");
const struct accel_op accel_op_rnn = ROW("RNN", 6, 2, rnn_attrs, rnn_examples, 1, false, "RNN");
const struct accel_op accel_op_ms_dynamicquantizelstm = {
    FIELDS("DynamicQuantizeLSTM", "com.microsoft", 12, 12, 3, q_attrs, q_examples,
           accel_rnn_q_forward, 4, true, "LSTM"),
    .scratch = accel_rnn_q_scratch,
    .holes = 1u << 3 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 7 | 1u << 9 | 1u << 11,
    .keep = 1u << 8 | 1u << 9 | 1u << 10 | 1u << 11,
};
