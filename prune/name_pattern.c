/* A pattern is compiled to a small program that all live threads run in step over the name
 * (Thompson 1968; Pike's and Cox's descriptions of it), so that no pattern backtracks: the time is
 * linear in the name. regcomp() was left because it takes seconds and gigabytes for nested repeats.
 *
 * The compiler is a recursive descent over the text. Two shapes save it a tree: every alternative
 * and every atom begins with a JUMP to the next step, which becomes a FORK when a | or a quantifier
 * follows; a counted repeat reads its atom's text again for every copy. */
#include "prune/name_pattern.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum step_kind { STEP_SET, STEP_JUMP, STEP_FORK, STEP_PLACE, STEP_MATCH };

enum place { AT_START = 1, AT_END = 2 };

struct range {
    uint32_t low, high;
};

struct step {
    enum step_kind kind;
    int a, b;       /* JUMP: a; FORK: a and b */
    int first, n;   /* SET: ranges */
    bool negate;    /* SET: characters outside the ranges */
    unsigned place; /* PLACE: where it holds */
};

struct accel_name_pattern {
    struct step *step;
    struct range *range;
    size_t n_step, step_cap, n_range, range_cap;
    int *now, *next, *stack; /* [n_step] lists of threads, all in `block` */
    int *block;
    uint32_t *seen; /* [n_step] the round in which a step was added */
    uint32_t round;
    int64_t cost; /* steps taken in this round */
};

#define MAX_NESTING 50
#define MAX_WORK    20000 /* atoms read, copies of repeats included */

struct compiler {
    struct accel_name_pattern *p;
    const char *at, *end;
    int nesting, work;
};

static enum accel_err alternatives(struct compiler *c);

static enum accel_err refuse(const char *what)
{
    return accel_fail(ACCEL_EARG,
                      "%s; supported are | * + ? {n,m} ( ) [ ] ^ $ . and \\d \\w \\s \\. and the "
                      "like",
                      what);
}

static enum accel_err emit(struct compiler *c, struct step s)
{
    struct accel_name_pattern *p = c->p;
    if (p->n_step == ACCEL_NAME_PATTERN_MAX_STEPS)
        return refuse("it is too large when its repeats are written out");
    if (!ACCEL_GROW(p->step, p->step_cap, p->n_step + 1))
        return accel_fail_nomem();
    p->step[p->n_step++] = s;
    return ACCEL_OK;
}

/* A jump to the step behind it, to be turned into a fork. */
static enum accel_err emit_slot(struct compiler *c)
{
    return emit(c, (struct step){.kind = STEP_JUMP, .a = (int)c->p->n_step + 1});
}

static enum accel_err add_range(struct accel_name_pattern *p, uint32_t low, uint32_t high)
{
    if (!ACCEL_GROW(p->range, p->range_cap, p->n_range + 1))
        return accel_fail_nomem();
    p->range[p->n_range++] = (struct range){low, high};
    return ACCEL_OK;
}

/* The ranges of \d, \w, \s; the class of a capital is negated by the caller. */
static enum accel_err add_class(struct accel_name_pattern *p, int letter)
{
    static const struct {
        int letter;
        struct range r[4];
    } classes[] = {{'d', {{'0', '9'}}},
                   {'w', {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
                   {'s', {{'\t', '\r'}, {' ', ' '}}}};
    for (size_t i = 0; i < 3; i++)
        for (int k = 0; classes[i].letter == letter && k < 4 && classes[i].r[k].high; k++)
            ACCEL_TRY(add_range(p, classes[i].r[k].low, classes[i].r[k].high));
    return ACCEL_OK;
}

/* [:alpha:] and its like, ASCII only; `at` stands on the name. */
static enum accel_err add_posix_class(struct compiler *c)
{
    static const struct {
        const char *name;
        int (*is)(int);
    } classes[] = {{"alpha:]", isalpha}, {"digit:]", isdigit},   {"alnum:]", isalnum},
                   {"upper:]", isupper}, {"lower:]", islower},   {"space:]", isspace},
                   {"punct:]", ispunct}, {"xdigit:]", isxdigit}, {"blank:]", isblank}};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        size_t n = strlen(classes[i].name);
        if (strncmp(c->at, classes[i].name, n) != 0)
            continue;
        c->at += n;
        for (int ch = 1; ch < 128; ch++)
            if (classes[i].is(ch))
                ACCEL_TRY(add_range(c->p, (uint32_t)ch, (uint32_t)ch));
        return ACCEL_OK;
    }
    return refuse("it has an unknown character class [:…:]");
}

/* One character of a set, escapes read; *cls is set to the letter of \d \w \s. */
static enum accel_err set_char(struct compiler *c, uint32_t *out, int *cls)
{
    *cls = 0;
    if (*c->at == '\\') {
        char e = *++c->at;
        if (!e)
            return refuse("a [ is not closed");
        if (e == 'd' || e == 'w' || e == 's')
            *cls = e;
        else if (isalnum((unsigned char)e))
            return refuse("it has an escape that is not supported inside [ ]");
    }
    *out = accel_utf8_next(&c->at, c->end);
    return ACCEL_OK;
}

/* [...], `at` behind the bracket. */
static enum accel_err bracket(struct compiler *c)
{
    struct step s = {.kind = STEP_SET, .first = (int)c->p->n_range};
    s.negate = *c->at == '^';
    c->at += s.negate;
    for (bool first = true; first || *c->at != ']'; first = false) {
        uint32_t low, high;
        int cls;
        if (!*c->at)
            return refuse("a [ is not closed");
        if (c->at[0] == '[' && (c->at[1] == ':' || c->at[1] == '.' || c->at[1] == '=')) {
            c->at += 2;
            ACCEL_TRY(add_posix_class(c));
            continue;
        }
        ACCEL_TRY(set_char(c, &low, &cls));
        if (cls) {
            ACCEL_TRY(add_class(c->p, cls));
            continue;
        }
        high = low;
        if (c->at[0] == '-' && c->at[1] && c->at[1] != ']') {
            c->at++;
            ACCEL_TRY(set_char(c, &high, &cls));
            if (cls || high < low)
                return refuse("it has a range [b-a] that is backwards");
        }
        ACCEL_TRY(add_range(c->p, low, high));
    }
    c->at++;
    s.n = (int)c->p->n_range - s.first;
    return emit(c, s);
}

/* \x, `at` behind the backslash. */
static enum accel_err escape(struct compiler *c)
{
    struct step s = {.kind = STEP_SET, .first = (int)c->p->n_range};
    char e = *c->at;
    char lower = (char)tolower((unsigned char)e);
    if (!e)
        return refuse("it ends in a backslash");
    if (lower == 'd' || lower == 'w' || lower == 's') {
        ACCEL_TRY(add_class(c->p, lower));
        s.negate = e != lower;
        c->at++;
    } else if (e >= '1' && e <= '9') {
        return refuse("it has a back-reference, which is not supported");
    } else if (isalnum((unsigned char)e)) {
        return refuse("it has an escape that is not supported");
    } else {
        uint32_t ch = accel_utf8_next(&c->at, c->end);
        ACCEL_TRY(add_range(c->p, ch, ch));
    }
    s.n = (int)c->p->n_range - s.first;
    return emit(c, s);
}

static enum accel_err group(struct compiler *c)
{
    if (*c->at == '?' && c->at[1] != ':')
        return refuse(
            c->at[1] == '=' || c->at[1] == '!' || c->at[1] == '<'
                ? "it has a look-ahead, look-behind or named group, which is not supported"
                : "it has a (?…) group, which is not supported");
    c->at += *c->at == '?' ? 2 : 0;
    if (++c->nesting > MAX_NESTING)
        return refuse("its parentheses nest too deep");
    ACCEL_TRY(alternatives(c));
    c->nesting--;
    if (*c->at != ')')
        return refuse("a ( is not closed");
    c->at++;
    return ACCEL_OK;
}

static enum accel_err atom(struct compiler *c)
{
    if (++c->work > MAX_WORK)
        return refuse("it is too large when its repeats are written out");
    struct step s = {.kind = STEP_SET, .first = (int)c->p->n_range};
    switch (*c->at) {
    case '(':
        c->at++;
        return group(c);
    case '[':
        c->at++;
        return bracket(c);
    case '\\':
        c->at++;
        return escape(c);
    case '.':
        c->at++;
        s.negate = true;
        return emit(c, s);
    case '$':
        c->at++;
        return emit(c, (struct step){.kind = STEP_PLACE, .place = AT_END});
    case '^':
        c->at++;
        return emit(c, (struct step){.kind = STEP_PLACE, .place = AT_START});
    case '*':
    case '+':
    case '?':
    case '{':
        return refuse("a quantifier has nothing to repeat");
    default:
        break;
    }
    uint32_t ch = accel_utf8_next(&c->at, c->end);
    ACCEL_TRY(add_range(c->p, ch, ch));
    s.n = 1;
    return emit(c, s);
}

/* {n}, {n,}, {n,m}: *high -1 is unbounded. */
static enum accel_err read_counts(struct compiler *c, int *low, int *high)
{
    char *end;
    c->at++;
    if (!isdigit((unsigned char)*c->at))
        return refuse("a { is not followed by a number");
    long a = strtol(c->at, &end, 10), b = a;
    if (*end == ',') {
        c->at = end + 1;
        b = -1;
        if (isdigit((unsigned char)*c->at))
            b = strtol(c->at, &end, 10);
        else
            end = (char *)c->at;
    }
    if (*end != '}')
        return refuse("a { is not closed");
    c->at = end + 1;
    if (a > ACCEL_NAME_PATTERN_MAX_STEPS || b > ACCEL_NAME_PATTERN_MAX_STEPS || (b >= 0 && b < a))
        return refuse("it has a repeat {n,m} that is too large or backwards");
    *low = (int)a;
    *high = (int)b;
    return ACCEL_OK;
}

static enum accel_err read_quantifier(struct compiler *c, int *low, int *high)
{
    *low = *high = 1;
    if (*c->at == '{') {
        ACCEL_TRY(read_counts(c, low, high));
    } else if (*c->at == '*' || *c->at == '+' || *c->at == '?') {
        *low = *c->at == '+';
        *high = *c->at == '?' ? 1 : -1;
        c->at++;
    } else {
        return ACCEL_OK;
    }
    c->at += *c->at == '?'; /* lazy or not: whether it matches is the same */
    if (*c->at == '*' || *c->at == '+' || *c->at == '?' || *c->at == '{')
        return refuse("it has two quantifiers in a row");
    return ACCEL_OK;
}

/* Repeats the atom that was just written from `slot` on: more copies are read again from its text;
 * the optional ones fork to their end, the last of an unbounded run forks back. */
static enum accel_err repeat(struct compiler *c, const char *from, size_t slot, int low, int high)
{
    struct accel_name_pattern *p = c->p;
    const char *behind = c->at;
    int copies = high >= 0 ? high : low ? low : 1;
    if (copies == 0)
        p->n_step = slot;
    for (int i = 0; i < copies; i++) {
        if (i > 0) {
            slot = p->n_step;
            c->at = from;
            ACCEL_TRY(emit_slot(c));
            ACCEL_TRY(atom(c));
        }
        if (high < 0 && i == copies - 1)
            ACCEL_TRY(
                emit(c, (struct step){.kind = STEP_FORK, .a = (int)slot, .b = (int)p->n_step + 1}));
        if (i >= low) {
            p->step[slot].kind = STEP_FORK;
            p->step[slot].b = (int)p->n_step;
        }
    }
    c->at = behind;
    return ACCEL_OK;
}

static enum accel_err sequence(struct compiler *c)
{
    while (*c->at && *c->at != '|' && *c->at != ')') {
        const char *from = c->at;
        size_t slot = c->p->n_step;
        int low, high;
        ACCEL_TRY(emit_slot(c));
        ACCEL_TRY(atom(c));
        ACCEL_TRY(read_quantifier(c, &low, &high));
        if (low != 1 || high != 1)
            ACCEL_TRY(repeat(c, from, slot, low, high));
    }
    return ACCEL_OK;
}

/* a|b|c: each alternative begins with a slot that forks to the next one and ends with a jump to the
 * end; the jumps are chained through their targets until the end is known. */
static enum accel_err alternatives(struct compiler *c)
{
    struct accel_name_pattern *p = c->p;
    int chain = -1;
    for (;;) {
        size_t slot = p->n_step;
        ACCEL_TRY(emit_slot(c));
        ACCEL_TRY(sequence(c));
        if (*c->at != '|')
            break;
        c->at++;
        ACCEL_TRY(emit(c, (struct step){.kind = STEP_JUMP, .a = chain}));
        chain = (int)p->n_step - 1;
        p->step[slot].kind = STEP_FORK;
        p->step[slot].b = (int)p->n_step;
    }
    while (chain >= 0) {
        int next = p->step[chain].a;
        p->step[chain].a = (int)p->n_step;
        chain = next;
    }
    return ACCEL_OK;
}

enum accel_err accel_name_pattern_new(struct accel_name_pattern **out, const char *text)
{
    size_t len = strlen(text);
    if (len > ACCEL_NAME_PATTERN_MAX_LEN)
        return refuse("it is longer than 1000 bytes");
    struct accel_name_pattern *p = accel_calloc(1, sizeof *p);
    if (!p)
        return accel_fail_nomem();
    struct compiler c = {.p = p, .at = text, .end = text + len};
    enum accel_err err = alternatives(&c);
    if (!err && *c.at)
        err = refuse("a ) was never opened");
    if (!err)
        err = emit(&c, (struct step){.kind = STEP_MATCH});
    if (!err) {
        p->block = accel_calloc(3 * p->n_step, sizeof *p->block);
        p->seen = accel_calloc(p->n_step, sizeof *p->seen);
        if (!p->block || !p->seen)
            err = accel_fail_nomem();
    }
    if (err) {
        accel_name_pattern_free(p);
        return err;
    }
    p->now = p->block;
    p->next = p->now + p->n_step;
    p->stack = p->next + p->n_step;
    *out = p;
    return ACCEL_OK;
}

void accel_name_pattern_free(struct accel_name_pattern *p)
{
    if (!p)
        return;
    accel_free(p->step);
    accel_free(p->range);
    accel_free(p->block);
    accel_free(p->seen);
    accel_free(p);
}

/* Adds the threads that `from` leads to without reading a character; true when the match is done. A
 * step enters the stack once a round, so n_step places are enough. */
static bool follow(struct accel_name_pattern *p, int *list, int *n, int from, unsigned place)
{
    int depth = 0;
    if (p->seen[from] == p->round)
        return false;
    p->seen[from] = p->round;
    p->stack[depth++] = from;
    while (depth) {
        int i = p->stack[--depth];
        const struct step *s = &p->step[i];
        p->cost++;
        if (s->kind == STEP_MATCH)
            return true;
        if (s->kind == STEP_SET)
            list[(*n)++] = i;
        if (s->kind == STEP_SET || (s->kind == STEP_PLACE && !(place & s->place)))
            continue;
        int to[2] = {s->kind == STEP_PLACE ? i + 1 : s->a, s->kind == STEP_FORK ? s->b : -1};
        for (int k = 0; k < 2; k++)
            if (to[k] >= 0 && p->seen[to[k]] != p->round) {
                p->seen[to[k]] = p->round;
                p->stack[depth++] = to[k];
            }
    }
    return false;
}

static bool in_set(const struct accel_name_pattern *p, const struct step *s, uint32_t ch)
{
    for (int i = s->first; i < s->first + s->n; i++)
        if (ch >= p->range[i].low && ch <= p->range[i].high)
            return !s->negate;
    return s->negate;
}

enum accel_err accel_name_pattern_match(bool *out, struct accel_name_pattern *p, const char *name,
                                        size_t len, int64_t *budget)
{
    const char *end = name + len;
    int n = 0;
    if (p->round > UINT32_MAX / 2) {
        memset(p->seen, 0, p->n_step * sizeof *p->seen);
        p->round = 0;
    }
    p->round++;
    *budget -= 10;
    *out = follow(p, p->now, &n, 0, AT_START | (name == end ? AT_END : 0));
    while (!*out && n && name < end) {
        uint32_t ch = accel_utf8_next(&name, end);
        int n_next = 0;
        p->round++;
        p->cost = 0;
        for (int i = 0; i < n && !*out; i++) {
            const struct step *s = &p->step[p->now[i]];
            p->cost += 1 + s->n;
            if (in_set(p, s, ch))
                *out = follow(p, p->next, &n_next, p->now[i] + 1, name == end ? AT_END : 0);
        }
        *budget -= p->cost;
        if (*budget < 0)
            return accel_fail(ACCEL_EARG, "the patterns take too long on the names of this model");
        int *swap = p->now;
        p->now = p->next;
        p->next = swap;
        n = n_next;
    }
    return ACCEL_OK;
}
