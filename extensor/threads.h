/* How many threads a call may use.

   Three settings, the smallest scope first: num_threads() for the calling Python thread,
   set_num_threads() for the process, and a limit that threadpoolctl puts on the OpenMP runtime.
   threadpoolctl changes the runtime's own count for the calling thread; we keep that count equal
   to ours, so a difference means that somebody has limited it, and the limit wins. */
#ifndef EXTENSOR_THREADS_H
#define EXTENSOR_THREADS_H

#ifdef _OPENMP
#include <omp.h>
#else
static int omp_get_max_threads(void) { return 1; }
static void omp_set_num_threads(int n) { (void)n; }
#endif

#if defined(_MSC_VER)
#define EX_THREAD_LOCAL __declspec(thread)
#else
#define EX_THREAD_LOCAL __thread
#endif

static volatile int ex_process_threads = 1;
static volatile int ex_forked = 0;
static int ex_default_threads = 1;               /* what the runtime gives a thread nobody touched */
static EX_THREAD_LOCAL int ex_own_threads = 0;   /* num_threads(); 0 = not set */
static EX_THREAD_LOCAL int ex_expected = 0;      /* the runtime's count as we left it */
static EX_THREAD_LOCAL int ex_last_team = 0;     /* threads of the last piece of work, and the */
static EX_THREAD_LOCAL int ex_widest_team = 0;   /* most since somebody asked */

/* The runtime cannot start a team in the child of a fork: it would hang. */
static int ex_threads(void) {
    int ours, runtime;
    if (ex_forked) return 1;
    ours = ex_own_threads ? ex_own_threads : ex_process_threads;
    runtime = omp_get_max_threads();
    if (ex_expected == 0) ex_expected = ex_default_threads;
    if (runtime != ex_expected) return runtime < ours ? runtime : ours;
    if (ours != runtime) {
        omp_set_num_threads(ours);
        ex_expected = ours;
    }
    return ours;
}

#endif
