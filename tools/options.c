/* One parser for all commands: a table of common options, a table of the command's own. GNU
 * manners:
 * --name VALUE, --name=VALUE, -n VALUE, -nVALUE, options and arguments in any order, "--" ends the
 * options. Names are not abbreviated: a script must not change its meaning when options are added.
 */
#include "base/alloc.h"
#include "tools/tools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(struct accel_options, field)

static const struct accel_option common[] = {
    {"output", 'o', ACCEL_OPTION_TEXT, AT(output), "FILE", "where the result goes", 0, 0},
    {"config", 0, ACCEL_OPTION_TEXT, AT(config), "FILE",
     "JSON or YAML; - reads standard input; a text that starts with { or [ is the config itself", 0,
     0},
    {"set", 0, ACCEL_OPTION_LIST, AT(set), "KEY=VALUE",
     "override one key of the config, as a dotted path (config_list.0.sparse_ratio=0.5)", 0, 0},
    {"dry-run", 0, ACCEL_OPTION_FLAG, AT(dry_run), NULL, "do everything but write the result", 0,
     0},
    {"json", 0, ACCEL_OPTION_FLAG, AT(json), NULL, "one JSON object on standard output", 0, 0},
    {"report", 0, ACCEL_OPTION_TEXT, AT(report), "FILE.html", "write a report to read or print", 0,
     0},
    {"seed", 0, ACCEL_OPTION_NUMBER, AT(seed), "N", "for everything random (default 0)", 0,
     INT64_MAX},
    {"threads", 0, ACCEL_OPTION_NUMBER, AT(threads), "N",
     "threads to compute with (default: OMP_NUM_THREADS, else 1)", 1, 65536},
    {"device", 0, ACCEL_OPTION_TEXT, AT(device), "DEV", "cpu (default) or cuda[:N]", 0, 0},
    {"dim", 0, ACCEL_OPTION_LIST, AT(dim), "NAME=N", "give a symbolic dimension its size", 0, 0},
    {"input-shape", 0, ACCEL_OPTION_LIST, AT(input_shape), "NAME:1x3x224x224",
     "give an input its shape", 0, 0},
    {"quiet", 'q', ACCEL_OPTION_FLAG, AT(quiet), NULL, "print errors only", 0, 0},
    {"verbose", 'v', ACCEL_OPTION_FLAG, AT(verbose), NULL, "say more", 0, 0},
    {"no-color", 0, ACCEL_OPTION_FLAG, AT(no_color), NULL, "no colours (also: NO_COLOR set)", 0, 0},
    {"version", 0, ACCEL_OPTION_FLAG, AT(version), NULL, "version and what is built in", 0, 0},
    {"help", 'h', ACCEL_OPTION_FLAG, AT(help), NULL, "this text", 0, 0},
    {0},
};

static const struct accel_option *find(const struct accel_option *table, const char *name,
                                       size_t len)
{
    for (const struct accel_option *o = table; o && o->name; o++)
        if (len == 1 ? o->letter == *name : strlen(o->name) == len && !strncmp(o->name, name, len))
            return o;
    return NULL;
}

/* The option of this name or letter, the command's own first. */
static const struct accel_option *find_any(const struct accel_command *c, const char *name,
                                           size_t len)
{
    const struct accel_option *o = find(c->options, name, len);
    return o ? o : find(common, name, len);
}

static enum accel_err unknown(const struct accel_command *c, const char *word)
{
    const char *name = word + strspn(word, "-");
    struct accel_near near = accel_near_begin(name);
    for (const struct accel_option *o = c->options; o && o->name; o++)
        accel_near_try(&near, o->name);
    for (const struct accel_option *o = common; o->name; o++)
        accel_near_try(&near, o->name);
    if (near.best && strlen(name) > 1)
        return accel_fail(ACCEL_EARG, "unknown option '%.100s', did you mean '--%s'?", word,
                          near.best);
    return accel_fail(ACCEL_EARG, "unknown option '%.100s', see accel-%s --help", word, c->name);
}

enum accel_err accel_number_read(int64_t *out, const char *text, int64_t min, int64_t max,
                                 const char *what)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end || strspn(text, "+-0123456789") != strlen(text))
        return accel_fail(ACCEL_EARG, "%.200s needs a whole number, not '%.100s'", what, text);
    if (errno || v < min || v > max) {
        if (max == INT64_MAX)
            return accel_fail(ACCEL_EARG, "%.200s must be at least %lld, not %.100s", what,
                              (long long)min, text);
        return accel_fail(ACCEL_EARG, "%.200s must be between %lld and %lld, not %.100s", what,
                          (long long)min, (long long)max, text);
    }
    *out = v;
    return ACCEL_OK;
}

static bool is_choice(const char *words, const char *text)
{
    size_t n = strlen(text);
    for (const char *w = words; w; w = strchr(w, '|') ? strchr(w, '|') + 1 : NULL)
        if (n && strcspn(w, "|") == n && !strncmp(w, text, n))
            return true;
    return false;
}

static enum accel_err append(struct accel_text_list *l, const char *text)
{
    if (!ACCEL_GROW(l->at, l->cap, l->n + 1))
        return accel_fail_nomem();
    l->at[l->n++] = text;
    return ACCEL_OK;
}

/* Stores a value where the table says; `shown` is the option as the user wrote it. */
static enum accel_err store(struct accel_options *opt, const struct accel_option *o,
                            const char *shown, const char *value)
{
    void *at = (char *)opt + o->at;
    switch (o->kind) {
    case ACCEL_OPTION_FLAG:
        *(bool *)at = true;
        return ACCEL_OK;
    case ACCEL_OPTION_TEXT:
        if (!*value)
            return accel_fail(ACCEL_EARG, "option '%.40s' has an empty value", shown);
        *(const char **)at = value;
        return ACCEL_OK;
    case ACCEL_OPTION_CHOICE:
        if (!is_choice(o->value, value))
            return accel_fail(ACCEL_EARG, "option '%.40s' takes %s, not '%.100s'", shown, o->value,
                              value);
        *(const char **)at = value;
        return ACCEL_OK;
    case ACCEL_OPTION_LIST:
        return append(at, value);
    case ACCEL_OPTION_NUMBER:
        break;
    }
    char what[64] = "option ";
    strncat(what, shown, 40);
    return accel_number_read(at, value, o->min, o->max, what);
}

/* One word that starts with a dash; *used tells whether `next` was its value. */
static enum accel_err take(struct accel_job *job, const char *word, const char *next, bool *used)
{
    const struct accel_command *c = job->command;
    bool is_long = word[1] == '-';
    const char *name = word + 1 + is_long;
    const char *eq = is_long ? strchr(name, '=') : NULL;
    size_t len = is_long ? (eq ? (size_t)(eq - name) : strlen(name)) : 1;
    const struct accel_option *o = is_long && len < 2 ? NULL : find_any(c, name, len);
    char shown[48] = "";
    strncat(shown, word, is_long ? (len + 2 < 40 ? len + 2 : 40) : 2);
    for (const char *const *l = is_long ? c->later : NULL; l && *l; l += 2)
        if (!strcmp(l[0], shown + 2))
            return accel_fail(ACCEL_EARG, "option '%s' needs %s", shown, l[1]);
    if (!o)
        return unknown(c, is_long ? shown : word);
    for (const char *const *u = c->unused; u && *u; u++)
        if (!strcmp(*u, o->name))
            accel_warn(&job->log, "option '%s' means nothing to accel-%s", shown, c->name);
    if (o->kind == ACCEL_OPTION_FLAG) {
        if (eq)
            return accel_fail(ACCEL_EARG, "option '%s' takes no value", shown);
        ACCEL_TRY(store(&job->opt, o, shown, NULL));
        /* -qv is -q -v */
        char rest[3] = {'-', is_long ? '\0' : word[2], '\0'};
        if (!rest[1])
            return ACCEL_OK;
        const struct accel_option *p = find_any(c, rest + 1, 1);
        if (word[3] || !p || p->kind != ACCEL_OPTION_FLAG)
            return unknown(c, word);
        return store(&job->opt, p, rest, NULL);
    }
    const char *value = eq ? eq + 1 : !is_long && word[2] ? word + 2 : next;
    *used = value == next;
    if (!value)
        return accel_fail(ACCEL_EARG, "option '%s' needs a value (%s)", shown, o->value);
    return store(&job->opt, o, shown, value);
}

static enum accel_err check_device(const char *device)
{
    if (!device || !strcmp(device, "cpu"))
        return ACCEL_OK;
    size_t n = strcspn(device, ":");
    int64_t index;
    if (n != 4 || strncmp(device, "cuda", 4))
        return accel_fail(ACCEL_EARG, "option '--device' takes cpu or cuda[:N], not '%.100s'",
                          device);
    if (device[4])
        ACCEL_TRY(accel_number_read(&index, device + 5, 0, 1023, "the N of --device cuda:N"));
    return accel_fail(ACCEL_EDEVICE, "device '%s': CUDA is not built in", device);
}

enum accel_err accel_options_parse(struct accel_job *job, int argc, char **argv)
{
    const struct accel_command *c = job->command;
    struct accel_options *opt = &job->opt;
    bool ended = false;
    for (int i = 0; i < argc; i++) /* known before anything can fail: how to show the failure */
        if (!strcmp(argv[i], "--json"))
            opt->json = true;
        else if (!strcmp(argv[i], "--"))
            break;
    for (int i = 0; i < argc; i++) {
        bool used = false;
        if (!ended && !strcmp(argv[i], "--"))
            ended = true;
        else if (ended || argv[i][0] != '-' || !argv[i][1])
            ACCEL_TRY(append(&opt->arg, argv[i]));
        else
            ACCEL_TRY(take(job, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &used));
        i += used;
    }
    if (opt->help || opt->version)
        return ACCEL_OK;
    if (opt->arg.n < (size_t)c->min_args)
        return accel_fail(ACCEL_EARG, "an argument is missing: accel-%s %s", c->name, c->usage);
    if (opt->arg.n > (size_t)c->max_args)
        return accel_fail(ACCEL_EARG, "one argument too many, '%.200s': accel-%s %s",
                          opt->arg.at[c->max_args], c->name, c->usage);
    return check_device(opt->device);
}

void accel_options_clear(struct accel_options *opt)
{
    accel_free(opt->set.at);
    accel_free(opt->dim.at);
    accel_free(opt->input_shape.at);
    accel_free(opt->input.at);
    accel_free(opt->arg.at);
    *opt = (struct accel_options){0};
}

/* Text broken between words into lines of at most 80 columns, from column `indent` on. */
static void wrap(struct accel_str *out, const char *text, size_t indent, size_t col)
{
    while (*text) {
        size_t n = strcspn(text, " ");
        if (col + n + (col > indent) > 80) {
            accel_str_addf(out, "\n%*s", (int)indent, "");
            col = indent;
        } else if (col > indent) {
            accel_str_add(out, " ");
            col++;
        }
        accel_str_addn(out, text, n);
        col += n;
        text += n + strspn(text + n, " ");
    }
    accel_str_add(out, "\n");
}

#define HELP_COLUMN 27

static void help_table(struct accel_str *out, const struct accel_option *table)
{
    for (const struct accel_option *o = table; o && o->name; o++) {
        size_t from = out->len;
        accel_str_addf(out, o->letter ? "  -%c, " : "      ", o->letter);
        accel_str_addf(out, "--%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
        size_t used = out->len - from;
        if (used + 2 > HELP_COLUMN) {
            accel_str_add(out, "\n");
            used = 0;
        }
        accel_str_addf(out, "%*s", (int)(HELP_COLUMN - used), "");
        wrap(out, o->help, HELP_COLUMN, HELP_COLUMN);
    }
}

void accel_options_help(struct accel_str *out, const struct accel_command *c)
{
    accel_str_addf(out, "Usage: accel-%s %s\n\n", c->name, c->usage);
    wrap(out, c->summary, 0, 0);
    if (c->options) {
        accel_str_addf(out, "\nOptions of accel-%s:\n", c->name);
        help_table(out, c->options);
    }
    accel_str_add(out, "\nOptions of all commands:\n");
    help_table(out, common);
    accel_str_add(out, "\nExit status: 0 done, 1 wrong usage or config, 2 unusable input file,\n"
                       "3 a target was missed, 4 no such device, 5 the system failed.\n");
}

void accel_options_help_all(struct accel_str *out, const struct accel_command *const *commands)
{
    accel_str_add(out, "Usage: accel COMMAND ...   (or accel-COMMAND ...)\n\n");
    for (; *commands; commands++) {
        accel_str_addf(out, "  %-9s ", (*commands)->name);
        wrap(out, (*commands)->summary, 12, 12);
    }
    accel_str_add(out, "\naccel COMMAND --help tells more.\n");
}
