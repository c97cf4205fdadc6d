// SPDX-License-Identifier: BSD-3-Clause
// What C++ adds for clang's entry points: objects copied into tasks and destroyed behind them, in
// taskloops, in single and threadprivate; reductions of classes; exceptions inside a region;
// lambdas and iterators. Right for any number of threads.
#include <omp.h>

#include <atomic>
#include <cstdio>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

int wrong = 0;

void check(const char* what, bool right) {
    std::printf("%s %s\n", right ? "right" : "WRONG", what);
    if (!right) ++wrong;
}

std::atomic<long> alive{0};

struct Counted {
    long value = 0;
    std::string text = "a text that is longer than what a string holds in itself";
    Counted() { ++alive; }
    explicit Counted(long v) : value(v) { ++alive; }
    Counted(const Counted& other) : value(other.value), text(other.text) { ++alive; }
    Counted& operator=(const Counted&) = default;
    ~Counted() { --alive; }
    Counted& operator+=(const Counted& other) {
        value += other.value;
        return *this;
    }
};

#pragma omp declare reduction(added:Counted : omp_out += omp_in) initializer(omp_priv = Counted(0))

Counted shared_start(40);
thread_local Counted own_of_thread(7);
int kept = 3;
#pragma omp threadprivate(kept)

void tasks() {
    const long before = alive;
    long sum = 0;
    {
        Counted one(5);
#pragma omp parallel
#pragma omp single
        for (long i = 0; i < 60; i++) {
#pragma omp task firstprivate(one, i) shared(sum)
            {
                one.value += i;
                const long add = one.value + static_cast<long>(one.text.size());
#pragma omp atomic
                sum += add;
            }
#pragma omp task firstprivate(one) if (i % 2 == 0)
            one.text += "and more of it";
        }
        check("the creator's object", one.value == 5);
    }
    check("objects in tasks", sum == 60 * (5 + 56) + 1770);
    check("each is destroyed", alive == before);

    sum = 0;
    Counted last;
    {
        Counted one(2);
#pragma omp parallel
#pragma omp single
#pragma omp taskloop firstprivate(one) lastprivate(last) shared(sum) num_tasks(9)
        for (int i = 0; i < 90; i++) {
            last.value = one.value + i;
#pragma omp atomic
            sum += one.value;
        }
    }
    check("objects in taskloops", sum == 180 && last.value == 91);
}

void reductions(int threads) {
    const long before = alive;
    Counted sum(1);
    std::vector<int> all;
#pragma omp declare reduction(joined : std::vector<int> : omp_out.insert(omp_out.end(), omp_in.begin(), omp_in.end()))
#pragma omp parallel for reduction(added : sum) reduction(joined : all) schedule(dynamic, 5)
    for (int i = 0; i < 200; i++) {
        sum.value += i;
        all.push_back(i);
    }
    check("a reduction of a class", sum.value == 19901);
    check("a reduction of vectors",
          all.size() == 200 && std::accumulate(all.begin(), all.end(), 0) == 19900);
    Counted of_tasks(0);
#pragma omp parallel
#pragma omp single
#pragma omp taskgroup task_reduction(added : of_tasks)
    for (int i = 0; i < 40; i++)
#pragma omp task in_reduction(added : of_tasks) firstprivate(i)
        of_tasks.value += i;
    check("a task reduction of a class", of_tasks.value == 780 && threads > 0);
    // What is left are the two variables.
    check("its copies are destroyed", alive == before + 2);
}

void in_regions(int threads) {
    int caught = 0, same = 0;
    Counted given;
#pragma omp parallel private(given) reduction(+ : caught, same)
    {
        try {
            if (omp_get_thread_num() >= 0) throw std::runtime_error("inside");
        } catch (const std::exception& error) {
            caught += std::string(error.what()) == "inside";
        }
#pragma omp single copyprivate(given)
        given = Counted(99);
        same += given.value == 99 && own_of_thread.value == 7;
        kept += omp_get_thread_num();
    }
    check("exceptions", caught == threads);
    check("copyprivate of a class, objects of threads", same == threads);
    int right = 0;
#pragma omp parallel reduction(+ : right)
    right += kept == 3 + omp_get_thread_num();
    check("threadprivate stays", right == threads);

    std::vector<double> values(300, 0.5);
    double sum = 0;
    const auto twice = [](double x) { return 2 * x; };
#pragma omp parallel for reduction(+ : sum)
    for (auto at = values.begin(); at < values.end(); ++at) sum += twice(*at);
    check("iterators and lambdas", sum == 300);
    std::atomic<long> counted{0};
#pragma omp parallel for schedule(guided)
    for (long i = 0; i < 500; i++) counted += i;
    check("std::atomic", counted == 124750);
}

}  // namespace

int main() {
    int threads = 0;
#pragma omp parallel
#pragma omp master
    threads = omp_get_num_threads();
    tasks();
    reductions(threads);
    in_regions(threads);
    check("what was made before main", shared_start.value == 40);
    return wrong;
}
