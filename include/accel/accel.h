/* accel.h - pruning ONNX networks from C. Link with -laccel (pkg-config accel, or CMake's
 * find_package(accel) and accel::accel).
 *
 *     struct accel_net *net;
 *     int status = accel_net_read(&net, "model.onnx");
 *     if (!status)
 *         status = accel_net_prune(net, "[{\"op_types\": [\"Linear\"], \"sparse_ratio\": 0.3}]");
 *     if (!status)
 *         status = accel_net_write(net, "small.onnx");
 *     if (status)
 *         fprintf(stderr, "%s\n", accel_error());
 *     accel_net_free(net);
 *
 * Functions that can fail return the exit status of the accel programs: 0 done, 1 wrong config or
 * argument, 2 an input file cannot be used, 3 a target was missed, 4 no such device, 5 the system
 * failed (memory, disk). The library never prints and never ends the process. One network must not
 * be used by two threads at once; different networks may. */
#ifndef ACCEL_ACCEL_H
#define ACCEL_ACCEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ACCEL_API __attribute__((visibility("default")))

/* "0.1.0" */
ACCEL_API const char *accel_version(void);

/* The text of this thread's last failure. Meaningful right after a call returned a status other
 * than 0. Names from files stand in it as they are: escape control characters before showing it. */
ACCEL_API const char *accel_error(void);

/* An ONNX model and what is planned for it. */
struct accel_net;

/* Opens a model and infers its shapes. Weights stay in the file, which must not change until
 * accel_net_free(). *out is NULL on failure. */
ACCEL_API int accel_net_read(struct accel_net **out, const char *path);

/* Gives a symbolic dimension of the model ("batch", "seq") its size. 1 with near names when the
 * model has no such dimension. */
ACCEL_API int accel_net_bind_dim(struct accel_net *net, const char *name, int64_t size);

struct accel_net_numbers {
    uint64_t bytes;     /* of the file that was read and its data files */
    uint64_t nodes;     /* bodies of If, Loop, Scan and functions included */
    uint64_t params;    /* elements of all floating-point constants, each stored tensor once */
    uint64_t trainable; /* params without running means and variances */
    uint64_t nonzero;   /* of params, as stored in the file that was read */
    int64_t macs;       /* multiply-adds of one sample; -1: a shape is unknown */
};

/**
 * Counts what the model holds, as accel-inspect does. Reads every weight once, in pieces.
 *
 * @param[out] out  caller's memory
 * @return 0; 2 or 5 when the file cannot be read any more
 */
ACCEL_API int accel_net_count(struct accel_net_numbers *out, struct accel_net *net);

/* Plans pruning. `config`: a file name, or the config itself when it starts with { or [. Once per
 * network: pruning again means reading the result. 1 with FILE:LINE:COL in the text for a config
 * that is wrong or names what the model does not have; the network then is as it was. After any
 * other failure it can only be freed. Pruners that score channels cut them out of the network. What
 * looks at data (repair, scores of activations, accuracy) is for the command accel-prune: 1. */
ACCEL_API int accel_net_prune(struct accel_net *net, const char *config);

/* Writes the model as planned; `path` may be the one it was read from. All of the file or nothing.
 */
ACCEL_API int accel_net_write(struct accel_net *net, const char *path);

/* NULL is allowed. */
ACCEL_API void accel_net_free(struct accel_net *net);

/* What happened to one weight. Texts live as long as the network. */
struct accel_net_weight {
    const char *name;
    const char *node;         /* that it is a weight of, or "" */
    const char *reason;       /* why it was pruned or kept */
    int pruned;               /* 0: kept */
    double requested;         /* share of zeros asked for; NaN when none was */
    double achieved;          /* share removed: of elements, or of output channels */
    uint64_t elements, zeros; /* after; fewer elements where channels were cut out */
};

/* Weight number `index`; 0 when there is none. Known after accel_net_prune() and accel_net_write().
 */
ACCEL_API int accel_net_weight_get(struct accel_net_weight *out, const struct accel_net *net,
                                   size_t index);

/* Parameters of the model, and how many of them are not zero, after accel_net_write(). */
ACCEL_API uint64_t accel_net_params(const struct accel_net *net);
ACCEL_API uint64_t accel_net_nonzero(const struct accel_net *net);

/* Warning number `index`, or NULL. */
ACCEL_API const char *accel_net_warning(const struct accel_net *net, size_t index);

#ifdef __cplusplus
}
#endif

#endif
