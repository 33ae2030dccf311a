/* chain.c - nodes behind a kernel that become steps on its result: functions of one element, and
 * arithmetic with another tensor that stretches to it. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "graph/attr.h"
#include "ops/onednn/chain.h"
#include "ops/onednn/dn_job.h"

/* Functions whose parameters are attributes or fixed. */
static const struct {
    const char *op;
    enum accel_dn_algo algo;
    const char *alpha; /* attribute; NULL: the default is the value */
    float a, b;
} functions[] = {
    {"Relu", ACCEL_DN_RELU, NULL, 0, 0},          {"LeakyRelu", ACCEL_DN_RELU, "alpha", 0.01f, 0},
    {"Sigmoid", ACCEL_DN_LOGISTIC, NULL, 0, 0},   {"Tanh", ACCEL_DN_TANH, NULL, 0, 0},
    {"Elu", ACCEL_DN_ELU, "alpha", 1, 0},         {"HardSwish", ACCEL_DN_HARDSWISH, NULL, 0, 0},
    {"Swish", ACCEL_DN_SWISH, "alpha", 1, 0},     {"Mish", ACCEL_DN_MISH, NULL, 0, 0},
    {"Softplus", ACCEL_DN_SOFT_RELU, NULL, 0, 0}, {"Log", ACCEL_DN_LOG, NULL, 0, 0},
    {"Sqrt", ACCEL_DN_SQRT, NULL, 0, 0},          {"Abs", ACCEL_DN_ABS, NULL, 0, 0},
    {"Neg", ACCEL_DN_LINEAR, NULL, -1, 0},
};

/* Bounds of Clip: attributes, or inputs that must be constants. */
static bool clip(struct accel_dn_post *post, const struct accel_dn_job *j, int at)
{
    const struct accel_node *n = j->ask->chain[at];
    int first = accel_dn_first_operand(j, at) + (at == 0);
    float *bound[2] = {&post->alpha, &post->beta};
    *post = (struct accel_dn_post){ACCEL_DN_CLIP, -FLT_MAX, FLT_MAX, -1};
    if (accel_attr_float(&post->alpha, n, "min", -FLT_MAX) ||
        accel_attr_float(&post->beta, n, "max", FLT_MAX))
        return false;
    for (int i = 0; i + 1 < n->n_in && i < 2; i++) {
        const float *v;
        if (!n->in[i + 1])
            continue;
        if (accel_dn_constant(&v, j, first + i, 1))
            return false;
        *bound[i] = *v;
    }
    return post->alpha <= post->beta;
}

/* min(max(alpha x + beta, 0), 1) */
static bool hard_sigmoid(struct accel_dn_post post[2], const struct accel_node *n)
{
    post[0] = (struct accel_dn_post){ACCEL_DN_LINEAR, 0, 0, -1};
    post[1] = (struct accel_dn_post){ACCEL_DN_CLIP, 0, 1, -1};
    return !accel_attr_float(&post[0].alpha, n, "alpha", 0.2f) &&
           !accel_attr_float(&post[0].beta, n, "beta", 0.5f);
}

bool accel_dn_function(struct accel_dn_post post[2], int *n_post, const struct accel_dn_job *j,
                       int at)
{
    const struct accel_node *n = j->ask->chain[at];
    const char *how;
    *n_post = 1;
    if (*n->op->domain)
        return false;
    if (strcmp(n->op->name, "Clip") == 0)
        return clip(post, j, at);
    if (n->n_in != 1)
        return false;
    if (strcmp(n->op->name, "HardSigmoid") == 0) {
        *n_post = 2;
        return hard_sigmoid(post, n);
    }
    if (strcmp(n->op->name, "Gelu") == 0) {
        if (accel_attr_string(&how, n, "approximate", "none"))
            return false;
        post[0] =
            (struct accel_dn_post){*how == 't' ? ACCEL_DN_GELU_TANH : ACCEL_DN_GELU_ERF, 0, 0, -1};
        return true;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(n->op->name, functions[i].op) == 0) {
            post[0] = (struct accel_dn_post){functions[i].algo, functions[i].a, functions[i].b, -1};
            return !functions[i].alpha ||
                   !accel_attr_float(&post[0].alpha, n, functions[i].alpha, functions[i].a);
        }
    return false;
}

bool accel_dn_arithmetic(enum accel_dn_algo *algo, bool *swaps, const struct accel_node *n)
{
    static const struct {
        const char *op;
        enum accel_dn_algo algo;
        bool swaps;
    } rows[] = {{"Add", ACCEL_DN_ADD, true},
                {"Sum", ACCEL_DN_ADD, true},
                {"Mul", ACCEL_DN_MUL, true},
                {"Sub", ACCEL_DN_SUB, false},
                {"Div", ACCEL_DN_DIV, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !*n->op->domain && n->n_in == 2; i++)
        if (strcmp(n->op->name, rows[i].op) == 0) {
            *algo = rows[i].algo;
            *swaps = rows[i].swaps;
            return true;
        }
    return false;
}

bool accel_dn_with_number(struct accel_dn_post *post, enum accel_dn_algo algo, bool first, float c)
{
    *post = (struct accel_dn_post){ACCEL_DN_LINEAR, 1, 0, -1};
    if (algo == ACCEL_DN_ADD)
        post->beta = c;
    else if (algo == ACCEL_DN_MUL)
        post->alpha = c;
    else if (algo == ACCEL_DN_DIV && first)
        post->alpha = 1 / c;
    else if (algo == ACCEL_DN_SUB && first)
        post->beta = -c;
    else if (algo == ACCEL_DN_SUB)
        *post = (struct accel_dn_post){ACCEL_DN_LINEAR, -1, c, -1};
    else
        return false;
    return isfinite(post->alpha) && isfinite(post->beta);
}

bool accel_dn_same_sizes(const struct accel_value *a, const struct accel_value *b)
{
    bool same = a && b && a->shape.rank == b->shape.rank;
    for (int i = 0; same && i < a->shape.rank; i++)
        same = a->shape.dim[i].n == b->shape.dim[i].n;
    return same;
}

/* How operand i is seen beside the result: its sizes with ones in front. Where the result itself is
 * seen as rows and columns, one number per column, or a tensor of the result's own size. */
static bool stretches(int64_t dim[ACCEL_DN_MAX_RANK], const struct accel_dn_job *j, int i,
                      const struct accel_value *result)
{
    int64_t own[ACCEL_DN_MAX_RANK];
    int rank = 0, other = 0;
    if (accel_dn_dims(&rank, own, j->ask->operand[i]) || rank > result->shape.rank)
        return false;
    if (j->viewed && accel_dn_same_sizes(j->ask->operand[i], result)) {
        memcpy(dim, j->dim, (size_t)j->rank * sizeof *dim);
        return true;
    }
    for (int d = 0; d < rank - 1; d++)
        other += own[d] != 1;
    if (j->viewed && (other || (own[rank - 1] != 1 && own[rank - 1] != j->dim[j->rank - 1])))
        return false;
    for (int d = 0; d < j->rank; d++) {
        int at = d - (j->rank - rank);
        dim[d] = at < 0 ? 1 : own[at];
        if (dim[d] != 1 && dim[d] != j->dim[d])
            return false;
    }
    return true;
}

/* Adds a function of one element as the next step. Two steps that multiply and add become one. The
 * library (2.6) gives two post-ops of the same function the numbers of the first, so the second one
 * must have the same: false otherwise. */
static bool append(struct accel_dn_job *j, const struct accel_dn_post *step)
{
    struct accel_dn_post *post = j->spec.post, *last = post + j->spec.n_post - 1;
    struct accel_dn_post both = *step;
    int n = j->spec.n_post;
    if (n && step->algo == ACCEL_DN_LINEAR && last->algo == ACCEL_DN_LINEAR) {
        both.alpha = step->alpha * last->alpha;
        both.beta = step->alpha * last->beta + step->beta;
        if (!isfinite(both.alpha) || !isfinite(both.beta))
            return false;
        n--;
    }
    for (int i = 0; i < n; i++)
        if (post[i].in < 0 && post[i].algo == both.algo &&
            (post[i].alpha < both.alpha || post[i].alpha > both.alpha || post[i].beta < both.beta ||
             post[i].beta > both.beta))
            return false;
    post[n] = both;
    j->spec.n_post = n + 1;
    return true;
}

/* The node combines the result so far with another tensor. */
static enum accel_err add_arithmetic(struct accel_dn_job *j, int at)
{
    const struct accel_node *n = j->ask->chain[at];
    const struct accel_value *before = j->ask->chain[at - 1]->out[0];
    struct accel_dn_post step;
    int64_t dim[ACCEL_DN_MAX_RANK];
    enum accel_dn_algo algo;
    const float *number;
    bool swaps, whole = true;
    int i = accel_dn_first_operand(j, at);
    if (!accel_dn_arithmetic(&algo, &swaps, n) || !n->in[0] || !n->in[1])
        return accel_fail(ACCEL_ENOSUP, "no step on a result");
    if (!accel_dn_constant(&number, j, i, 1) &&
        accel_dn_with_number(&step, algo, n->in[0] == before, *number)) {
        if (!append(j, &step))
            return accel_fail(ACCEL_ENOSUP, "the same function with other numbers");
        return ACCEL_OK;
    }
    if ((n->in[0] != before && !swaps) || !stretches(dim, j, i, n->out[0]))
        return accel_fail(ACCEL_ENOSUP, "no step on a result");
    for (int d = 0; d < j->rank; d++)
        whole = whole && dim[d] == j->dim[d];
    j->spec.post[j->spec.n_post++] = (struct accel_dn_post){algo, 0, 0, j->spec.n_in};
    if (whole && !j->viewed && j->ask->operand[i]->shape.rank == j->rank)
        ACCEL_TRY(accel_dn_add(j, i, false));
    else
        ACCEL_TRY(accel_dn_add_view(j, i, j->rank, dim, NULL, false));
    j->arg[j->spec.n_in - 1].like_out = whole;
    return ACCEL_OK;
}

enum accel_err accel_dn_chain(struct accel_dn_job *j, int from)
{
    for (j->takes = from; j->takes < j->limit; j->takes++) {
        struct accel_dn_post step[2], before[ACCEL_DN_MAX_POST];
        int n_step, n_in = j->spec.n_in, n_before = j->spec.n_post;
        const struct accel_node *n = j->ask->chain[j->takes];
        enum accel_err err = ACCEL_OK;
        if (n->out[0]->dtype != ACCEL_F32 || n_before + 2 > ACCEL_DN_MAX_POST ||
            !accel_dn_same_sizes(j->ask->chain[j->takes - 1]->out[0], n->out[0]))
            break;
        memcpy(before, j->spec.post, sizeof before);
        if (!accel_dn_function(step, &n_step, j, j->takes))
            err = add_arithmetic(j, j->takes);
        else
            for (int i = 0; i < n_step && !err; i++)
                err = append(j, &step[i]) ? ACCEL_OK : ACCEL_ENOSUP;
        if (err == ACCEL_ENOSUP) {
            memcpy(j->spec.post, before, sizeof before);
            j->spec.n_in = n_in;
            j->spec.n_post = n_before;
            break;
        }
        ACCEL_TRY(err);
    }
    return ACCEL_OK;
}
