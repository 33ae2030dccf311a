/* Histograms as two overlaid step areas in one small SVG: what was there before, and what is left.
 * Exact zeros are left out of the first bin, else the pruned ones would stand there as a spike that
 * flattens the rest; their number is text beside the chart. Colours come from the page's style
 * sheet, so that a chart follows light, dark and print. */
#include "tools/report.h"

#include "tools/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define BIN    4  /* units per bin */
#define HEIGHT 72 /* of the tallest bin */

static uint64_t bin_get(const uint64_t *bins, uint64_t zeros, int i)
{
    return i || bins[0] < zeros ? bins[i] : bins[0] - zeros;
}

/* A closed step outline from left to right; equal neighbours become one step. */
static void area(struct accel_str *out, const char *class_name, const uint64_t *bins,
                 uint64_t zeros, uint64_t tallest)
{
    accel_str_addf(out, "<path class=\"%s\" d=\"M0 %d", class_name, HEIGHT);
    int last = 0;
    for (int i = 0; i < ACCEL_HISTOGRAM_BINS; i++) {
        uint64_t n = bin_get(bins, zeros, i);
        int h = (int)lround((double)n / (double)tallest * HEIGHT);
        if (n && !h)
            h = 1; /* something is there */
        if (h == last)
            continue;
        accel_str_addf(out, "H%dV%d", i * BIN, HEIGHT - h);
        last = h;
    }
    accel_str_addf(out, "H%dV%dZ\"/>", ACCEL_HISTOGRAM_BINS * BIN, HEIGHT);
}

void accel_chart_histogram(struct accel_str *out, const struct accel_prune_row *row)
{
    uint64_t tallest = 0;
    for (int i = 0; i < ACCEL_HISTOGRAM_BINS; i++) {
        uint64_t n = bin_get(row->before, row->zeros_before, i);
        tallest = n > tallest ? n : tallest;
    }
    if (!tallest || !(row->max_abs > 0))
        return;
    const int width = ACCEL_HISTOGRAM_BINS * BIN;
    accel_str_addf(out,
                   "<svg class=\"hist\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
                   "role=\"img\" aria-label=\"histogram of magnitudes, before and after\">",
                   width, HEIGHT + 1);
    area(out, "before", row->before, row->zeros_before, tallest);
    area(out, "after", row->after, row->zeros_after, tallest);
    if (row->threshold > 0 && row->threshold <= row->max_abs) {
        double x = row->threshold / row->max_abs * width;
        accel_str_addf(out, "<path class=\"cut\" d=\"M%.1f 0V%d\"/>", x, HEIGHT);
    }
    accel_str_addf(out, "<path class=\"axis\" d=\"M0 %dH%d\"/></svg>", HEIGHT, width);
    accel_str_addf(out, "<div class=\"scale\"><span>0</span>");
    if (row->threshold > 0)
        accel_str_addf(out, "<span>cut at %.3g</span>", row->threshold);
    accel_str_addf(out, "<span>%.3g</span></div>", row->max_abs);
}

void accel_chart_share(struct accel_str *out, double nonzero_share)
{
    double v = nonzero_share < 0 ? 0 : nonzero_share > 1 ? 1 : nonzero_share;
    accel_str_addf(out,
                   "<svg class=\"share\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" "
                   "aria-hidden=\"true\"><path class=\"before\" d=\"M0 0H100V8H0Z\"/>"
                   "<path class=\"after\" d=\"M0 0H%.2fV8H0Z\"/></svg>",
                   100 * v);
}
