/* tools.h - one program, many commands: what a command is, what it gets, what it gives back.
 *
 * A command is a table entry at the end of its file cmd_<name>.c:
 *
 *     const struct accel_command accel_command_new = {
 *         .name = "new",
 *         .usage = "NAME -o OUT [options]",
 *         .summary = "Writes one of the built-in example networks with fresh weights.",
 *         .options = options,
 *         .min_args = 1, .max_args = 1,
 *         .run = run,
 *     };
 *
 * and is found by its file's name. It neither prints nor exits: it leaves its text in job->out and
 * its warnings in job->log, and returns an error code with accel_fail()'s text. */
#ifndef ACCEL_TOOLS_TOOLS_H
#define ACCEL_TOOLS_TOOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"

struct accel_text_list {
    const char **at;
    size_t n, cap;
};

/* Every option of every command; each command's table says which ones it takes. Texts are borrowed
 * from argv, NULL when not given. */
struct accel_options {
    /* all commands */
    const char *output, *config, *report, *device;
    struct accel_text_list set, dim, input_shape;
    int64_t seed, threads; /* threads 0: not given */
    bool dry_run, json, quiet, verbose, no_color, version, help;
    /* prune */
    const char *pruner;
    bool groups, sensitivity, latency;
    bool allow_linked_data, external_data, no_external_data, sparse_initializers;
    /* inspect */
    const char *sort, *format;
    /* new */
    bool no_bias;
    int64_t features; /* 0: not given */
    /* run, compare, eval */
    const char *data;
    struct accel_text_list input;
    int64_t max_steps; /* 0: not given */
    const char *atol, *rtol;
    bool layers, check;
    /* all that compute */
    const char *cpus, *optimize;
    /* bench */
    int64_t batch; /* 0: not given */
    const char *seconds, *trace, *precision;
    bool profile;
    /* what is no option */
    struct accel_text_list arg;
};

enum accel_option_kind {
    ACCEL_OPTION_FLAG,   /* bool */
    ACCEL_OPTION_TEXT,   /* const char * */
    ACCEL_OPTION_LIST,   /* struct accel_text_list: may be given several times */
    ACCEL_OPTION_NUMBER, /* int64_t within min..max */
    ACCEL_OPTION_CHOICE, /* const char *, one of the words of `value` */
};

struct accel_option {
    const char *name; /* without dashes; NULL ends the table */
    char letter;      /* 0: none */
    enum accel_option_kind kind;
    size_t at;         /* offsetof(struct accel_options, …) */
    const char *value; /* as shown in the help: "FILE", "csv|json" */
    const char *help;
    int64_t min, max;
};

/* --cpus, in the tables of commands that compute. */
#define ACCEL_OPTION_CPUS                                                                          \
    {                                                                                              \
        "cpus", 0, ACCEL_OPTION_TEXT, offsetof(struct accel_options, cpus), "LIST",                \
            "run on these processors only (0-3,5), a thread on each unless --threads says "        \
            "otherwise",                                                                           \
            0, 0                                                                                   \
    }

/* --optimize, of accel-run and accel-bench. */
#define ACCEL_OPTION_OPTIMIZE                                                                      \
    {                                                                                              \
        "optimize", 0, ACCEL_OPTION_CHOICE, offsetof(struct accel_options, optimize),              \
            "none|default|max",                                                                    \
            "plain kernels in the file's order; fast kernels; fast kernels chosen by timing, "     \
            "which may round more coarsely",                                                       \
            0, 0                                                                                   \
    }

struct accel_job;

struct accel_command {
    const char *name, *usage, *summary;
    const struct accel_option *options; /* its own, beside the common ones; NULL: none */
    const char *const *unused; /* names of common options that mean nothing here, ended by NULL;
                                  given all the same they are a warning. NULL: none */
    const char *const *later;  /* pairs: a promised option, and the part of the tool it waits for;
                                  ended by NULL. NULL: none */
    int min_args, max_args;
    enum accel_err (*run)(struct accel_job *) ACCEL_CHECKED;
};

/* One call of a command. */
struct accel_job {
    const struct accel_command *command;
    struct accel_options opt;
    struct accel_config_file *config; /* owned; alive until its error was shown */
    struct accel_str out;             /* for standard output, printed when the command succeeded */
    struct accel_log log;             /* warnings, for standard error */
    struct accel_log notes;           /* what --verbose adds there */
    int64_t last_ns;                  /* of accel_job_note() */
    bool color;                       /* standard output takes colours */
    int width;                        /* columns of the terminal; 0: not a terminal, no limit */
};

/* Reads argv[0..argc) (without the command's name). Errors: EARG, names the option, the value and a
 * near name. opt->json is right on failure too. Free with accel_options_clear(). */
enum accel_err accel_options_parse(struct accel_job *job, int argc, char **argv) ACCEL_CHECKED;
void accel_options_clear(struct accel_options *opt);

/* The text of --help, at most 80 columns wide. */
void accel_options_help(struct accel_str *out, const struct accel_command *c);

/* The text of accel --help: all commands, ended by NULL. */
void accel_options_help_all(struct accel_str *out, const struct accel_command *const *commands);

/* Reads job->opt.config with --set applied into job->config. EARG when no --config was given. */
enum accel_err accel_job_config(struct accel_job *job) ACCEL_CHECKED;

/* Appends the line of the config that an error text is about, and a caret; nothing when the error
 * is about something else. */
void accel_job_caret(struct accel_str *out, const struct accel_job *job, const char *error);

/* Applies --dim and --input-shape to a model that was read, before inference. */
struct accel_model;
enum accel_err accel_job_bind(struct accel_job *job, struct accel_model *m) ACCEL_CHECKED;

/* Sets what --threads and --cpus say, for the whole process. EARG: a list that is none. */
enum accel_err accel_job_threads(const struct accel_job *job) ACCEL_CHECKED;

/* With --verbose: notes what was done ("read", …) and how long it took since the last note. */
void accel_job_note(struct accel_job *job, const char *what);

/* Copies a model's warnings to the job's. */
void accel_job_warn(struct accel_job *job, const struct accel_log *log);

/* A whole number within min..max. EARG names `what` and the text. */
enum accel_err accel_number_read(int64_t *out, const char *text, int64_t min, int64_t max,
                                 const char *what) ACCEL_CHECKED;

#endif
