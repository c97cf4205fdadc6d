! SPDX-License-Identifier: BSD-3-Clause
! The constructs and routines of OpenMP as Fortran writes them; what is printed does not depend on how many threads
! there are, but on their number where the routine asks for it.
module shared_data
  use omp_lib
  implicit none
  integer, parameter :: n = 1000
  integer, save :: own = 0
  !$omp threadprivate(own)
contains
  subroutine loops()
    integer :: i, j, total, last, chunks
    integer(8) :: wide
    real(8) :: values(n), sum_of, smallest, largest
    integer :: counts(n), order(20)
    !$omp parallel do schedule(static, 7)
    do i = 1, n
       values(i) = sqrt(real(i, 8))
    end do
    sum_of = 0
    smallest = 1e9
    largest = -1
    !$omp parallel do schedule(dynamic, 3) reduction(+:sum_of) reduction(min:smallest) reduction(max:largest)
    do i = 1, n
       sum_of = sum_of + nint(values(i) * 1000)
       smallest = min(smallest, values(i))
       largest = max(largest, values(i))
    end do
    print '(a,i12,2f8.3)', 'reductions ', nint(sum_of), smallest, largest
    counts = 0
    !$omp parallel do schedule(guided) collapse(2) reduction(+:counts)
    do i = 1, 10
       do j = 1, 100
          counts((i - 1) * 100 + j) = counts((i - 1) * 100 + j) + i * j
       end do
    end do
    print '(a,i12)', 'collapsed ', sum(counts)
    total = 0
    chunks = 0
    !$omp parallel do ordered schedule(dynamic) lastprivate(last)
    do i = 1, 20
       last = i * i
       !$omp ordered
       total = total + 1
       order(i) = total
       !$omp end ordered
    end do
    print '(a,20i3,i5)', 'ordered ', order, last
    wide = 0
    !$omp parallel do schedule(runtime) reduction(+:wide)
    do i = n, 1, -3
       wide = wide + int(i, 8) * 1000000
    end do
    print '(a,i16)', 'downwards ', wide
    !$omp parallel do simd reduction(+:chunks)
    do i = 1, n
       chunks = chunks + 1
    end do
    print '(a,i8)', 'simd ', chunks
  end subroutine

  subroutine blocks()
    integer :: singles, masters, given, all_given, criticals, named, parts(4), atoms, captured, seen(64)
    real :: a(50), b(50)
    singles = 0
    masters = 0
    all_given = 0
    criticals = 0
    named = 0
    parts = 0
    atoms = 0
    seen = 0
    own = 3
    a = 2.0
    !$omp parallel private(given, captured) copyin(own) shared(a, b)
    own = own + omp_get_thread_num()
    !$omp single
    singles = singles + 1
    !$omp end single
    !$omp single
    given = 17
    !$omp end single copyprivate(given)
    !$omp critical
    all_given = all_given + given
    criticals = criticals + 1
    !$omp end critical
    !$omp critical (other)
    named = named + own
    !$omp end critical (other)
    !$omp master
    masters = masters + 1
    !$omp end master
    !$omp barrier
    !$omp sections
    !$omp section
    parts(1) = 1
    !$omp section
    parts(2) = 2
    !$omp section
    parts(3) = 3
    !$omp section
    parts(4) = 4
    !$omp end sections
    !$omp workshare
    b = a * 3.0
    a = b + 1.0
    !$omp end workshare
    !$omp atomic
    atoms = atoms + 2
    !$omp atomic read
    captured = masters
    !$omp flush
    seen(omp_get_thread_num() + 1) = captured
    !$omp end parallel
    print '(a,6i6)', 'blocks ', singles, masters, all_given, criticals, atoms, sum(seen)
    print '(a,i6,4i3,2f7.1)', 'parts ', named, parts, sum(a), sum(b)
    ! Each thread's copy is there in the next region.
    named = 0
    !$omp parallel reduction(+:named)
    named = named + own
    !$omp end parallel
    print '(a,i6)', 'threadprivate ', named
  end subroutine

  subroutine locks()
    integer(omp_lock_kind) :: lock
    integer(omp_nest_lock_kind) :: nested
    integer :: count, deep, tries
    count = 0
    deep = 0
    tries = 0
    call omp_init_lock(lock)
    call omp_init_nest_lock(nested)
    !$omp parallel reduction(+:tries)
    call omp_set_lock(lock)
    count = count + 1
    call omp_unset_lock(lock)
    do while (.not. omp_test_lock(lock))
    end do
    count = count + 10
    call omp_unset_lock(lock)
    call omp_set_nest_lock(nested)
    tries = tries + omp_test_nest_lock(nested)
    deep = deep + 1
    call omp_unset_nest_lock(nested)
    call omp_unset_nest_lock(nested)
    !$omp end parallel
    call omp_destroy_lock(lock)
    call omp_destroy_nest_lock(nested)
    print '(a,3i6)', 'locks ', count, deep, tries
  end subroutine

  subroutine routines()
    integer :: kind, chunk, levels, ancestors
    integer(omp_sched_kind) :: schedule
    call omp_set_schedule(omp_sched_dynamic, 5)
    call omp_get_schedule(schedule, chunk)
    kind = int(schedule)
    levels = 0
    ancestors = 0
    call omp_set_max_active_levels(2)
    !$omp parallel num_threads(2) reduction(+:levels, ancestors)
    !$omp parallel num_threads(2) reduction(+:levels, ancestors)
    levels = levels + omp_get_level() * 10 + omp_get_active_level()
    ancestors = ancestors + omp_get_ancestor_thread_num(1) + omp_get_team_size(2)
    !$omp end parallel
    !$omp end parallel
    call omp_set_max_active_levels(1)
    print '(a,5i5)', 'routines ', kind, chunk, levels, ancestors, omp_get_max_threads()
    print '(a,4l2)', 'where ', omp_in_parallel(), omp_in_final(), omp_get_cancellation(), omp_is_initial_device()
    print '(a,2i3,l2)', 'devices ', omp_get_num_devices(), omp_get_num_teams(), omp_get_wtime() > 0
  end subroutine
end module

program fortran_constructs
  use shared_data
  implicit none
  call loops()
  call blocks()
  call locks()
  call routines()
end program
