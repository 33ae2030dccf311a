/* rnn_quantized.c - LSTM with 8-bit weights and activations that are quantised while it runs
 * (com.microsoft's DynamicQuantizeLSTM): W [D I 4H], R [D H 4H], gates in the order i o f c.
 *
 * Activations get one scale and zero point (uint8, range stretched to 0) per product: all steps of
 * X at once, and the states of the whole batch at every step. So the batch goes through a step
 * together, unlike in rnn.c. A product is exact in integers and scaled afterwards. Source: the page
 * of DynamicQuantizeLSTM and of DynamicQuantizeLinear. */
#include <math.h>

#include "ops/arith.h"
#include "ops/rnn.h"

enum { X, W, R, B, LENS, H0, C0, PEEP, W_SCALE, W_ZERO, R_SCALE, R_ZERO };

struct quantized {
    real scale;
    int zero;
};

/* One direction of the layer. */
struct layer {
    const struct accel_call *c;
    const struct accel_rnn_params *p;
    int64_t T, N, I, H, d;
    int64_t last;   /* steps of the longest sequence */
    int16_t *x, *q; /* [T N I], [N H] quantised */
    double *sum;    /* [N 4H] */
    real *h;        /* [N H] */
    double *cell;   /* [N H] */
    struct quantized of_x;
};

static const struct accel_array *operand(const struct accel_call *c, int i)
{
    return i < c->node->n_in && c->x[i].data ? &c->x[i] : NULL;
}

/* Element `at` of a vector that may be left out. */
static double number(const struct accel_call *c, int slot, int64_t at)
{
    const struct accel_array *a = operand(c, slot);
    return a ? (double)((const real *)a->data)[at] : 0;
}

static struct quantized quantize(int16_t *q, const real *v, int64_t n)
{
    real lo = 0, hi = 0;
    for (int64_t i = 0; i < n; i++) {
        lo = v[i] < lo ? v[i] : lo;
        hi = v[i] > hi ? v[i] : hi;
    }
    struct quantized s = {hi > lo ? (hi - lo) / 255 : 1, 0};
    s.zero = (int)rint(fmin(fmax((double)(-lo / s.scale), 0), 255));
    for (int64_t i = 0; i < n; i++)
        q[i] = (int16_t)fmin(fmax(rint((double)(v[i] / s.scale)) + s.zero, 0), 255);
    return s;
}

/* sum[4H] += one quantised row times the weights of this direction. Scales and zero points are one
 * per direction or one per column. */
static void multiply(double *sum, const struct layer *l, const int16_t *row, struct quantized s,
                     int weight, int scale, int zero)
{
    const struct accel_call *c = l->c;
    const struct accel_array *by = &c->x[scale], *z = operand(c, zero);
    int64_t k = c->x[weight].dim[1], cols = 4 * l->H;
    const int64_t *w = (const int64_t *)c->x[weight].data + l->d * k * cols;
    bool many = by->n != l->p->directions, many_zeros = z && z->n != l->p->directions;
    for (int64_t j = 0; j < cols; j++) {
        int64_t at = l->d * cols + j;
        int64_t w0 = z ? ((const int64_t *)z->data)[many_zeros ? at : l->d] : 0, total = 0;
        for (int64_t i = 0; i < k; i++)
            total += (row[i] - s.zero) * (w[i * cols + j] - w0);
        sum[j] += (double)((real)total * (s.scale * ((const real *)by->data)[many ? at : l->d]));
    }
}

static double act(const struct layer *l, int k, double v)
{
    const struct accel_rnn_gate *g = &l->p->gate[l->d][k];
    return g->f(fmin(fmax(v, -l->p->clip), l->p->clip), g->alpha, g->beta);
}

/* States of sample n from its sums. */
static void gates(struct layer *l, int64_t n)
{
    int64_t H = l->H, peep = l->d * 3 * H;
    const double *s = l->sum + n * 4 * H;
    for (int64_t k = 0; k < H; k++) {
        double c = l->cell[n * H + k];
        double i = act(l, 0, s[k] + number(l->c, PEEP, peep + k) * c);
        double f = l->p->input_forget
                       ? 1 - i
                       : act(l, 0, s[2 * H + k] + number(l->c, PEEP, peep + 2 * H + k) * c);
        c = f * c + i * act(l, 1, s[3 * H + k]);
        double o = act(l, 0, s[H + k] + number(l->c, PEEP, peep + H + k) * c);
        l->cell[n * H + k] = c;
        l->h[n * H + k] = (real)(o * act(l, 2, c));
    }
}

static int64_t steps_of(const struct layer *l, int64_t n)
{
    const struct accel_array *lens = operand(l->c, LENS);
    return lens ? ((const int64_t *)lens->data)[n] : l->T;
}

/* Turn i of every sequence that is that long. */
static void turn(struct layer *l, int64_t i)
{
    int64_t H = l->H, cols = 4 * H;
    bool back = l->p->reverse || l->d == 1;
    struct quantized of_h = quantize(l->q, l->h, l->N * H);
    for (int64_t n = 0; n < l->N; n++) {
        int64_t steps = steps_of(l, n), t = back ? steps - 1 - i : i;
        double *sum = l->sum + n * cols;
        if (i >= steps)
            continue;
        for (int64_t k = 0; k < cols; k++)
            sum[k] =
                number(l->c, B, l->d * 2 * cols + k) + number(l->c, B, l->d * 2 * cols + cols + k);
        multiply(sum, l, l->x + (t * l->N + n) * l->I, l->of_x, W, W_SCALE, W_ZERO);
        multiply(sum, l, l->q + n * H, of_h, R, R_SCALE, R_ZERO);
        gates(l, n);
        real *y = l->c->node->n_out > 0 ? l->c->y[0].data : NULL;
        for (int64_t k = 0; y && k < H; k++)
            y[((t * l->p->directions + l->d) * l->N + n) * H + k] = l->h[n * H + k];
    }
}

static void run_direction(struct layer *l)
{
    int64_t N = l->N, H = l->H;
    for (int64_t i = 0; i < N * H; i++) {
        l->h[i] = (real)number(l->c, H0, l->d * N * H + i);
        l->cell[i] = number(l->c, C0, l->d * N * H + i);
    }
    for (int64_t i = 0; i < l->last; i++)
        turn(l, i);
    for (int o = 1; o < l->c->node->n_out && o < 3; o++) {
        real *y = l->c->y[o].data;
        for (int64_t i = 0; y && i < N * H; i++)
            y[l->d * N * H + i] = o == 1 ? l->h[i] : (real)l->cell[i];
    }
}

static enum accel_err check(const struct accel_call *c, int64_t D, int64_t H)
{
    for (int i = W; i <= R; i++) {
        const struct accel_array *by = &c->x[i == W ? W_SCALE : R_SCALE];
        const struct accel_array *z = operand(c, i == W ? W_ZERO : R_ZERO);
        if (!accel_op_is_int(&c->x[i]) || accel_op_is_int(by) || (z && !accel_op_is_int(z)))
            return accel_fail(ACCEL_ENOSUP, "weights that are no integers");
        if (c->x[i].dim[2] != 4 * H || c->x[i].dim[0] != D)
            return accel_fail(ACCEL_ESHAPE, "weight '%.200s' has %lld columns instead of %lld",
                              c->node->in[i]->name, (long long)c->x[i].dim[2], (long long)(4 * H));
        if ((by->n != D && by->n != D * 4 * H) || (z && z->n != D && z->n != D * 4 * H))
            return accel_fail(ACCEL_ESHAPE, "'%.200s' has %lld scales and %lld zero points",
                              c->node->in[i]->name, (long long)by->n, (long long)(z ? z->n : 0));
    }
    return ACCEL_OK;
}

size_t accel_rnn_q_scratch(const struct accel_call *c)
{
    size_t states = (size_t)c->x[X].dim[1] * (size_t)c->x[R].dim[1];
    return states * (5 * sizeof(double) + sizeof(real) + sizeof(int16_t)) +
           (size_t)c->x[X].n * sizeof(int16_t);
}

enum accel_err accel_rnn_q_forward(const struct accel_call *c)
{
    const struct accel_rnn_params *p = c->node->params;
    const struct accel_array *x = &c->x[X];
    struct layer l = {.c = c, .p = p, .T = x->dim[0], .N = x->dim[1], .I = x->dim[2]};
    l.H = c->x[R].dim[1];
    ACCEL_TRY(check(c, p->directions, l.H));
    l.sum = c->scratch;
    l.cell = l.sum + l.N * 4 * l.H;
    l.h = (real *)(l.cell + l.N * l.H);
    l.q = (int16_t *)(l.h + l.N * l.H);
    l.x = l.q + l.N * l.H;
    for (int64_t n = 0; n < l.N; n++) {
        int64_t steps = steps_of(&l, n);
        if (steps < 0 || steps > l.T)
            return accel_fail(ACCEL_ESHAPE, "sequence %lld has %lld steps of %lld", (long long)n,
                              (long long)steps, (long long)l.T);
        l.last = steps > l.last ? steps : l.last;
    }
    l.of_x = quantize(l.x, x->data, l.last * l.N * l.I);
    for (int64_t i = 0; c->node->n_out > 0 && c->y[0].data && i < c->y[0].n; i++)
        ((real *)c->y[0].data)[i] = 0; /* behind the ends of the sequences */
    for (l.d = 0; l.d < p->directions; l.d++)
        run_direction(&l);
    return ACCEL_OK;
}
