/* t.h - what every test file shares. */
#ifndef ACCEL_TESTS_T_H
#define ACCEL_TESTS_T_H

#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "base/err.h"

/* The call succeeds, or its error text is shown. */
#define ck_ok(expr)                                                                                \
    do {                                                                                           \
        enum accel_err t_err = (expr);                                                             \
        ck_assert_msg(t_err == ACCEL_OK, "%s: error %d: %s", #expr, (int)t_err, accel_errmsg());   \
    } while (0)

/* The call fails with this code and its text holds this word. */
#define ck_fails(expr, code, word)                                                                 \
    do {                                                                                           \
        enum accel_err t_err = (expr);                                                             \
        ck_assert_msg(t_err == (code), "%s: got %d, want %d (%s)", #expr, (int)t_err, (int)(code), \
                      t_err ? accel_errmsg() : "no error");                                        \
        ck_assert_msg(strstr(accel_errmsg(), word) != NULL, "'%s' does not say '%s'",              \
                      accel_errmsg(), word);                                                       \
    } while (0)

#define T_MAIN(suite_fn)                                                                           \
    int main(void)                                                                                 \
    {                                                                                              \
        SRunner *r = srunner_create(suite_fn());                                                   \
        srunner_run_all(r, CK_ENV);                                                                \
        int bad = srunner_ntests_failed(r);                                                        \
        srunner_free(r);                                                                           \
        return bad ? EXIT_FAILURE : EXIT_SUCCESS;                                                  \
    }

#endif
