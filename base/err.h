/* err.h - the one error type: a code to branch on, and one line of text for people. */
#ifndef ACCEL_BASE_ERR_H
#define ACCEL_BASE_ERR_H

enum accel_err {
    ACCEL_OK = 0,
    ACCEL_ENOMEM,  /* an allocation failed                                   (exit status 5) */
    ACCEL_EIO,     /* the system failed to read or write                     (5) */
    ACCEL_EMODEL,  /* an input file cannot be used: missing, malformed, unsafe (2) */
    ACCEL_ESHAPE,  /* shapes or types do not fit together                    (2) */
    ACCEL_ENOSUP,  /* valid, but not supported here                          (2) */
    ACCEL_EARG,    /* wrong usage or config                                  (1) */
    ACCEL_EDEVICE, /* a back end is not built in or has no device            (4) */
    ACCEL_ETARGET, /* the result missed a check or a target asked for        (3) */
};

#define ACCEL_CHECKED __attribute__((warn_unused_result))

/* Records "fmt" as this thread's error text and returns `code`. Texts longer than 4095 bytes are
 * cut; names from files are cut by the caller's precision ("%.200s") or stand last. */
enum accel_err accel_fail(enum accel_err code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Puts "fmt: " in front of the recorded text and returns `code`. */
enum accel_err accel_fail_in(enum accel_err code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Records that memory ran out and returns ACCEL_ENOMEM. */
enum accel_err accel_fail_nomem(void);

/* Text of this thread's last failure; meaningful only right after a call returned non-zero. */
const char *accel_errmsg(void);

/* The exit status that tells of this code: 0 to 5, docs/errors.md. */
int accel_err_status(enum accel_err code);

/* Returns from the calling function when `expr` failed. */
#define ACCEL_TRY(expr)                                                                            \
    do {                                                                                           \
        enum accel_err accel_try_err = (expr);                                                     \
        if (accel_try_err)                                                                         \
            return accel_try_err;                                                                  \
    } while (0)

/* The same in functions that clean up: stores the code in `err` and goes to `done`. */
#define ACCEL_GOTO(err, expr)                                                                      \
    do {                                                                                           \
        (err) = (expr);                                                                            \
        if (err)                                                                                   \
            goto done;                                                                             \
    } while (0)

#endif
