/* score.c - sums, so that batches may come in any size.
 *
 * A network ends in logits or in probabilities, and the file does not say which. Rows that lie in 0
 * to 1 and sum to 1 are probabilities (logits that do so by chance in every row do not occur);
 * log-probabilities need no case, the softmax of them is what they are the logarithm of. */
#include "tools/score.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"

#define MOST_CONFUSION 4096 /* classes */

static double element(const struct accel_array *a, int64_t i)
{
    double v;
    accel_dtype_to_f64(a->dtype, a->data, (size_t)i, 1, &v);
    return v;
}

/* One row of logits or probabilities. Of equal outputs the first one counts as the larger. */
static void add_row(struct accel_evaluation *s, const double *row, int64_t label)
{
    int64_t best = 0, above = 0, c = s->n_class;
    double most = -INFINITY, sum = 0, exps = 0;
    bool probs = true;
    for (int64_t k = 0; k < c; k++) {
        if (isnan(row[k])) {
            s->n_nan++;
            above += k != label;
            probs = false;
            continue;
        }
        if (row[k] > most) {
            most = row[k];
            best = k;
        }
        above += row[k] > row[label] || (row[k] == row[label] && k < label);
        probs = probs && row[k] >= 0 && row[k] <= 1.001;
        sum += row[k];
    }
    for (int64_t k = 0; k < c; k++)
        exps += isnan(row[k]) ? 0 : exp(row[k] - most);
    bool lost = isnan(row[label]);
    s->n_top1 += !lost && above == 0;
    s->n_top5 += !lost && above < 5;
    s->log_loss += log(exps) + most - row[label];
    s->prob_loss -= log(row[label] > 1e-45 ? row[label] : 1e-45);
    s->not_probs = s->not_probs || !probs || fabs(sum - 1) > 1e-2;
    if (s->confusion)
        s->confusion[label * c + best]++;
    s->n++;
}

static enum accel_err begin_classes(struct accel_evaluation *s, const struct accel_array *y)
{
    if (s->n_class && s->n_class != y->dim[1])
        return accel_fail(ACCEL_ESHAPE, "the output had %" PRId64 " classes, now %" PRId64,
                          s->n_class, y->dim[1]);
    s->n_class = y->dim[1];
    if (s->want_confusion && !s->confusion && s->n_class <= MOST_CONFUSION) {
        s->confusion = accel_calloc((size_t)s->n_class * (size_t)s->n_class, sizeof *s->confusion);
        if (!s->confusion)
            return accel_fail_nomem();
    }
    return ACCEL_OK;
}

enum accel_err accel_score_classes(struct accel_evaluation *s, const struct accel_array *y,
                                   int64_t n, const int64_t *label, int64_t first)
{
    bool flat = y->rank >= 2 && y->dim[0] >= n;
    for (int i = 2; flat && i < y->rank; i++)
        flat = y->dim[i] == 1;
    if (!flat || y->dim[1] < 1)
        return accel_fail(ACCEL_ESHAPE,
                          "it has rank %d and %" PRId64 " elements for %" PRId64
                          " samples with classes, which need [samples, classes]",
                          y->rank, y->n, n);
    ACCEL_TRY(begin_classes(s, y));
    double *row = accel_calloc((size_t)s->n_class, sizeof *row);
    if (!row)
        return accel_fail_nomem();
    enum accel_err err = ACCEL_OK;
    for (int64_t i = 0; !err && i < n; i++) {
        accel_dtype_to_f64(y->dtype, y->data, (size_t)(i * s->n_class), (size_t)s->n_class, row);
        if (label[i] < 0 || label[i] >= s->n_class)
            err = accel_fail(ACCEL_EMODEL,
                             "sample %" PRId64 " has label %" PRId64 ", the model "
                             "has %" PRId64 " classes",
                             first + i, label[i], s->n_class);
        else
            add_row(s, row, label[i]);
    }
    accel_free(row);
    return err;
}

enum accel_err accel_score_values(struct accel_evaluation *s, const struct accel_array *y,
                                  int64_t n, const float *label, int64_t width)
{
    int64_t rows = y->rank ? y->dim[0] : 0;
    if (rows < n || y->n / (rows ? rows : 1) != width)
        return accel_fail(ACCEL_ESHAPE,
                          "it has %" PRId64 " elements for %" PRId64 " samples with %" PRId64
                          " values each",
                          y->n, n, width);
    for (int64_t i = 0; i < n * width; i++) {
        double gap = element(y, i) - (double)label[i];
        s->n_nan += isnan(gap);
        s->squares += gap * gap;
        s->gaps += fabs(gap);
        s->n_value++;
    }
    s->n += n;
    return ACCEL_OK;
}

double accel_score_loss(const struct accel_evaluation *s)
{
    return (s->not_probs ? s->log_loss : s->prob_loss) / (double)s->n;
}

void accel_score_clear(struct accel_evaluation *s)
{
    accel_free(s->confusion);
    *s = (struct accel_evaluation){0};
}
