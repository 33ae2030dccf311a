/* report.h - what a pruning run has to say, in its three forms. */
#ifndef ACCEL_TOOLS_REPORT_H
#define ACCEL_TOOLS_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "prune/coupled.h"
#include "prune/prune.h"
#include "tools/difference.h"
#include "tools/repair.h"

/* Milliseconds of one run of each model (--latency). */
struct accel_latency {
    double before_ms, after_ms;
};

/* Everything borrowed. */
struct accel_report {
    const char *input, *output; /* paths; output NULL: dry run */
    uint64_t size_before, size_after;
    int64_t macs_before, macs_after; /* -1: unknown */
    const char *pruner;
    const char *config_name, *config_text;
    const char *const *set; /* [n_set] --set KEY=VALUE: what replaced parts of the config */
    size_t n_set;
    const struct accel_prune_row *row;
    int n_row;
    struct accel_prune_totals totals;
    const struct accel_coupled *coupled;   /* of channels, or NULL */
    bool groups;                           /* --groups: tell of them in text and JSON too */
    const struct accel_differences *check; /* of old and new model, or NULL */
    const struct accel_latency *latency;   /* or NULL */
    const struct accel_repair *repair;     /* or NULL */
    const struct accel_log *log;           /* warnings */
};

/* The object of accel-prune --json (cli.md). */
void accel_report_json(struct accel_json *j, const struct accel_report *r);

/* The table for people. */
void accel_report_table(struct accel_str *out, const struct accel_report *r, int width, bool color);

/* The frame of an HTML page: up to inside the header (which the caller closes), and the end. */
void accel_html_begin(struct accel_str *out, const char *what, const char *file);
void accel_html_end(struct accel_str *out);

/* One self-contained HTML file: no script, nothing loaded; light, dark, printable. */
void accel_report_html(struct accel_str *out, const struct accel_report *r);

/* Coupled sets and what is in the way: --groups, and a part of the HTML report. */
void accel_report_groups_text(struct accel_str *out, const struct accel_coupled *c, int width,
                              bool color);
void accel_report_groups_json(struct accel_json *j, const struct accel_coupled *c);
void accel_report_groups_html(struct accel_str *out, const struct accel_coupled *c);

/* Part of the HTML report: |w| before and after as inline SVG. `id` numbers the chart. Nothing for
 * a weight without elements. */
void accel_chart_histogram(struct accel_str *out, const struct accel_prune_row *row);

/* Part of the HTML report: a bar of two parts, nonzero and zero. */
void accel_chart_share(struct accel_str *out, double nonzero_share);

/* What zeros mean for the file, in one sentence; "" when nothing became zero. */
const char *accel_report_note(const struct accel_report *r);

/* "conv1.weight" and "/conv1/Conv" or "-": how a row is named. */
const char *accel_report_node(const struct accel_prune_row *row);

/* "64x32x3x3" into buf. */
const char *accel_report_shape(char *buf, size_t size, int rank, const int64_t *dim);

/* The same of a row: "64x32x3x3 -> 32x16x3x3" where channels were cut out. */
const char *accel_report_row_shape(char *buf, size_t size, const struct accel_prune_row *row);

#endif
