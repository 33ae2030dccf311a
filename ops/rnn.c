/* rnn.c - plain recurrent cells, one sample and one step at a time.
 *
 *     LSTM  i, o, f = f(x Wi + h Ri + Pi c + b)   c' = f c + i g(x Wc + h Rc + b)   h' = o h(c')
 *           (the output gate looks at c')
 *     GRU   z, r = f(x W + h R + b)   n = g(x Wn + (r h) Rn + b), or with linear_before_reset r (h
 * Rn + Rb) h' = (1 - z) n + z h RNN   h' = f(x W + h R + b) Gates stand in the order i o f c, z r
 * h. Source: the ONNX pages of LSTM, GRU, RNN. */
#include "ops/rnn.h"

#include <math.h>
#include <string.h>

#include "graph/attr.h"

static double sigmoid(double x, double a, double b)
{
    (void)a, (void)b;
    return 1 / (1 + exp(-x));
}
static double tanh_gate(double x, double a, double b)
{
    (void)a, (void)b;
    return tanh(x);
}
static double relu(double x, double a, double b)
{
    (void)a, (void)b;
    return x > 0 ? x : 0;
}
static double affine(double x, double a, double b)
{
    return a * x + b;
}
static double leaky(double x, double a, double b)
{
    (void)b;
    return x >= 0 ? x : a * x;
}
static double thresholded(double x, double a, double b)
{
    (void)b;
    return x > a ? x : 0;
}
static double scaled_tanh(double x, double a, double b)
{
    return a * tanh(b * x);
}
static double hard_sigmoid(double x, double a, double b)
{
    return fmin(fmax(a * x + b, 0), 1);
}
static double elu(double x, double a, double b)
{
    (void)b;
    return x >= 0 ? x : a * (exp(x) - 1);
}
static double softsign(double x, double a, double b)
{
    (void)a, (void)b;
    return x / (1 + fabs(x));
}
static double softplus(double x, double a, double b)
{
    (void)a, (void)b;
    return log1p(exp(-fabs(x))) + (x > 0 ? x : 0);
}

static const struct {
    const char *name;
    double (*f)(double, double, double);
    double alpha, beta;
    bool has_alpha, has_beta;
} known[] = {{"Sigmoid", sigmoid, 0, 0, false, false},
             {"Tanh", tanh_gate, 0, 0, false, false},
             {"Relu", relu, 0, 0, false, false},
             {"Affine", affine, 1, 0, true, true},
             {"LeakyRelu", leaky, 0.01, 0, true, false},
             {"ThresholdedRelu", thresholded, 1, 0, true, false},
             {"ScaledTanh", scaled_tanh, 1, 1, true, true},
             {"HardSigmoid", hard_sigmoid, 0.2, 0.5, true, true},
             {"Elu", elu, 1, 0, true, false},
             {"Softsign", softsign, 0, 0, false, false},
             {"Softplus", softplus, 0, 0, false, false}};

static enum accel_err find_gate(size_t *out, const char *name)
{
    for (*out = 0; *out < sizeof known / sizeof *known; ++*out)
        if (strcasecmp(known[*out].name, name) == 0)
            return ACCEL_OK;
    return accel_fail(ACCEL_EMODEL, "attribute 'activations' holds \"%.50s\"", name);
}

/* Defaults: f is Sigmoid (Tanh for RNN), the others Tanh. */
static void default_gates(struct accel_rnn_params *p, int gates)
{
    for (int d = 0; d < 2; d++)
        for (int k = 0; k < 3; k++)
            p->gate[d][k] =
                (struct accel_rnn_gate){k == 0 && gates > 1 ? sigmoid : tanh_gate, 0, 0};
}

enum accel_err accel_rnn_read(struct accel_rnn_params *p, const struct accel_node *n, int gates)
{
    const struct accel_attr *names = accel_attr_find(n, "activations");
    const float *alpha, *beta;
    size_t n_alpha, n_beta, a = 0, b = 0;
    float clip;
    int64_t forget, linear;
    ACCEL_TRY(accel_attr_floats(&alpha, &n_alpha, n, "activation_alpha"));
    ACCEL_TRY(accel_attr_floats(&beta, &n_beta, n, "activation_beta"));
    ACCEL_TRY(accel_attr_float(&clip, n, "clip", INFINITY));
    ACCEL_TRY(accel_attr_int(&forget, n, "input_forget", 0));
    ACCEL_TRY(accel_attr_int(&linear, n, "linear_before_reset", 0));
    p->clip = (double)clip;
    p->input_forget = forget != 0;
    p->linear_before_reset = linear != 0;
    default_gates(p, gates);
    size_t per = gates == 4 ? 3 : gates == 3 ? 2 : 1;
    if (!names || names->ref || names->kind != ACCEL_ATTR_STRINGS)
        return ACCEL_OK;
    if (names->n != per * (size_t)p->directions)
        return accel_fail(ACCEL_EMODEL, "attribute 'activations' has %zu entries instead of %zu",
                          names->n, per * (size_t)p->directions);
    for (size_t i = 0; i < names->n; i++) {
        size_t k;
        ACCEL_TRY(find_gate(&k, names->strings[i].at));
        struct accel_rnn_gate *g = &p->gate[i / per][i % per];
        *g = (struct accel_rnn_gate){known[k].f, known[k].alpha, known[k].beta};
        if (known[k].has_alpha && a < n_alpha)
            g->alpha = (double)alpha[a++];
        if (known[k].has_beta && b < n_beta)
            g->beta = (double)beta[b++];
    }
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ one direction of one sample */

struct cell {
    const struct accel_rnn_params *p;
    const struct accel_rnn_gate *gate;
    int gates;
    int64_t I, H;
    const real *w, *r, *b, *peep; /* of this direction; b, peep may be NULL */
    double *sum, *h, *c, *old;    /* scratch: [gates*H], [H] each */
};

static double bias(const struct cell *l, int64_t row)
{
    return l->b ? (double)l->b[row] : 0;
}

static double dot(const real *w, const double *v, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++)
        s += (double)w[i] * v[i];
    return s;
}

static double clipped(const struct cell *l, double v)
{
    return fmin(fmax(v, -l->p->clip), l->p->clip);
}

static double act(const struct cell *l, int k, double v)
{
    return l->gate[k].f(clipped(l, v), l->gate[k].alpha, l->gate[k].beta);
}

/* sum[row] = x W + h R + both biases, for all rows (or those below `rows` for R). */
static void project(struct cell *l, const real *x, int64_t r_rows)
{
    int64_t rows = l->gates * l->H;
    for (int64_t k = 0; k < rows; k++) {
        double s = bias(l, k);
        for (int64_t i = 0; i < l->I; i++)
            s += (double)l->w[k * l->I + i] * (double)x[i];
        if (k < r_rows)
            s += bias(l, rows + k) + dot(l->r + k * l->H, l->h, l->H);
        l->sum[k] = s;
    }
}

static void lstm_step(struct cell *l, const real *x)
{
    int64_t H = l->H;
    const real *p = l->peep;
    project(l, x, 4 * H);
    for (int64_t k = 0; k < H; k++) {
        double c = l->c[k];
        double i = act(l, 0, l->sum[k] + (p ? (double)p[k] * c : 0));
        double f = l->p->input_forget
                       ? 1 - i
                       : act(l, 0, l->sum[2 * H + k] + (p ? (double)p[2 * H + k] * c : 0));
        c = f * c + i * act(l, 1, l->sum[3 * H + k]);
        double o = act(l, 0, l->sum[H + k] + (p ? (double)p[H + k] * c : 0));
        l->c[k] = c;
        l->h[k] = o * act(l, 2, c);
    }
}

static void gru_step(struct cell *l, const real *x)
{
    int64_t H = l->H, rows = 3 * H;
    project(l, x, 2 * H);
    for (int64_t k = 0; k < 2 * H; k++)
        l->sum[k] = act(l, 0, l->sum[k]);
    for (int64_t k = 0; k < H; k++)
        l->old[k] = l->p->linear_before_reset ? l->h[k] : l->sum[H + k] * l->h[k];
    for (int64_t k = 0; k < H; k++) {
        double s = dot(l->r + (2 * H + k) * H, l->old, H) + bias(l, rows + 2 * H + k);
        if (l->p->linear_before_reset)
            s *= l->sum[H + k];
        l->sum[2 * H + k] = act(l, 1, l->sum[2 * H + k] + s);
    }
    for (int64_t k = 0; k < H; k++)
        l->h[k] = (1 - l->sum[k]) * l->sum[2 * H + k] + l->sum[k] * l->h[k];
}

static void rnn_step(struct cell *l, const real *x)
{
    project(l, x, l->H);
    for (int64_t k = 0; k < l->H; k++)
        l->h[k] = act(l, 0, l->sum[k]);
}

/* ------------------------------------------------------------------ all of them */

/* Positions in X and Y, with the batch first or second. */
struct layout {
    int64_t T, N, D, I, H;
    bool batch_first;
};

static int64_t at_x(const struct layout *s, int64_t t, int64_t n)
{
    return (s->batch_first ? n * s->T + t : t * s->N + n) * s->I;
}
static int64_t at_y(const struct layout *s, int64_t t, int64_t d, int64_t n)
{
    return (s->batch_first ? (n * s->T + t) * s->D + d : (t * s->D + d) * s->N + n) * s->H;
}
static int64_t at_state(const struct layout *s, int64_t d, int64_t n)
{
    return (s->batch_first ? n * s->D + d : d * s->N + n) * s->H;
}

static const real *operand(const struct accel_call *c, int i)
{
    return i < c->node->n_in ? c->x[i].data : NULL;
}
static real *result(const struct accel_call *c, int i)
{
    return i < c->node->n_out ? c->y[i].data : NULL;
}

static void load_state(double *to, const real *from, int64_t at, int64_t H)
{
    for (int64_t k = 0; k < H; k++)
        to[k] = from ? (double)from[at + k] : 0;
}
static void store_state(real *to, int64_t at, const double *from, int64_t H)
{
    for (int64_t k = 0; to && k < H; k++)
        to[at + k] = (real)from[k];
}

static void run_sample(struct cell *l, const struct accel_call *c, const struct layout *s,
                       int64_t d, int64_t n, int64_t steps)
{
    bool back = l->p->reverse || d == 1;
    real *y = result(c, 0);
    load_state(l->h, operand(c, 5), at_state(s, d, n), s->H);
    load_state(l->c, l->gates == 4 ? operand(c, 6) : NULL, at_state(s, d, n), s->H);
    for (int64_t i = 0; i < steps; i++) {
        int64_t t = back ? steps - 1 - i : i;
        const real *x = (const real *)c->x[0].data + at_x(s, t, n);
        if (l->gates == 4)
            lstm_step(l, x);
        else if (l->gates == 3)
            gru_step(l, x);
        else
            rnn_step(l, x);
        store_state(y, at_y(s, t, d, n), l->h, s->H);
    }
    for (int64_t t = steps; y && t < s->T; t++) /* behind the end of the sequence */
        for (int64_t k = 0; k < s->H; k++)
            y[at_y(s, t, d, n) + k] = 0;
    store_state(result(c, 1), at_state(s, d, n), l->h, s->H);
    if (l->gates == 4)
        store_state(result(c, 2), at_state(s, d, n), l->c, s->H);
}

size_t accel_rnn_scratch(const struct accel_call *c)
{
    const struct accel_rnn *f = c->node->op->family;
    return (size_t)(f->gates + 3) * (size_t)c->x[2].dim[2] * sizeof(double);
}

enum accel_err accel_rnn_forward(const struct accel_call *c)
{
    const struct accel_rnn *f = c->node->op->family;
    const struct accel_rnn_params *p = c->node->params;
    const struct accel_array *x = &c->x[0];
    struct layout s = {x->dim[p->batch_first], x->dim[!p->batch_first], p->directions, x->dim[2],
                       c->x[2].dim[2],         p->batch_first};
    const int64_t *lens = c->node->n_in > 4 ? c->x[4].data : NULL;
    int64_t rows = f->gates * s.H;
    double *room = c->scratch;
    for (int64_t d = 0; d < s.D; d++) {
        const real *b = operand(c, 3), *peep = f->gates == 4 ? operand(c, 7) : NULL;
        struct cell l = {p,
                         p->gate[d],
                         f->gates,
                         s.I,
                         s.H,
                         (const real *)c->x[1].data + d * rows * s.I,
                         (const real *)c->x[2].data + d * rows * s.H,
                         b ? b + d * 2 * rows : NULL,
                         peep ? peep + d * 3 * s.H : NULL,
                         room,
                         room + rows,
                         room + rows + s.H,
                         room + rows + 2 * s.H};
        for (int64_t n = 0; n < s.N; n++) {
            int64_t steps = lens ? lens[n] : s.T;
            if (steps < 0 || steps > s.T)
                return accel_fail(ACCEL_ESHAPE, "sequence %lld has %lld steps of %lld",
                                  (long long)n, (long long)steps, (long long)s.T);
            run_sample(&l, c, &s, d, n, steps);
        }
    }
    return ACCEL_OK;
}
