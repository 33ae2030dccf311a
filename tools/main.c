/* Finds the command by the program's name or the first argument, runs it, and shows what came out.
 * Commands return text and codes; standard output, standard error and the exit status are written
 * here and nowhere else (progress lines apart), so that every command fails alike: one line,
 * nothing on standard output before success, the status from the code. */
#include "base/json.h"
#include "tools/escape.h"
#include "tools/progress.h"
#include "tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Generated from the files cmd_*.c. */
#define COMMAND(name) extern const struct accel_command accel_command_##name;
#include "commands_list.inc"
#undef COMMAND
static const struct accel_command *const commands[] = {
#define COMMAND(name) &accel_command_##name,
#include "commands_list.inc"
#undef COMMAND
    NULL,
};

static void put(FILE *f, const struct accel_str *s)
{
    fputs(s->failed ? "out of memory\n" : accel_str_get(s), f);
}

static int fail(const char *name, const struct accel_job *job, enum accel_err err)
{
    char text[4096]; /* what follows may fail, too */
    snprintf(text, sizeof text, "%s", accel_errmsg());
    struct accel_str line = {0};
    accel_str_addf(&line, "accel%s%s: ", *name ? "-" : "", name);
    accel_escape_terminal(&line, text);
    accel_str_add(&line, "\n");
    if (isatty(STDERR_FILENO))
        accel_job_caret(&line, job, text);
    put(stderr, &line);
    accel_str_clear(&line);
    if (job->opt.json) {
        struct accel_json j = {0};
        accel_json_object(&j, NULL);
        accel_json_text(&j, "command", name);
        accel_json_object(&j, "error");
        accel_json_int(&j, "status", accel_err_status(err));
        accel_json_text(&j, "text", text);
        accel_json_end(&j, '}');
        accel_json_end(&j, '}');
        accel_str_add(&j.out, "\n");
        if (!j.out.failed)
            put(stdout, &j.out);
        accel_json_clear(&j);
        fflush(stdout);
    }
    return accel_err_status(err);
}

static void show_log(const struct accel_job *job, const struct accel_log *log, const char *kind)
{
    for (size_t i = 0; !job->opt.quiet && i < log->n; i++) {
        struct accel_str line = {0};
        accel_str_addf(&line, "accel-%s: %s: ", job->command->name, kind);
        accel_escape_terminal(&line, log->text[i]);
        accel_str_add(&line, "\n");
        put(stderr, &line);
        accel_str_clear(&line);
    }
}

static enum accel_err print(const struct accel_str *s)
{
    if (s->failed)
        return accel_fail_nomem();
    errno = 0;
    if (fwrite(accel_str_get(s), 1, s->len, stdout) != s->len || fflush(stdout))
        return accel_fail(ACCEL_EIO, "standard output: %s", strerror(errno ? errno : EIO));
    return ACCEL_OK;
}

static void add_version(struct accel_str *out)
{
    accel_str_add(out,
                  "accel " ACCEL_VERSION "\n"
                  "built in: protobuf-c " ACCEL_PROTOBUFC_VERSION ", libfyaml " ACCEL_FYAML_VERSION
                  ", zlib " ACCEL_ZLIB_VERSION ", libjpeg " ACCEL_JPEG_VERSION
                  ", libpng " ACCEL_PNG_VERSION ", LAPACK 3 (opened when a model is repaired)"
#ifdef ACCEL_HAVE_ONEDNN
                  ", oneDNN 2 (opened when a model runs)\n"
                  "not built in: "
#else
                  "\n"
                  "not built in: oneDNN, "
#endif
                  "CUDA, cuDNN, cuSPARSE, NCCL, MPI\n");
}

static enum accel_err run(struct accel_job *job, int argc, char **argv)
{
    const struct accel_command *c = job->command;
    ACCEL_TRY(accel_options_parse(job, argc, argv));
    ACCEL_TRY(accel_job_threads(job));
    struct winsize w;
    bool tty = isatty(STDOUT_FILENO);
    if (tty)
        job->width = !ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) && w.ws_col >= 40 ? w.ws_col : 80;
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    job->color =
        tty && !job->opt.no_color && !(no_color && *no_color) && (!term || strcmp(term, "dumb"));
    if (job->opt.help)
        accel_options_help(&job->out, c);
    else if (job->opt.version)
        add_version(&job->out);
    else
        ACCEL_TRY(c->run(job));
    show_log(job, &job->log, "warning");
    show_log(job, &job->notes, "note");
    bool wanted = !job->opt.quiet || job->opt.json || job->opt.help || job->opt.version;
    return wanted ? print(&job->out) : ACCEL_OK;
}

/* accel without a command. */
static enum accel_err run_bare(struct accel_job *job, const char *word)
{
    if (word && !strcmp(word, "--version")) {
        add_version(&job->out);
    } else if (word && (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help"))) {
        accel_options_help_all(&job->out, commands);
    } else if (!word) {
        return accel_fail(ACCEL_EARG, "a command is missing, see accel --help");
    } else {
        struct accel_near near = accel_near_begin(word);
        for (size_t i = 0; commands[i]; i++)
            accel_near_try(&near, commands[i]->name);
        return near.best
                   ? accel_fail(ACCEL_EARG, "unknown command '%.100s', did you mean '%s'?", word,
                                near.best)
                   : accel_fail(ACCEL_EARG, "unknown command '%.100s', see accel --help", word);
    }
    return print(&job->out);
}

/* Nothing that is opened later may become standard output or error by chance, and a file size limit
 * is an error of the write, not a death. */
static void prepare_process(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_WRONLY : O_RDONLY) != fd)
            exit(5);
    signal(SIGXFSZ, SIG_IGN);
}

int main(int argc, char **argv)
{
    prepare_process();
    const char *slash = argc ? strrchr(argv[0], '/') : NULL;
    const char *program = slash ? slash + 1 : argc ? argv[0] : "accel";
    bool linked = !strncmp(program, "accel-", 6);
    const char *word = linked ? program + 6 : argc > 1 ? argv[1] : NULL;
    int skip = linked || argc < 2 ? 1 : 2;

    struct accel_job job = {0};
    for (size_t i = 0; word && commands[i]; i++)
        if (!strcmp(word, commands[i]->name))
            job.command = commands[i];
    enum accel_err err = job.command ? run(&job, argc - skip, argv + skip) : run_bare(&job, word);
    int status = err ? fail(job.command ? job.command->name : "", &job, err) : 0;

    accel_str_clear(&job.out);
    accel_log_clear(&job.log);
    accel_log_clear(&job.notes);
    accel_config_free(job.config);
    accel_options_clear(&job.opt);
    if (err && accel_progress_signal())
        raise(accel_progress_signal());
    return status;
}
