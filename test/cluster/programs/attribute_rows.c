// SPDX-License-Identifier: BSD-3-Clause
// One row for each attribute of a process or a thread that a program can change: main changes it
// twice, and every thread of a region says whether it finds it as main does. Before each change a
// smaller region ends some threads, so that the next makes them anew.
#define _GNU_SOURCE
#include <errno.h>
#include <fenv.h>
#include <locale.h>
#include <malloc.h>
#include <omp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { threads = 4, text_max = 300 };
typedef void Change(int step);
typedef void Read(char* text);

static void put(char* text, long value) { snprintf(text, text_max, "%ld", value); }

static void change_directory(int step) {
    if (chdir(step == 1 ? "/usr" : "/tmp") != 0) exit(9);
}
static void read_directory(char* text) {
    if (getcwd(text, text_max) == NULL) text[0] = '?';
}

static void change_umask(int step) { umask(step == 1 ? 027 : 071); }
static void read_umask(char* text) {
    FILE* const status = fopen("/proc/self/status", "r");
    char line[text_max];
    while (fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "Umask: %299s", text) == 1) break;
    fclose(status);
}

static void change_locale(int step) { setlocale(LC_ALL, step == 1 ? "C.UTF-8" : "C"); }
static void read_locale(char* text) { strcpy(text, setlocale(LC_ALL, NULL)); }

static void change_environment(int step) { setenv("ROW", step == 1 ? "one" : "two", 1); }
static void read_environment(char* text) {
    const char* const value = getenv("ROW");
    strcpy(text, value != NULL ? value : "none");
}

static void handle(int number) { (void)number; }
static void change_action(int step) { signal(SIGWINCH, step == 1 ? handle : SIG_IGN); }
static void read_action(char* text) {
    struct sigaction action;
    sigaction(SIGWINCH, NULL, &action);
    strcpy(text, action.sa_handler == handle    ? "handled"
                 : action.sa_handler == SIG_IGN ? "ignored"
                                                : "?");
}

static void change_zone(int step) {
    setenv("TZ", step == 1 ? "AAA-3BBB" : "CCC5", 1);
    if (step == 1) tzset();  // afterwards: known to the environment alone
}
static void read_zone(char* text) {
    const time_t at = 1700000000;
    struct tm broken;
    localtime_r(&at, &broken);
    snprintf(text, text_max, "%d %s %ld", broken.tm_hour, broken.tm_zone, broken.tm_gmtoff);
}
static void change_mask(int step) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, step == 1 ? SIGUSR1 : SIGALRM);
    sigprocmask(SIG_SETMASK, &set, NULL);
}
static void read_mask(char* text) {
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    put(text, sigismember(&set, SIGUSR1) + 10 * sigismember(&set, SIGALRM) +
                  100 * sigismember(&set, SIGTERM));
}

static void change_rounding(int step) { fesetround(step == 1 ? FE_UPWARD : FE_DOWNWARD); }
static void read_rounding(char* text) { put(text, fegetround()); }

static void change_processors(int step) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(step == 1 ? 1 : 0, &set);
    sched_setaffinity(0, sizeof set, &set);
}
static void read_processors(char* text) {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    put(text, CPU_COUNT(&set) + 100 * CPU_ISSET(0, &set));
}

static void change_memory_policy(int step) {
    const unsigned long nodes = 1;
    syscall(SYS_set_mempolicy, step == 1 ? 2 : 0, &nodes, step == 1 ? 65 : 0);
}
static void read_memory_policy(char* text) {
    int policy = -1;
    syscall(SYS_get_mempolicy, &policy, NULL, 0, NULL, 0);
    put(text, policy);
}

static void change_scheduling(int step) {
    const struct sched_param none = {0};
    sched_setscheduler(0, step == 1 ? SCHED_BATCH : SCHED_OTHER, &none);
}
static void read_scheduling(char* text) { put(text, sched_getscheduler(0)); }

static void change_nice(int step) { setpriority(PRIO_PROCESS, 0, step); }
static void read_nice(char* text) { put(text, getpriority(PRIO_PROCESS, 0)); }

static void change_io(int step) { syscall(SYS_ioprio_set, 1, 0, 2 << 13 | step); }
static void read_io(char* text) { put(text, syscall(SYS_ioprio_get, 1, 0)); }

static void change_slack(int step) { prctl(PR_SET_TIMERSLACK, 1000L * step); }
static void read_slack(char* text) { put(text, prctl(PR_GET_TIMERSLACK)); }

static void change_broken(int step) {
    prctl(PR_MCE_KILL, PR_MCE_KILL_SET, step == 1 ? PR_MCE_KILL_EARLY : PR_MCE_KILL_LATE, 0, 0);
}
static void read_broken(char* text) { put(text, prctl(PR_MCE_KILL_GET, 0, 0, 0, 0)); }

static void change_name(int step) { prctl(PR_SET_NAME, step == 1 ? "row one" : "row two"); }
static void read_name(char* text) { prctl(PR_GET_NAME, text); }

enum { whole_seconds = 0x2000000, ask = -1 };  // of select(); others the launcher sets
static void change_domain(int step) {
    const unsigned long others = (unsigned)personality((unsigned)ask) & ~(unsigned)whole_seconds;
    personality(step == 1 ? others | whole_seconds : others);
}
static void read_domain(char* text) { put(text, personality((unsigned)ask) & whole_seconds); }

// Limits of memory stay far above what the program needs.
static void change_limits(int step) {
    const rlim_t core = step == 1 ? 4096 : 1024, files = step == 1 ? 200 : 100;
    const struct rlimit limits[] = {
        {core, core}, {files, files}, {3ul << 30, RLIM_INFINITY}, {step * 4096ul, step * 4096ul}};
    setrlimit(RLIMIT_CORE, &limits[0]);
    setrlimit(RLIMIT_NOFILE, &limits[1]);
    setrlimit(RLIMIT_AS, &limits[2]);
    prlimit(getpid(), RLIMIT_MSGQUEUE, &limits[3], NULL);
}
static void read_limits(char* text) {
    static const int which[] = {RLIMIT_CORE, RLIMIT_NOFILE, RLIMIT_AS, RLIMIT_MSGQUEUE};
    int at = 0;
    for (int i = 0; i < 4; ++i) {
        struct rlimit limit;
        getrlimit(which[i], &limit);
        at += snprintf(text + at, text_max - at, "%lu ", (unsigned long)limit.rlim_cur);
    }
    struct rlimit memory;
    getrlimit(RLIMIT_AS, &memory);
    if (memory.rlim_cur == RLIM_INFINITY) return;
    void* const large = malloc(4ul << 30);
    strcat(text, large == NULL ? "full" : "room");
    free(large);
}

static void change_timers(int step) {
    const struct itimerval often = {{0, 20000}, {0, 20000}}, never = {{0, 0}, {0, 0}};
    signal(SIGPROF, SIG_IGN);
    setitimer(ITIMER_PROF, step == 1 ? &often : &never, NULL);
}
static void read_timers(char* text) {
    struct itimerval timer;
    getitimer(ITIMER_PROF, &timer);
    put(text, timer.it_interval.tv_usec);
}

static void change_filling(int step) { mallopt(M_PERTURB, step == 1 ? 0x21 : 0x42); }
static void read_filling(char* text) {
    unsigned char* volatile const kept = malloc(5000);  // read before it is written
    const unsigned char* const block = kept;
    put(text, block[4000] == (0x21 ^ 0xff) ? 1 : block[4000] == (0x42 ^ 0xff) ? 2 : 0);
    free((void*)block);
}

// What all threads draw, whoever draws which.
static void change_random(int step) { srand((unsigned)step); }
static void read_random(char* text) {
    static long sum;
    if (omp_get_thread_num() == 0) sum = 0;
#pragma omp barrier
#pragma omp critical
    sum += rand() % 1000 + random() % 1000;
#pragma omp barrier
    put(text, sum);
}
static void change_random_48(int step) { srand48(step); }
static void read_random_48(char* text) {
    static long sum;
    if (omp_get_thread_num() == 0) sum = 0;
#pragma omp barrier
#pragma omp critical
    sum += lrand48() % 1000 + (long)(1e6 * drand48()) + mrand48() % 1000;
#pragma omp barrier
    put(text, sum);
}

static void change_dumps(int step) { prctl(PR_SET_DUMPABLE, step == 1 ? 0 : 1); }
static void read_dumps(char* text) { put(text, prctl(PR_GET_DUMPABLE)); }
static void change_orphans(int step) { prctl(PR_SET_CHILD_SUBREAPER, step == 1); }
static void read_orphans(char* text) {
    int is = 0;
    prctl(PR_GET_CHILD_SUBREAPER, &is);
    put(text, is);
}
static void change_pages(int step) { prctl(PR_SET_THP_DISABLE, step == 1, 0, 0, 0); }
static void read_pages(char* text) { put(text, prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0)); }

static const struct Row {
    const char* name;  // as in src/abi/libc/process/attribute_table.cpp
    Change* change;
    Read* read;
} rows[] = {
    {"the working directory", change_directory, read_directory},
    {"the umask", change_umask, read_umask},
    {"the locale", change_locale, read_locale},
    {"the environment", change_environment, read_environment},
    {"the actions of signals", change_action, read_action},
    {"the time zone", change_zone, read_zone},
    {"the resource limits", change_limits, read_limits},
    {"the timers of processor time", change_timers, read_timers},
    {"the filling of new blocks", change_filling, read_filling},
    {"the sequence of rand()", change_random, read_random},
    {"the sequence of drand48()", change_random_48, read_random_48},
    {"whether it dumps core", change_dumps, read_dumps},
    {"whether orphans become its children", change_orphans, read_orphans},
    {"whether it has huge pages", change_pages, read_pages},
    {"the signal mask", change_mask, read_mask},
    {"rounding, traps and flush-to-zero", change_rounding, read_rounding},
    {"the processors it may use", change_processors, read_processors},
    {"the memory policy", change_memory_policy, read_memory_policy},
    {"the scheduling policy", change_scheduling, read_scheduling},
    {"the nice value", change_nice, read_nice},
    {"the I/O priority", change_io, read_io},
    {"the timer slack", change_slack, read_slack},
    {"the treatment of broken memory", change_broken, read_broken},
    {"the execution domain", change_domain, read_domain},
    {"the thread's name", change_name, read_name},
};

static char found[threads][text_max];

static void region(const struct Row* row, int size, int step) {
    memset(found, 0, sizeof found);
#pragma omp parallel num_threads(size)
    row->read(found[omp_get_thread_num()]);
    printf("%s, %d:", row->name, step);
    for (int i = 0; i < size; ++i) printf(" %s", strcmp(found[i], found[0]) == 0 ? "as" : "not");
    printf(" main: %s\n", found[0]);
}

int main(void) {
    setbuf(stdout, NULL);
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        region(&rows[i], threads, 0);
        region(&rows[i], 2, 0);
        for (int step = 1; step <= 2; ++step) {
            rows[i].change(step);
            region(&rows[i], threads, step);
            region(&rows[i], 2, step);
        }
    }
    return 0;
}
