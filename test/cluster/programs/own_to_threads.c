// SPDX-License-Identifier: BSD-3-Clause
// What a thread may keep from one region to the next, one kind a build (-DKIND=tls): the thread of
// the same number finds it again, wherever its regions run. The table of
// docs/decisions/small-regions-stay.md says how.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <omp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <xmmintrin.h>

enum { rounds = 30, most = 64 };

// keep() is called once by each thread, kept() by each in every region behind; it returns whether
// what was kept is there.
#define IS_(kind) KIND_##kind
#define IS(kind) IS_(kind)
#define KIND_tls 1
#define KIND_key 2
#define KIND_gettid 3
#define KIND_syscall 4
#define KIND_mask 5
#define KIND_stack 6
#define KIND_name 7
#define KIND_cancelling 8
#define KIND_locale 9
#define KIND_rounding 10
#define KIND_context 11
#define KIND_file_lock 12
#define KIND_sse 13
#define KIND_sse_of_one 14
#define KIND_x87 15
#define KIND_recursive 16
#define KIND_checked 17
#define KIND_mutex 18
#define KIND_rwlock 19
#define KIND_omp_lock 20
#define KIND_number 21
#define KIND_descriptor 22
#define KIND_stream 23
#define KIND_directory 24
#define KIND_events 25
#define KIND_sockets 26
#define KIND_mapping 27
#define KIND_heap 28
#define KIND_thread 29
#define KIND_semaphore 30
#define KIND_random 31
#define KIND_icv 32
#define KIND_child 33
#define KIND_library 34
#define KIND_address 35
#define KIND_self 36
#define KIND_stack_bounds 37

#if IS(KIND) == KIND_tls
static __thread int own;
static void keep(int me) { own = me + 1; }
static int kept(int me) { return own == me + 1; }
#elif IS(KIND) == KIND_key
static pthread_key_t key;
static void before(void) { pthread_key_create(&key, NULL); }
static void keep(int me) { pthread_setspecific(key, (void*)(long)(me + 1)); }
static int kept(int me) { return (long)pthread_getspecific(key) == me + 1; }
#elif IS(KIND) == KIND_gettid
static pid_t own[most];
pid_t gettid(void);
static void keep(int me) { own[me] = gettid(); }
static int kept(int me) { return own[me] == gettid(); }
#elif IS(KIND) == KIND_syscall
static long own[most];
static void keep(int me) { own[me] = syscall(SYS_gettid); }
static int kept(int me) { return own[me] == syscall(SYS_gettid); }
#elif IS(KIND) == KIND_self
static pthread_t own[most];
static void keep(int me) { own[me] = pthread_self(); }
static int kept(int me) { return pthread_equal(own[me], pthread_self()); }
#elif IS(KIND) == KIND_stack_bounds
static void* own[most];
static void* stack_of_this_thread(void) {
    pthread_attr_t attributes;
    void* at;
    size_t bytes;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &at, &bytes);
    pthread_attr_destroy(&attributes);
    return at;
}
static void keep(int me) { own[me] = stack_of_this_thread(); }
static int kept(int me) { return own[me] == stack_of_this_thread(); }
#elif IS(KIND) == KIND_library
long* own_in_library(void);
static void keep(int me) { *own_in_library() = me + 1; }
static int kept(int me) { return *own_in_library() == me + 1; }
#elif IS(KIND) == KIND_address
// Others add up what each thread counts; nobody has written anything when its place is told.
long* own_in_library(void);
static long* own[most];
static long counted[most];
static void keep(int me) { own[me] = own_in_library(); }
static int kept(int me) {
    ++*own_in_library();
    return own[me] == own_in_library() && *own[me] == ++counted[me];
}
#elif IS(KIND) == KIND_mask
static void keep(int me) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + me % 8);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}
static int kept(int me) {
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    return sigismember(&set, SIGRTMIN + me % 8) && !sigismember(&set, SIGRTMIN + (me + 1) % 8);
}
#elif IS(KIND) == KIND_stack
static char stacks[most][65536];
static void keep(int me) {
    const stack_t stack = {.ss_sp = stacks[me], .ss_size = sizeof stacks[me]};
    sigaltstack(&stack, NULL);
}
static int kept(int me) {
    stack_t stack;
    sigaltstack(NULL, &stack);
    return stack.ss_sp == stacks[me];
}
#elif IS(KIND) == KIND_name
int pthread_setname_np(pthread_t, const char*);
int pthread_getname_np(pthread_t, char*, size_t);
static void keep(int me) {
    char name[16];
    snprintf(name, sizeof name, "mine %d", me);
    if (me != 0) pthread_setname_np(pthread_self(), name);
}
static int kept(int me) {
    char name[16], now[16] = "";
    snprintf(name, sizeof name, "mine %d", me);
    pthread_getname_np(pthread_self(), now, sizeof now);
    return me == 0 || strcmp(name, now) == 0;
}
#elif IS(KIND) == KIND_cancelling
static void keep(int me) {
    int old;
    pthread_setcancelstate(me % 2 ? PTHREAD_CANCEL_DISABLE : PTHREAD_CANCEL_ENABLE, &old);
}
static int kept(int me) {
    int old, older;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    pthread_setcancelstate(old, &older);
    return old == (me % 2 ? PTHREAD_CANCEL_DISABLE : PTHREAD_CANCEL_ENABLE);
}
#elif IS(KIND) == KIND_locale
static locale_t own[most];
static void keep(int me) {
    own[me] = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    uselocale(own[me]);
}
static int kept(int me) { return uselocale((locale_t)0) == own[me]; }
#elif IS(KIND) == KIND_rounding
static void keep(int me) { fesetround(me % 2 ? FE_UPWARD : FE_DOWNWARD); }
static int kept(int me) { return fegetround() == (me % 2 ? FE_UPWARD : FE_DOWNWARD); }
#elif IS(KIND) == KIND_context
// A fiber for each thread, which goes on where it was.
static ucontext_t fiber[most], caller[most];
static char stacks[most][65536];
static int steps[most];
static void body(int me) {
    for (;;) {
        ++steps[me];
        swapcontext(&fiber[me], &caller[me]);
    }
}
static void keep(int me) {
    getcontext(&fiber[me]);
    fiber[me].uc_stack = (stack_t){.ss_sp = stacks[me], .ss_size = sizeof stacks[me]};
    makecontext(&fiber[me], (void (*)(void))body, 1, me);
    swapcontext(&caller[me], &fiber[me]);
}
static int kept(int me) {
    const int before = steps[me];
    swapcontext(&caller[me], &fiber[me]);
    return steps[me] == before + 1;
}
#elif IS(KIND) == KIND_file_lock
static FILE* own[most];
static void keep(int me) {
    own[me] = tmpfile();
    flockfile(own[me]);
}
static int kept(int me) { return fprintf(own[me], "x") == 1; }
#elif IS(KIND) == KIND_sse
static void keep(int me) { _mm_setcsr(_mm_getcsr() | 0x8000 | (me % 2 ? 0x2000 : 0)); }
static int kept(int me) { return (_mm_getcsr() & 0xe000) == (me % 2 ? 0xa000u : 0x8000u); }
#elif IS(KIND) == KIND_sse_of_one
static void keep(int me) {
    if (me == omp_get_num_threads() - 1) _mm_setcsr(_mm_getcsr() | 0x8000);
}
static int kept(int me) {
    return ((_mm_getcsr() & 0x8000) != 0) == (me == omp_get_num_threads() - 1);
}
#elif IS(KIND) == KIND_x87
static unsigned short word(void) {
    unsigned short now;
    __asm__ volatile("fnstcw %0" : "=m"(now));
    return now;
}
static void keep(int me) {
    const unsigned short wanted = word() & ~0x300;
    if (me != 0) __asm__ volatile("fldcw %0" : : "m"(wanted));
}
static int kept(int me) { return ((word() & 0x300) == 0) == (me != 0); }
#elif IS(KIND) == KIND_recursive || IS(KIND) == KIND_checked
// A thread may take again what it holds, or is told so.
static pthread_mutex_t own[most];
static int type =
    IS(KIND) == KIND_recursive ? PTHREAD_MUTEX_RECURSIVE_NP : PTHREAD_MUTEX_ERRORCHECK_NP;
static void before(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, type);
    for (int i = 0; i < most; ++i) pthread_mutex_init(&own[i], &attributes);
}
static void keep(int me) {
    if (me != 0) pthread_mutex_lock(&own[me]);
}
static int kept(int me) {
    if (me == 0) return 1;
    const int status = pthread_mutex_trylock(&own[me]);
    if (type != PTHREAD_MUTEX_RECURSIVE_NP) return pthread_mutex_lock(&own[me]) == EDEADLK;
    return status == 0 && pthread_mutex_unlock(&own[me]) == 0;
}
#elif IS(KIND) == KIND_mutex
static pthread_mutex_t own[most];
static void before(void) {
    for (int i = 0; i < most; ++i) pthread_mutex_init(&own[i], NULL);
}
static void keep(int me) { pthread_mutex_lock(&own[me]); }
static int kept(int me) {
    if (pthread_mutex_trylock(&own[me]) != EBUSY) return 0;
    return pthread_mutex_unlock(&own[me]) == 0 && pthread_mutex_trylock(&own[me]) == 0;
}
#elif IS(KIND) == KIND_rwlock
static pthread_rwlock_t own[most];
static void before(void) {
    for (int i = 0; i < most; ++i) pthread_rwlock_init(&own[i], NULL);
}
static void keep(int me) { pthread_rwlock_wrlock(&own[me]); }
static int kept(int me) {
    if (pthread_rwlock_tryrdlock(&own[me]) != EBUSY) return 0;
    return pthread_rwlock_unlock(&own[me]) == 0 && pthread_rwlock_trywrlock(&own[me]) == 0;
}
#elif IS(KIND) == KIND_omp_lock
static omp_lock_t own[most];
static void before(void) {
    for (int i = 0; i < most; ++i) omp_init_lock(&own[i]);
}
static void keep(int me) { omp_set_lock(&own[me]); }
static int kept(int me) {
    if (omp_test_lock(&own[me])) return 0;
    omp_unset_lock(&own[me]);
    return omp_test_lock(&own[me]);
}
#elif IS(KIND) == KIND_number
static long own[most];
static void keep(int me) { own[me] = me * 7; }
static int kept(int me) { return own[me]++ % 1000000 >= me * 7; }
#elif IS(KIND) == KIND_descriptor
static int own[most], written[most];
static void keep(int me) {
    char name[] = "/tmp/own_to_threads_XXXXXX";
    own[me] = mkstemp(name);
    unlink(name);
}
static int kept(int me) {
    const off_t at = lseek(own[me], 0, SEEK_CUR);
    return at == written[me]++ && write(own[me], "x", 1) == 1;
}
#elif IS(KIND) == KIND_stream
static FILE* own[most];
static int written[most];
static void keep(int me) { own[me] = tmpfile(); }
static int kept(int me) {
    return fputs("ab", own[me]) >= 0 && ftell(own[me]) == (written[me] += 2);
}
#elif IS(KIND) == KIND_directory
static DIR* own[most];
static void keep(int me) { own[me] = opendir("/"); }
static int kept(int me) {
    if (readdir(own[me]) == NULL) rewinddir(own[me]);
    return 1;
}
#elif IS(KIND) == KIND_events
static int own[most];
static void keep(int me) { own[me] = eventfd(me + 1, 0); }
static int kept(int me) {
    unsigned long value = 0;
    if (read(own[me], &value, sizeof value) != sizeof value || value != me + 1ul) return 0;
    return write(own[me], &value, sizeof value) == sizeof value;
}
#elif IS(KIND) == KIND_sockets
static int own[most][2];
static void keep(int me) { socketpair(AF_UNIX, SOCK_STREAM, 0, own[me]); }
static int kept(int me) {
    char got = 0, given = (char)('a' + me % 20);
    return write(own[me][0], &given, 1) == 1 && read(own[me][1], &got, 1) == 1 && got == given;
}
#elif IS(KIND) == KIND_mapping
static long* own[most];
static void keep(int me) {
    own[me] = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    own[me][1000] = me;
}
static int kept(int me) {
    own[me][me + 1] += me;
    return mprotect(own[me], 16384, PROT_READ | PROT_WRITE) == 0 && own[me][1000] == me;
}
#elif IS(KIND) == KIND_heap
static char* own[most];
static void keep(int me) { own[me] = strdup("mine"); }
static int kept(int me) {
    char* const before = own[me];
    own[me] = strdup(before);
    free(before);
    return strcmp(own[me], "mine") == 0;
}
#elif IS(KIND) == KIND_thread
// It makes a thread, which the next region joins.
static pthread_t own[most];
static void* body(void* word) { return word; }
static void keep(int me) { pthread_create(&own[me], NULL, body, (void*)(long)(me + 1)); }
static int kept(int me) {
    void* got = NULL;
    const int joined = pthread_join(own[me], &got) == 0 && (long)got == me + 1;
    keep(me);
    return joined;
}
static void behind(int threads) {
#pragma omp parallel num_threads(threads)
    pthread_join(own[omp_get_thread_num()], NULL);
}
#elif IS(KIND) == KIND_semaphore
static sem_t own[most];
static void before(void) {
    for (int i = 0; i < most; ++i) sem_init(&own[i], 0, 0);
}
static void keep(int me) { sem_post(&own[me]); }
static int kept(int me) {
    return sem_trywait(&own[me]) == 0 && sem_trywait(&own[me]) != 0 && sem_post(&own[me]) == 0;
}
#elif IS(KIND) == KIND_random
// One thread alone draws.
static int own[rounds + 1], next;
static void before(void) {
    srand(7);
    for (int i = 0; i < rounds; ++i) own[i] = rand();
}
static void keep(int me) {
    if (me == omp_get_num_threads() - 1) srand(7);
}
static int kept(int me) { return me != omp_get_num_threads() - 1 || rand() == own[next++]; }
#elif IS(KIND) == KIND_icv
static void keep(int me) { omp_set_num_threads(me + 1); }
static int kept(int me) {
    const int got = omp_get_max_threads();
    omp_set_num_threads(me + 1);
    return got == omp_get_num_threads();
}
#elif IS(KIND) == KIND_child
extern char** environ;
static pid_t own[most];
static void keep(int me) {
    char* const words[] = {"sh", "-c", "exit 5", NULL};
    if (posix_spawn(&own[me], "/bin/sh", NULL, NULL, words, environ) != 0) own[me] = -1;
}
static int kept(int me) {
    int status = 0;
    const int ended = waitpid(own[me], &status, 0) == own[me] && WEXITSTATUS(status) == 5;
    keep(me);
    return ended;
}
static void behind(int threads) { (void)threads; }
#endif

#define HAS_BEFORE                                                                     \
    (IS(KIND) == KIND_key || IS(KIND) == KIND_recursive || IS(KIND) == KIND_checked || \
     IS(KIND) == KIND_mutex || IS(KIND) == KIND_rwlock || IS(KIND) == KIND_omp_lock || \
     IS(KIND) == KIND_semaphore || IS(KIND) == KIND_random)

int main(int argc, char** argv) {
    int wrong = 0;
    const int threads = omp_get_max_threads();
#if HAS_BEFORE
    before();
#endif
    // Regions by which nothing is kept may move before; by their count the next is spread or not.
    const int plain = argc > 1 ? atoi(argv[1]) : 0;
    for (int round = 0; round < plain; ++round) {
#pragma omp parallel num_threads(threads) reduction(+ : wrong)
        wrong += omp_get_thread_num() >= threads;
    }
#pragma omp parallel num_threads(threads)
    keep(omp_get_thread_num());
    for (int round = 0; round < rounds; ++round) {
#pragma omp parallel num_threads(threads) reduction(+ : wrong)
        wrong += !kept(omp_get_thread_num());
    }
#if IS(KIND) == KIND_thread || IS(KIND) == KIND_child
    behind(threads);
#endif
    printf("%d\n", wrong);
    return wrong != 0;
}
