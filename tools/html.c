/* The report as one HTML file. Everything is in it: style sheet, charts as inline SVG; a content
 * security policy forbids the browser to load or run anything, which also holds should a name ever
 * slip through unescaped. No times and no machine names: the same run gives the same bytes. */
#include "tools/report.h"

#include "tools/escape.h"
#include "tools/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char style[] =
    ":root{color-scheme:light dark;--bg:#fbfbfc;--card:#fff;--ink:#1b1f24;--soft:#5b6470;"
    "--line:#dfe3e8;--before:#c9d3e3;--after:#2563b8;--cut:#c2410c;--warn:#fff6e5;--warnline:#"
    "e9b949}"
    "@media(prefers-color-scheme:dark){:root{--bg:#14171b;--card:#1c2026;--ink:#e6e9ed;"
    "--soft:#9aa4b1;--line:#323841;--before:#3d4a5e;--after:#6ea8ff;--cut:#ff9259;--warn:#2b2412;"
    "--warnline:#8a6d1f}}"
    "*{box-sizing:border-box}"
    "body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"
    "'Segoe UI',Roboto,'Liberation Sans',sans-serif}"
    "main{max-width:1120px;margin:0 auto;padding:40px 24px 64px}"
    "header p{margin:0;color:var(--soft)}"
    "h1{font-size:28px;line-height:1.25;margin:4px 0 6px;overflow-wrap:anywhere;font-weight:650}"
    "h2{font-size:18px;margin:40px 0 12px;font-weight:650}"
    ".eyebrow{text-transform:uppercase;letter-spacing:.08em;font-size:12px}"
    ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(200px,1fr));gap:12px;"
    "margin-top:28px}"
    ".card,.chart{background:var(--card);border:1px solid var(--line);border-radius:8px;"
    "padding:14px 16px}"
    ".card b{display:block;font-size:24px;line-height:1.3;font-weight:650;"
    "font-variant-numeric:tabular-nums}"
    ".card span{color:var(--soft);font-size:13px}"
    ".scroll{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:8px}"
    "table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}"
    "th,td{padding:7px 12px;text-align:left;vertical-align:top;border-top:1px solid var(--line)}"
    "thead th{border-top:0;color:var(--soft);font-weight:600;font-size:12.5px;white-space:nowrap}"
    "tbody th{font-weight:600;overflow-wrap:anywhere}"
    "td.n,th.n{text-align:right;white-space:nowrap}"
    "th "
    "small{display:block;font-weight:400;color:var(--soft);font-size:12.5px}td:last-child{min-"
    "width:9.5em}"
    "td.kept{color:var(--soft)}"
    "code,pre{font-family:ui-monospace,'SF Mono',Menlo,'DejaVu Sans Mono',monospace;font-size:13px}"
    "pre{margin:0;padding:14px 16px;overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere}"
    ".note{color:var(--soft);margin:10px 2px 0;max-width:75ch}"
    ".warn{background:var(--warn);border:1px solid var(--warnline);border-radius:8px;"
    "padding:10px 16px 10px 36px;margin:12px 0 0;overflow-wrap:anywhere}"
    ".charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(250px,1fr));gap:12px}"
    ".chart h3{margin:0 0 2px;font-size:14px;font-weight:600;overflow-wrap:anywhere}"
    ".chart p{margin:0 0 8px;color:var(--soft);font-size:12.5px}"
    ".hist{display:block;width:100%;height:84px}"
    ".share{display:block;width:64px;height:8px;margin-top:7px;border-radius:2px}"
    ".bars{display:block;max-width:100%;margin-top:6px}.bars .gone{fill:var(--before)}"
    ".bars .stay{fill:var(--after)}td small{color:var(--soft)}"
    ".before{fill:var(--before)}.after{fill:var(--after)}"
    ".cut,.axis{fill:none;stroke-width:1;vector-effect:non-scaling-stroke}"
    ".cut{stroke:var(--cut);stroke-width:1.5}.axis{stroke:var(--soft)}"
    ".curve{fill:none;stroke:var(--after);stroke-width:2;vector-effect:non-scaling-stroke}"
    ".scale{display:flex;justify-content:space-between;color:var(--soft);font-size:11.5px;"
    "font-variant-numeric:tabular-nums}"
    ".legend{display:flex;gap:18px;margin:0 0 12px;color:var(--soft);font-size:13px;flex-wrap:wrap}"
    ".legend i{display:inline-block;width:12px;height:12px;border-radius:2px;margin-right:6px;"
    "vertical-align:-1px}"
    ".legend .l0{background:var(--before)}.legend .l1{background:var(--after)}"
    ".legend .l2{background:var(--cut);width:2px}"
    "footer{margin-top:48px;color:var(--soft);font-size:12.5px}"
    "@media print{:root{color-scheme:light;--bg:#fff;--card:#fff;--ink:#000;--soft:#444;"
    "--line:#bbb;--before:#c9d3e3;--after:#2563b8;--cut:#c2410c;--warn:#fff;--warnline:#888}"
    "*{-webkit-print-color-adjust:exact;print-color-adjust:exact}"
    "body{font-size:10pt}main{max-width:none;padding:0}h1{font-size:18pt}h2{margin:18pt 0 6pt;"
    "break-after:avoid}table{font-size:8.5pt}th,td{padding:3pt 5pt}thead th,th small{font-size:8pt}"
    ".card b{font-size:14pt}.cards{grid-template-columns:repeat(4,1fr);gap:6pt;margin-top:14pt}"
    ".charts{grid-template-columns:repeat(3,1fr);gap:6pt}.scroll{overflow:visible}"
    "tr,.card,.chart{break-inside:avoid}@page{margin:14mm}}";

static void esc(struct accel_str *out, const char *before, const char *text, const char *after)
{
    accel_str_add(out, before);
    accel_escape_html(out, text);
    accel_str_add(out, after);
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

void accel_html_begin(struct accel_str *out, const char *what, const char *file)
{
    accel_str_add(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                       "style-src 'unsafe-inline'\">\n");
    esc(out, "<title>", file_name(file), " - ");
    esc(out, "", what, "</title>\n<style>");
    accel_str_add(out, style);
    accel_str_add(out, "</style>\n</head>\n<body>\n<main>\n<header>\n");
    esc(out, "<p class=\"eyebrow\">", what, "</p>\n");
    esc(out, "<h1>", file_name(file), "</h1>\n");
}

void accel_html_end(struct accel_str *out)
{
    accel_str_add(out, "<footer>accel " ACCEL_VERSION "</footer>\n</main>\n</body>\n</html>\n");
}

static void head(struct accel_str *out, const struct accel_report *r)
{
    accel_html_begin(out, "Pruning report", r->input);
    esc(out, "<p>Pruner <code>", r->pruner, "</code>, ");
    if (r->output)
        esc(out, "written to <code>", r->output, "</code></p>\n</header>\n");
    else
        accel_str_add(out, "dry run: no model was written</p>\n</header>\n");
}

static void card(struct accel_str *out, const char *value, const char *what)
{
    esc(out, "<div class=\"card\"><b>", value, "</b>");
    esc(out, "<span>", what, "</span></div>\n");
}

static double zero_share(uint64_t params, uint64_t nonzero)
{
    return params ? 1 - (double)nonzero / (double)params : 0;
}

static void cards(struct accel_str *out, const struct accel_report *r)
{
    char a[32], b[32], text[80];
    int pruned = 0;
    for (int i = 0; i < r->n_row; i++)
        pruned += r->row[i].pruned;
    accel_str_add(out, "<div class=\"cards\">\n");
    snprintf(text, sizeof text, "%d of %d", pruned, r->n_row);
    card(out, text, "weights pruned");
    snprintf(text, sizeof text, "of all parameters are zero (%s before)",
             accel_text_share(b, zero_share(r->totals.params_before, r->totals.nonzero_before)));
    card(out, accel_text_share(a, zero_share(r->totals.params, r->totals.nonzero_after)), text);
    card(out,
         accel_text_share(a, r->totals.params_before
                                 ? 1 - (double)r->totals.params / (double)r->totals.params_before
                                 : 0),
         "of the parameters removed");
    snprintf(text, sizeof text, "model file (%s before)", accel_text_size(b, r->size_before));
    card(out, accel_text_size(a, r->size_after), text);
    accel_str_add(out, "</div>\n");
}

static void asked(struct accel_str *out, const struct accel_report *r)
{
    esc(out, "<h2>What was asked</h2>\n<div class=\"scroll\"><pre>", r->config_text,
        "</pre></div>\n");
    esc(out, "<p class=\"note\">From <code>", r->config_name, "</code>");
    for (size_t i = 0; i < r->n_set; i++)
        esc(out, i ? ", <code>" : ", changed on the command line: <code>", r->set[i], "</code>");
    accel_str_add(out, ".</p>\n");
}

static void warnings(struct accel_str *out, const struct accel_report *r)
{
    if (!r->log->n)
        return;
    accel_str_add(out, "<h2>Warnings</h2>\n<ul class=\"warn\">\n");
    for (size_t i = 0; i < r->log->n; i++)
        esc(out, "<li>", r->log->text[i], "</li>\n");
    accel_str_add(out, "</ul>\n");
}

static void total(struct accel_str *out, const char *what, int64_t before, int64_t after)
{
    char a[32], b[32], c[32] = "";
    if (before > 0 && after >= 0 && before != after) {
        double d = (double)after / (double)before - 1;
        snprintf(c, sizeof c, fabs(d) < 0.001 ? "%+.3f %%" : "%+.1f %%", 100 * d);
    }
    accel_str_addf(out,
                   "<tr><th scope=\"row\">%s</th><td class=\"n\">%s</td><td class=\"n\">%s</td>"
                   "<td class=\"n\">%s</td></tr>\n",
                   what, accel_text_count(a, before), accel_text_count(b, after), c);
}

static void totals(struct accel_str *out, const struct accel_report *r)
{
    accel_str_add(out, "<h2>Before and after</h2>\n<div class=\"scroll\"><table>\n<thead><tr>"
                       "<th></th><th class=\"n\" scope=\"col\">before</th><th class=\"n\" "
                       "scope=\"col\">after</th><th class=\"n\" scope=\"col\">change</th></tr>"
                       "</thead>\n<tbody>\n");
    total(out, "Parameters", (int64_t)r->totals.params_before, (int64_t)r->totals.params);
    total(out, "Parameters that are not zero", (int64_t)r->totals.nonzero_before,
          (int64_t)r->totals.nonzero_after);
    total(out, "Bytes, data files included", (int64_t)r->size_before, (int64_t)r->size_after);
    total(out, "Multiply-adds for one sample", r->macs_before, r->macs_after);
    accel_str_add(out, "</tbody></table></div>\n");
    if (r->latency)
        accel_str_addf(out,
                       "<p class=\"note\">One run takes %.3g ms of CPU time, %.3g ms before.</p>\n",
                       r->latency->after_ms, r->latency->before_ms);
    if (*accel_report_note(r))
        esc(out, "<p class=\"note\">", accel_report_note(r), "</p>\n");
}

static void weight_row(struct accel_str *out, const struct accel_prune_row *row)
{
    char text[256];
    const struct accel_target *t = row->target;
    esc(out, "<tr><th scope=\"row\">", t->name, "");
    esc(out, "<small>", accel_report_node(row), "");
    esc(out, " (", t->node ? t->node->op_type : "", ")</small></th>");
    accel_str_addf(out, "<td>%s</td>", accel_report_row_shape(text, sizeof text, row));
    accel_str_addf(out, "<td class=\"n\">%s</td>", accel_text_share(text, row->requested));
    accel_str_addf(out, "<td class=\"n\">%s</td>",
                   row->pruned ? accel_text_share(text, row->achieved) : "-");
    accel_str_addf(out, "<td class=\"n\">%s</td>",
                   accel_text_count(text, (int64_t)row->zeros_before));
    accel_str_addf(out, "<td class=\"n\">%s</td><td>",
                   accel_text_count(text, (int64_t)row->zeros_after));
    if (row->n)
        accel_chart_share(out, 1 - (double)row->zeros_after / (double)row->n);
    accel_str_addf(out, "</td><td%s>", row->pruned ? "" : " class=\"kept\"");
    esc(out, row->pruned ? "pruned: " : "kept: ", row->reason, "</td></tr>\n");
}

static void weights(struct accel_str *out, const struct accel_report *r)
{
    accel_str_add(out,
                  "<h2>Every weight, and why</h2>\n<div class=\"scroll\"><table>\n<thead><tr>");
    static const char *const title[] = {"weight, and the node that reads it",
                                        "shape",
                                        "asked",
                                        "done",
                                        "zeros before",
                                        "zeros",
                                        "not zero",
                                        "what happened"};
    for (size_t i = 0; i < sizeof title / sizeof *title; i++)
        accel_str_addf(out, "<th scope=\"col\"%s>%s</th>", i >= 2 && i <= 5 ? " class=\"n\"" : "",
                       title[i]);
    accel_str_add(out, "</tr></thead>\n<tbody>\n");
    for (int i = 0; i < r->n_row; i++)
        weight_row(out, &r->row[i]);
    accel_str_add(out, "</tbody></table></div>\n");
}

static void charts(struct accel_str *out, const struct accel_report *r)
{
    char a[32], b[32];
    bool begun = false;
    for (int i = 0; i < r->n_row; i++) {
        const struct accel_prune_row *row = &r->row[i];
        if (!row->pruned || row->cut) /* of cut channels the bars tell */
            continue;
        if (!begun)
            accel_str_add(out, "<h2>Magnitudes of the pruned weights</h2>\n<div class=\"legend\">"
                               "<span><i class=\"l0\"></i>before</span><span><i class=\"l1\"></i>"
                               "after (zeros left out)</span><span><i class=\"l2\"></i>largest "
                               "magnitude removed</span></div>\n<div class=\"charts\">\n");
        begun = true;
        esc(out, "<div class=\"chart\"><h3>", row->target->name, "</h3>");
        accel_str_addf(out, "<p>%s of %s are zero</p>",
                       accel_text_count(a, (int64_t)row->zeros_after),
                       accel_text_count(b, (int64_t)row->n));
        accel_chart_histogram(out, row);
        accel_str_add(out, "</div>\n");
    }
    if (begun)
        accel_str_add(out, "</div>\n");
}

static void repaired(struct accel_str *out, const struct accel_repair *r)
{
    accel_str_addf(
        out,
        "<h2>Repaired</h2>\n<p class=\"note\">On %lld samples; squared error of outputs on "
        "held-back ones, as a share of their mean square. The model's outputs: %.3g %% "
        "before, %.3g %% after.</p>\n<div class=\"scroll\"><table>\n<thead><tr><th>weight</th>"
        "<th class=\"n\">error before</th><th class=\"n\">after</th><th>what was done</th>"
        "</tr></thead>\n<tbody>\n",
        (long long)r->samples, 100 * r->before, 100 * r->after);
    for (size_t i = 0; i < r->n_row; i++) {
        char a[32], b[32];
        const struct accel_repair_row *k = &r->row[i];
        esc(out, "<tr><th scope=\"row\">", k->weight, "</th>");
        accel_str_addf(out, "<td class=\"n\">%s</td><td class=\"n\">%s</td>",
                       accel_text_share(a, k->before), accel_text_share(b, k->after));
        esc(out, "<td>", k->reason, "</td></tr>\n");
    }
    accel_str_add(out, "</tbody></table></div>\n");
}

void accel_report_html(struct accel_str *out, const struct accel_report *r)
{
    head(out, r);
    cards(out, r);
    warnings(out, r);
    asked(out, r);
    totals(out, r);
    if (r->coupled)
        accel_report_groups_html(out, r->coupled);
    if (r->repair)
        repaired(out, r->repair);
    weights(out, r);
    charts(out, r);
    accel_html_end(out);
}
