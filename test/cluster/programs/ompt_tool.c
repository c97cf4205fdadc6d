// SPDX-License-Identifier: BSD-3-Clause
// A first-party tool that believes nothing: what begins must end on its thread, in the order of a
// stack; what is told of must have been told of before; queries must agree with callbacks. At the
// end it writes, to the file $OMPT_TOOL_OUT with the process's id behind it, how often it was
// called, the numbers it has given to regions and tasks, and a line "fault ..." for what was wrong.
#define _GNU_SOURCE
#include <omp-tools.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { events_max = 40, depth_max = 64, ids_max = 1 << 18, faults_max = 20, targets_max = 16 };

static ompt_get_unique_id_t unique_id;
static ompt_get_thread_data_t thread_data;
static ompt_get_parallel_info_t parallel_info;
static ompt_get_task_info_t task_info;
static ompt_get_state_t state;
static ompt_enumerate_states_t enumerate_states;
static ompt_enumerate_mutex_impls_t enumerate_impls;
static ompt_get_num_procs_t num_procs;
static ompt_get_num_places_t num_places;
static ompt_get_place_num_t place_num;
static ompt_get_proc_id_t proc_id;
static ompt_get_num_devices_t num_devices;
static ompt_get_callback_t get_callback;

static atomic_ulong heard[events_max][4];  // by event, and scope where it has one
static atomic_ulong threads_alive, tasks_created, tasks_done, executed, codes;
static atomic_ulong targets[targets_max];  // by kind, ended
static atomic_int faults;
static char fault_text[faults_max][200];
static unsigned long ids[ids_max];
static atomic_uint id_count;

struct open_region {
    int event, kind;
    unsigned long task;
};
static _Thread_local struct open_region stack[depth_max];
static _Thread_local int depth;
static _Thread_local unsigned long current_task;
static _Thread_local int known_thread;

static void fault(const char* format, ...) {
    const int at = atomic_fetch_add(&faults, 1);
    if (at >= faults_max) return;
    va_list list;
    va_start(list, format);
    vsnprintf(fault_text[at], sizeof fault_text[at], format, list);
    va_end(list);
}

static unsigned long new_id(void) {
    const unsigned long id = unique_id();
    const unsigned at = atomic_fetch_add(&id_count, 1);
    if (at < ids_max) ids[at] = id;
    return id;
}

static void enter(int event, int scope) {
    atomic_fetch_add(&heard[event][scope], 1);
    if (!known_thread && event != ompt_callback_thread_begin) {
        fault("event %d on a thread that has not begun", event);
        known_thread = 1;
    }
    ompt_data_t* const own = thread_data();
    if (known_thread && (own == NULL || own->value == 0)) fault("event %d: no thread data", event);
    int current = ompt_state_undefined, next, found = 0;
    const char* name;
    const int now = state(NULL);
    while (enumerate_states(current, &next, &name) && !found) found = (current = next) == now;
    if (!found) fault("event %d: state 0x%x is not enumerated", event, now);
}

static void push(int event, int kind, unsigned long task) {
    if (depth == depth_max) return fault("event %d: too deep", event);
    stack[depth++] = (struct open_region){event, kind, task};
}
static void pop(int event, int kind, unsigned long task) {
    if (depth == 0) return fault("event %d kind %d ends, nothing is open", event, kind);
    const struct open_region top = stack[--depth];
    if (top.event != event || top.kind != kind || top.task != task)
        fault("event %d kind %d of task %lx ends, open is %d kind %d of task %lx", event, kind,
              task, top.event, top.kind, top.task);
}
static void scoped(int event, int kind, int scope, ompt_data_t* parallel, ompt_data_t* task) {
    enter(event, scope);
    if (task == NULL || task->value == 0) return fault("event %d: an unknown task", event);
    if (task->value != current_task)
        fault("event %d of task %lx, the thread executes %lx", event, task->value, current_task);
    if (scope == ompt_scope_begin) {
        if (parallel == NULL || parallel->value == 0) fault("event %d: an unknown region", event);
        push(event, kind, task->value);
    } else {
        pop(event, kind, task->value);
    }
}

static void on_thread_begin(ompt_thread_t kind, ompt_data_t* data) {
    if (known_thread) fault("a thread begins twice");
    known_thread = 1;
    data->value = new_id();
    atomic_fetch_add(&threads_alive, 1);
    enter(ompt_callback_thread_begin, 0);
    if (kind < ompt_thread_initial || kind > ompt_thread_other) fault("thread kind %d", kind);
}
static void on_thread_end(ompt_data_t* data) {
    enter(ompt_callback_thread_end, 0);
    if (data->value == 0) fault("an unknown thread ends");
    if (depth != 0) fault("a thread ends with %d open, the last event %d", depth, stack[0].event);
    atomic_fetch_sub(&threads_alive, 1);
}

static void on_parallel_begin(ompt_data_t* task, const ompt_frame_t* frame, ompt_data_t* parallel,
                              unsigned requested, int flags, const void* code) {
    enter(ompt_callback_parallel_begin, 0);
    if (task->value == 0 || task->value != current_task) fault("a region met by an unknown task");
    if (parallel->value != 0 || requested == 0 || frame == NULL) fault("a region is not new");
    if ((flags & (ompt_parallel_team | ompt_parallel_league)) == 0)
        fault("a region of flags %x", flags);
    parallel->value = new_id();
    if (code != NULL) atomic_fetch_add(&codes, 1);
    push(ompt_callback_parallel_begin, 0, parallel->value);
}
static void on_parallel_end(ompt_data_t* parallel, ompt_data_t* task, int flags, const void* code) {
    (void)flags, (void)code;
    enter(ompt_callback_parallel_end, 0);
    if (task->value != current_task) fault("a region ends in another task");
    pop(ompt_callback_parallel_begin, 0, parallel->value);
    parallel->value = 0;
}

static void on_implicit_task(ompt_scope_endpoint_t scope, ompt_data_t* parallel, ompt_data_t* task,
                             unsigned size, unsigned index, int flags) {
    static _Thread_local unsigned long outer[depth_max];
    static _Thread_local int level;
    if (scope == ompt_scope_begin) {
        task->value = new_id();
        outer[level++] = current_task;
        current_task = task->value;
        enter(ompt_callback_implicit_task, scope);
        if (flags == ompt_task_implicit && (parallel == NULL || parallel->value == 0))
            fault("an implicit task of a region nobody has told of");
        if (flags == ompt_task_implicit && index >= size) fault("thread %u of %u", index, size);
        ompt_data_t *told = NULL, *region = NULL;
        ompt_frame_t* frame;
        int told_flags = 0, number = -1, told_size = -1;
        if (task_info(0, &told_flags, &told, &frame, &region, &number) != 2 || told != task ||
            told_flags != flags || region != parallel)
            fault("ompt_get_task_info differs from the callback");
        if (flags == ompt_task_implicit && number != (int)index) fault("thread number %d", number);
        if (parallel_info(0, &region, &told_size) != 2 || region != parallel ||
            told_size != (int)size)
            fault("ompt_get_parallel_info differs: size %d, %u", told_size, size);
        push(ompt_callback_implicit_task, flags, task->value);
    } else {
        enter(ompt_callback_implicit_task, scope);
        if (parallel != NULL) fault("the end of an implicit task names its region");
        pop(ompt_callback_implicit_task, flags, task->value);
        if (level > 0) current_task = outer[--level];
    }
}

static void on_task_create(ompt_data_t* from, const ompt_frame_t* frame, ompt_data_t* task,
                           int flags, int has_dependences, const void* code) {
    (void)frame, (void)has_dependences;
    enter(ompt_callback_task_create, 0);
    if (from->value != current_task) fault("task made by %lx, not %lx", from->value, current_task);
    if (task->value != 0) fault("a task is not new");
    if ((flags & (ompt_task_explicit | ompt_task_taskwait)) == 0) fault("task of flags %x", flags);
    if (code != NULL) atomic_fetch_add(&codes, 1);
    task->value = new_id();
    atomic_fetch_add(&tasks_created, 1);
}
static void on_dependences(ompt_data_t* task, const ompt_dependence_t* list, int count) {
    enter(ompt_callback_dependences, 0);
    if (task->value == 0 || count <= 0) fault("dependences of an unknown task");
    for (int i = 0; i < count; ++i)
        if (list[i].dependence_type < 1 || list[i].dependence_type > 7)
            fault("a dependence's kind");
}
/// Before the second begins; the first may have ended meanwhile.
static void on_task_dependence(ompt_data_t* first, ompt_data_t* second) {
    enter(ompt_callback_task_dependence, 0);
    if (first == second || second->value == 0) fault("a dependence of an unknown task");
    if (second->value == current_task) fault("the task that waits is executed");
}
static void on_target(ompt_target_t kind, ompt_scope_endpoint_t scope, int device,
                      ompt_data_t* task, ompt_data_t* target_task, ompt_data_t* target,
                      const void* code) {
    if (kind >= targets_max || task == NULL || device != 0)
        return fault("target kind %d, device %d", kind, device);
    const int is_region = kind == ompt_target || kind == ompt_target_nowait;
    const unsigned long executed_task = target_task != NULL ? target_task->value : task->value;
    if (task->value == 0 || executed_task != current_task) fault("a target of an unknown task");
    if (is_region && target_task == NULL) fault("a target region without a task");
    if (code == NULL) fault("a target without its code");
    if (scope == ompt_scope_begin) {
        if (target->value != 0) fault("a target is not new");
        target->value = new_id();
        enter(ompt_callback_target_emi, scope);
        push(ompt_callback_target_emi, kind, target->value);
    } else {
        enter(ompt_callback_target_emi, scope);
        pop(ompt_callback_target_emi, kind, target->value);
        atomic_fetch_add(&targets[kind], 1);
    }
}
static void on_error(ompt_severity_t severity, const char* message, size_t length,
                     const void* code) {
    enter(ompt_callback_error, 0);
    if (severity != ompt_warning || length != 4 || memcmp(message, "mild", 4) != 0 || code == NULL)
        fault("error of severity %d, %zu bytes", severity, length);
}
static void on_task_schedule(ompt_data_t* prior, ompt_task_status_t status, ompt_data_t* next) {
    enter(ompt_callback_task_schedule, 0);
    if (prior->value == 0) fault("a task nobody has told of, status %d", status);
    const int ends = status == ompt_task_complete || status == ompt_task_cancel ||
                     status == ompt_task_late_fulfill || status == ompt_taskwait_complete;
    if (ends) {
        atomic_fetch_add(&tasks_done, 1);
    }
    // A detached task's end comes later, its execution is over.
    if (status == ompt_task_complete || status == ompt_task_detach) atomic_fetch_add(&executed, 1);
    if (status != ompt_task_late_fulfill && status != ompt_taskwait_complete) {
        if (prior->value != current_task)
            fault("task %lx leaves, the thread executes %lx", prior->value, current_task);
        if (next == NULL || next->value == 0) return fault("an unknown task is scheduled");
        current_task = next->value;
    }
    if (ends) prior->value = 0;
}

static void on_sync(ompt_sync_region_t kind, ompt_scope_endpoint_t scope, ompt_data_t* parallel,
                    ompt_data_t* task, const void* code) {
    if (code != NULL) atomic_fetch_add(&codes, 1);
    scoped(ompt_callback_sync_region, kind, scope, parallel, task);
}
static void on_sync_wait(ompt_sync_region_t kind, ompt_scope_endpoint_t scope,
                         ompt_data_t* parallel, ompt_data_t* task, const void* code) {
    (void)code;
    scoped(ompt_callback_sync_region_wait, kind, scope, parallel, task);
}
static void on_reduction(ompt_sync_region_t kind, ompt_scope_endpoint_t scope,
                         ompt_data_t* parallel, ompt_data_t* task, const void* code) {
    (void)code;
    scoped(ompt_callback_reduction, kind, scope, parallel, task);
}
static void on_work(ompt_work_t kind, ompt_scope_endpoint_t scope, ompt_data_t* parallel,
                    ompt_data_t* task, uint64_t count, const void* code) {
    (void)count, (void)code;
    scoped(ompt_callback_work, kind, scope, parallel, task);
}
static void on_masked(ompt_scope_endpoint_t scope, ompt_data_t* parallel, ompt_data_t* task,
                      const void* code) {
    (void)code;
    scoped(ompt_callback_masked, 0, scope, parallel, task);
}
static void on_dispatch(ompt_data_t* parallel, ompt_data_t* task, ompt_dispatch_t kind,
                        ompt_data_t instance) {
    (void)kind, (void)instance;
    enter(ompt_callback_dispatch, 0);
    if (task->value != current_task || parallel->value == 0) fault("a chunk of nobody's");
}

static void on_acquire(ompt_mutex_t kind, unsigned hint, unsigned impl, ompt_wait_id_t id,
                       const void* code) {
    (void)kind, (void)hint, (void)impl, (void)code;
    enter(ompt_callback_mutex_acquire, 0);
    ompt_wait_id_t waits_for = 0;
    const int now = state(&waits_for);
    if (waits_for != id) fault("state 0x%x waits for %lx, not %lx", now, waits_for, id);
}
static void on_acquired(ompt_mutex_t kind, ompt_wait_id_t id, const void* code) {
    (void)kind, (void)id, (void)code;
    enter(ompt_callback_mutex_acquired, 0);
}
static void on_released(ompt_mutex_t kind, ompt_wait_id_t id, const void* code) {
    (void)kind, (void)id, (void)code;
    enter(ompt_callback_mutex_released, 0);
}
static void on_lock_init(ompt_mutex_t kind, unsigned hint, unsigned impl, ompt_wait_id_t id,
                         const void* code) {
    (void)kind, (void)hint, (void)impl, (void)id, (void)code;
    enter(ompt_callback_lock_init, 0);
}
static void on_lock_destroy(ompt_mutex_t kind, ompt_wait_id_t id, const void* code) {
    (void)kind, (void)id, (void)code;
    enter(ompt_callback_lock_destroy, 0);
}
static void on_nest_lock(ompt_scope_endpoint_t scope, ompt_wait_id_t id, const void* code) {
    (void)id, (void)code;
    enter(ompt_callback_nest_lock, scope);
}
static void on_flush(ompt_data_t* thread, const void* code) {
    (void)thread, (void)code;
    enter(ompt_callback_flush, 0);
}
static void on_cancel(ompt_data_t* task, int flags, const void* code) {
    (void)task, (void)code;
    enter(ompt_callback_cancel, 0);
    if ((flags & (ompt_cancel_activated | ompt_cancel_detected)) == 0) fault("cancel %x", flags);
}
static int on_control(uint64_t command, uint64_t modifier, void* argument, const void* code) {
    (void)argument, (void)code;
    enter(ompt_callback_control_tool, 0);
    return (int)(command * 10 + modifier);
}

static int initialize(ompt_function_lookup_t lookup, int device, ompt_data_t* data) {
    (void)device;
    const char* const declines = getenv("OMPT_TOOL_DECLINES");
    if (declines != NULL) return 0;
    data->value = 4711;
#define FIND(variable, name) variable = (name##_t)lookup(#name)
    FIND(unique_id, ompt_get_unique_id);
    FIND(thread_data, ompt_get_thread_data);
    FIND(parallel_info, ompt_get_parallel_info);
    FIND(task_info, ompt_get_task_info);
    FIND(state, ompt_get_state);
    FIND(enumerate_states, ompt_enumerate_states);
    FIND(enumerate_impls, ompt_enumerate_mutex_impls);
    FIND(num_procs, ompt_get_num_procs);
    FIND(num_places, ompt_get_num_places);
    FIND(place_num, ompt_get_place_num);
    FIND(proc_id, ompt_get_proc_id);
    FIND(num_devices, ompt_get_num_devices);
    FIND(get_callback, ompt_get_callback);
    const ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
    if (lookup("ompt_no_such_function") != NULL) fault("lookup finds what there is not");
#define HEAR(event, function)                                                               \
    do {                                                                                    \
        ompt_callback_t now = NULL;                                                         \
        if (set(ompt_callback_##event, (ompt_callback_t)function) != ompt_set_always)       \
            fault("ompt_set_callback of " #event);                                          \
        if (!get_callback(ompt_callback_##event, &now) || now != (ompt_callback_t)function) \
            fault("ompt_get_callback of " #event);                                          \
    } while (0)
    HEAR(thread_begin, on_thread_begin);
    HEAR(thread_end, on_thread_end);
    HEAR(parallel_begin, on_parallel_begin);
    HEAR(parallel_end, on_parallel_end);
    HEAR(implicit_task, on_implicit_task);
    HEAR(task_create, on_task_create);
    HEAR(task_schedule, on_task_schedule);
    HEAR(dependences, on_dependences);
    HEAR(sync_region, on_sync);
    HEAR(sync_region_wait, on_sync_wait);
    HEAR(reduction, on_reduction);
    HEAR(work, on_work);
    HEAR(masked, on_masked);
    HEAR(dispatch, on_dispatch);
    HEAR(mutex_acquire, on_acquire);
    HEAR(mutex_acquired, on_acquired);
    HEAR(mutex_released, on_released);
    HEAR(lock_init, on_lock_init);
    HEAR(lock_destroy, on_lock_destroy);
    HEAR(nest_lock, on_nest_lock);
    HEAR(flush, on_flush);
    HEAR(cancel, on_cancel);
    HEAR(control_tool, on_control);
    HEAR(task_dependence, on_task_dependence);
    HEAR(target_emi, on_target);
    HEAR(error, on_error);
    // There is no device, and nothing that is mapped.
    HEAR(device_initialize, on_flush);
    HEAR(target_submit_emi, on_flush);
    if (set(ompt_callback_target_map_emi, (ompt_callback_t)on_flush) != ompt_set_never)
        fault("maps are promised");
    int next = 0;
    const char* name = NULL;
    if (!enumerate_impls(0, &next, &name) || name == NULL) fault("no mutex is implemented");
    if (num_procs() < 1 || proc_id() < 0 || num_devices() != 0 || num_places() < 0 ||
        place_num() < -1)
        fault("%d processors, on %d, %d devices", num_procs(), proc_id(), num_devices());
    return 1;
}

static void finalize(ompt_data_t* data) {
    if (data->value != 4711) fault("the tool's data are lost");
    const char* const out = getenv("OMPT_TOOL_OUT");
    char name[4096];
    snprintf(name, sizeof name, "%s.%d", out != NULL ? out : "/dev/null", getpid());
    FILE* const file = fopen(out != NULL ? name : "/dev/null", "w");
    if (file == NULL) return perror(name);
    for (int event = 0; event < events_max; ++event)
        fprintf(file, "event %d %lu %lu %lu\n", event, heard[event][0], heard[event][1],
                heard[event][2]);
    fprintf(file, "threads_alive %lu\ntasks %lu %lu %lu\ncodes %lu\n", threads_alive, tasks_created,
            tasks_done, executed, codes);
    for (int kind = 0; kind < targets_max; ++kind)
        if (targets[kind] != 0) fprintf(file, "target %d %lu\n", kind, targets[kind]);
    for (unsigned i = 0; i < id_count && i < ids_max; ++i) fprintf(file, "id %lx\n", ids[i]);
    for (int i = 0; i < faults && i < faults_max; ++i) fprintf(file, "fault %s\n", fault_text[i]);
    fprintf(file, "end\n");
    fclose(file);
}

ompt_start_tool_result_t* ompt_start_tool(unsigned version, const char* runtime) {
    static ompt_start_tool_result_t result = {initialize, finalize, {0}};
    if (version < 201811 || runtime == NULL) fault("version %u", version);
    return getenv("OMPT_TOOL_NULL") != NULL ? NULL : &result;
}
