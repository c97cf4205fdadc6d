// SPDX-License-Identifier: BSD-3-Clause
// The rows of openmp_rows.c as C++, and what only C++ has: objects that are copied for threads and
// tasks, iterators, templates, exceptions, methods, lambdas, references.
#include "openmp_rows.c"

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

std::atomic<long> alive{0}, bodies{0};

// Knows its own address, so that a copy made byte by byte is noticed.
class Counted {
public:
    explicit Counted(long number = 0) : number_(number), self_(this) { ++alive; }
    Counted(const Counted& other) : number_(other.value()), self_(this) { ++alive; }
    Counted& operator=(const Counted& other) {
        number_ = other.value();
        return *this;
    }
    ~Counted() { --alive; }
    long value() const { return self_ == this ? number_ : -1'000'000; }
    void add(long more) { number_ += more; }

private:
    long number_;
    const Counted* self_;
};

#pragma omp declare reduction(counted:Counted : omp_out.add(omp_in.value()))

void objects() {
    Counted first(3), last(0), sum(10);
#pragma omp parallel for firstprivate(first) lastprivate(last) reduction(counted : sum)
    for (int i = 0; i < count; ++i) {
        sum.add(first.value());
        last = Counted(i);
    }
    check("firstprivate, lastprivate, reduction of objects",
          sum.value() == 10 + 3 * count && last.value() == count - 1);
    long total = 0;
#pragma omp parallel
#pragma omp single
    for (long i = 0; i < 64; ++i) {
        Counted number(i);
        std::string text(static_cast<std::size_t>(i), 'x');
#pragma omp task firstprivate(number, text) shared(total)
        {
            ++bodies;
#pragma omp atomic
            total += number.value() + static_cast<long>(text.size());
        }
    }
    check("firstprivate objects of tasks", total == 2 * 2016 && bodies == 64);
    check("each object is destroyed once", alive == 3);
}

void iterators() {
    std::vector<long> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0L);
    long sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(dynamic, 7)
    for (auto at = numbers.begin(); at < numbers.end(); ++at) sum += *at;
    check("for over iterators", sum == 460320);
    sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (const long number : numbers) sum += number;
    check("for over a range", sum == 460320);
    long& alias = sum;
    sum = 0;
#pragma omp parallel
#pragma omp single
#pragma omp taskloop reduction(+ : alias) grainsize(50)
    for (auto at = numbers.begin(); at < numbers.end(); ++at) alias += *at;
    check("taskloop over iterators, reduction of a reference", sum == 460320);
}

template <class Number>
Number fibonacci(Number n) {
    if (n < 2) return n;
    Number a = 0, b = 0;
#pragma omp task shared(a) firstprivate(n) if (n > 10)
    a = fibonacci<Number>(n - 1);
#pragma omp task shared(b) firstprivate(n) final(n < 8)
    b = fibonacci<Number>(n - 2);
#pragma omp taskwait
    return a + b;
}

struct Worker {
    long seen = 0;
    void work() {
#pragma omp parallel for
        for (int i = 0; i < count; ++i) {
#pragma omp atomic
            seen += i;
        }
    }
};

void language() {
    long result = 0;
#pragma omp parallel
#pragma omp single
    result = fibonacci(15L);
    check("tasks of a template", result == 610);
    Worker worker;
    worker.work();
    check("region in a method", worker.seen == 460320);
    long caught = 0;
#pragma omp parallel for reduction(+ : caught)
    for (int i = 0; i < count; ++i) {
        try {
            if (i % 3 == 0) throw std::runtime_error("third");
        } catch (const std::runtime_error&) {
            ++caught;
        }
    }
    check("exceptions inside a region", caught == count / 3);
    long by_task = 0;
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 20; ++i) {
#pragma omp task shared(by_task) firstprivate(i)
        try {
            throw i;
        } catch (const int number) {
#pragma omp atomic
            by_task += number;
        }
    }
    check("exceptions inside tasks", by_task == 190);
    const auto square = [](long x) { return x * x; };
    long squares = 0;
#pragma omp parallel for reduction(+ : squares)
    for (int i = 0; i < count; ++i) squares += square(i);
    check("lambdas", squares == 294451360);
}

}  // namespace

int main(int arguments, char**) {
    objects();
    iterators();
    language();
    return run_rows(arguments);
}
