/* What --groups says: every coupled set with the constants along whose axes it lies, and the
 * operators that keep channels from being cut. */
#include "tools/report.h"

#include "tools/escape.h"
#include "tools/table.h"

#include <math.h>
#include <stdio.h>

enum { MOST_WALLS = 20 };

static const char *set_fate(char *buf, size_t size, const struct accel_coupled_set *s)
{
    char share[32];
    if (s->kept_for)
        snprintf(buf, size, "kept: %s is excluded or unusable", s->kept_for);
    else
        snprintf(buf, size, "%s",
                 s->cut ? accel_text_share(share, (double)s->cut / (double)s->n) : "-");
    return buf;
}

/* The number in the first row of a set only. */
static void add_once(struct accel_table *t, bool first, int number)
{
    if (first)
        accel_table_add(t, "%d", number);
    else
        accel_table_add(t, "%s", "");
}

void accel_report_groups_text(struct accel_str *out, const struct accel_coupled *c, int width,
                              bool color)
{
    static const struct accel_column columns[] = {
        {"SET", true, false},     {"CHANNELS", true, false},
        {"CUT", true, false},     {"DONE", false, false},
        {"WEIGHT", false, true},  {"AXIS", true, false},
        {"INDICES", true, false}, {0}};
    static const struct accel_column walls[] = {{"IN THE WAY", false, true},
                                                {"OP", false, false},
                                                {"WHY", false, true},
                                                {"ELEMENTS", true, false},
                                                {0}};
    struct accel_table t;
    char text[512];
    accel_table_init(&t, columns);
    for (int i = 0; i < c->n_set; i++) {
        const struct accel_coupled_set *s = &c->set[i];
        for (size_t k = 0; k < s->n_axis; k++) {
            add_once(&t, k == 0, i + 1);
            add_once(&t, k == 0, s->n);
            add_once(&t, k == 0, s->cut);
            accel_table_add(&t, "%s", k ? "" : set_fate(text, sizeof text, s));
            accel_table_add(&t, "%s", s->axis[k].name);
            accel_table_add(&t, "%d", s->axis[k].axis);
            accel_table_add(&t, "%lld", (long long)s->axis[k].n);
        }
    }
    accel_str_addf(out,
                   "\n%d channels of the model may go, in %d coupled sets of selected weights\n\n",
                   c->n_group, c->n_set);
    accel_table_text(out, &t, width, color);
    accel_table_clear(&t);
    if (!c->n_wall)
        return;
    accel_table_init(&t, walls);
    for (size_t i = 0; i < c->n_wall && i < MOST_WALLS; i++) {
        const struct accel_coupled_wall *w = &c->wall[i];
        accel_table_add(&t, "%s", w->node ? w->node->label : "-");
        accel_table_add(&t, "%s", w->node ? w->node->op_type : "");
        accel_table_add(&t, "%s", w->why);
        accel_table_add(&t, "%s", accel_text_count(text, (int64_t)w->elements));
    }
    accel_str_add(out, "\n");
    accel_table_text(out, &t, width, color);
    accel_table_clear(&t);
}

static void json_set(struct accel_json *j, const struct accel_coupled_set *s)
{
    accel_json_object(j, NULL);
    accel_json_int(j, "channels", s->n);
    accel_json_int(j, "cut", s->cut);
    accel_json_number(j, "requested", s->requested);
    accel_json_text(j, "kept_for", s->kept_for);
    accel_json_array(j, "members");
    for (size_t k = 0; k < s->n_axis; k++) {
        accel_json_object(j, NULL);
        accel_json_text(j, "weight", s->axis[k].name);
        accel_json_int(j, "axis", s->axis[k].axis);
        accel_json_int(j, "indices", s->axis[k].n);
        accel_json_int(j, "cut", s->axis[k].cut);
        accel_json_end(j, '}');
    }
    accel_json_end(j, ']');
    accel_json_end(j, '}');
}

void accel_report_groups_json(struct accel_json *j, const struct accel_coupled *c)
{
    accel_json_array(j, "groups");
    for (int i = 0; i < c->n_set; i++)
        json_set(j, &c->set[i]);
    accel_json_end(j, ']');
    accel_json_array(j, "walls");
    for (size_t i = 0; i < c->n_wall; i++) {
        const struct accel_coupled_wall *w = &c->wall[i];
        accel_json_object(j, NULL);
        accel_json_text(j, "node", w->node ? w->node->label : NULL);
        accel_json_text(j, "op_type", w->node ? w->node->op_type : NULL);
        accel_json_text(j, "why", w->why);
        accel_json_number(j, "elements", w->elements);
        accel_json_end(j, '}');
    }
    accel_json_end(j, ']');
}

/* ------------------------------------------------------------------ the picture */

/* One set: a bar of its channels, what went at its end, and the weights along it. */
static void html_set(struct accel_str *out, const struct accel_coupled_set *s, int number,
                     int32_t widest)
{
    enum { WIDTH = 400, HEIGHT = 10 };
    double scale = (double)WIDTH / (double)widest;
    double all = s->n * scale, kept = (s->n - s->cut) * scale;
    accel_str_addf(
        out,
        "<tr><td class=\"n\">%d</td><td class=\"n\">%d</td><td class=\"n\">%d</td><td>"
        "<svg class=\"bars\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" "
        "aria-label=\"%d of %d channels stay\"><rect class=\"gone\" width=\"%.1f\" "
        "height=\"%d\"/><rect class=\"stay\" width=\"%.1f\" height=\"%d\"/></svg></td><td>",
        number, s->n, s->cut, WIDTH, HEIGHT, WIDTH, HEIGHT, s->n - s->cut, s->n, all, HEIGHT, kept,
        HEIGHT);
    for (size_t k = 0; k < s->n_axis; k++) {
        accel_str_add(out, k ? ", " : "");
        accel_escape_html(out, s->axis[k].name);
        accel_str_addf(out, "<small> axis %d</small>", s->axis[k].axis);
    }
    if (s->kept_for) {
        accel_str_add(out, " &#8212; kept for ");
        accel_escape_html(out, s->kept_for);
    }
    accel_str_add(out, "</td></tr>\n");
}

void accel_report_groups_html(struct accel_str *out, const struct accel_coupled *c)
{
    int32_t widest = 1;
    for (int i = 0; i < c->n_set; i++)
        widest = c->set[i].n > widest ? c->set[i].n : widest;
    accel_str_add(out,
                  "<h2>Coupled channels</h2>\n<p class=\"note\">Channels of one set stand or fall "
                  "together in all weights named beside it.</p>\n<div class=\"scroll\"><table>\n"
                  "<thead><tr><th class=\"n\">set</th><th class=\"n\">channels</th><th "
                  "class=\"n\">cut</th><th>what stays</th><th>along</th></tr></thead>\n<tbody>\n");
    for (int i = 0; i < c->n_set; i++)
        html_set(out, &c->set[i], i + 1, widest);
    accel_str_add(out, "</tbody></table></div>\n");
    if (!c->n_wall)
        return;
    accel_str_add(out,
                  "<h2>What is in the way</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th>"
                  "node</th><th>operator</th><th>why</th><th class=\"n\">elements of weights along "
                  "axes it keeps</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < c->n_wall && i < MOST_WALLS; i++) {
        char count[32];
        const struct accel_coupled_wall *w = &c->wall[i];
        accel_str_add(out, "<tr><td>");
        accel_escape_html(out, w->node ? w->node->label : "-");
        accel_str_add(out, "</td><td>");
        accel_escape_html(out, w->node ? w->node->op_type : "");
        accel_str_add(out, "</td><td>");
        accel_escape_html(out, w->why);
        accel_str_addf(out, "</td><td class=\"n\">%s</td></tr>\n",
                       accel_text_count(count, (int64_t)w->elements));
    }
    accel_str_add(out, "</tbody></table></div>\n");
}
