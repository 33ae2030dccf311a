/* LSTM, GRU and RNN: X [T N I], W [D G*H I], R [D G*H H], B [D 2*G*H]
 *   -> Y [T D N H], Y_h [D N H], Y_c [D N H]    (T steps, N batch, D directions, G gates)
 * With layout = 1 the batch comes first: X [N T I], Y [N T D H], Y_h [N D H]. com.microsoft's
 * DynamicQuantizeLSTM stores the weights transposed: W [D I G*H], R [D H G*H]. */
#include <string.h>

#include "graph/attr.h"
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
    w[0] = (struct accel_weight){1, 3, out, in, -1, f->type, false, 3};
    w[1] = (struct accel_weight){2, 3, out, in, -1, f->type, false, 3};
    return 2;
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
    "3x2x4 2x20x4 2x20x5 | hidden_size=5 direction=bidirectional", NULL};
static const char *const gru_examples[] = {"3x2x4 1x15x4 1x15x5 1x30 | hidden_size=5", NULL};
static const char *const rnn_examples[] = {"3x2x4 1x5x4 1x5x5 1x10 | hidden_size=5", NULL};
static const char *const q_examples[] = {
    "3x2x4 1x4x20 1x5x20 1x40 2 1x2x5 1x2x5 1x15 1 1 1 1 | hidden_size=5", NULL};

#define ROW(onnx, dom, least, most, outs, rules, eg, fwd, ...)                                     \
    {                                                                                              \
        .name = (onnx), .domain = (dom), .since = 1, .min_in = (least), .max_in = (most),          \
        .min_out = 0, .max_out = (outs), .attrs = (rules), .parse = parse, .infer = infer,         \
        .cost = cost, .weights = weights, .forward = (fwd), .scratch = accel_rnn_scratch,          \
        .family = &(const struct accel_rnn){__VA_ARGS__}, .examples = (eg)                         \
    }
const struct accel_op accel_op_lstm =
    ROW("LSTM", "", 3, 8, 3, lstm_attrs, lstm_examples, accel_rnn_forward, 4, false, "LSTM");
const struct accel_op accel_op_gru =
    ROW("GRU", "", 3, 6, 2, gru_attrs, gru_examples, accel_rnn_forward, 3, false, "GRU");
const struct accel_op accel_op_rnn =
    ROW("RNN", "", 3, 6, 2, rnn_attrs, rnn_examples, accel_rnn_forward, 1, false, "RNN");
const struct accel_op accel_op_ms_dynamicquantizelstm = ROW(
    "DynamicQuantizeLSTM", "com.microsoft", 12, 12, 3, q_attrs, q_examples, NULL, 4, true, "LSTM");
