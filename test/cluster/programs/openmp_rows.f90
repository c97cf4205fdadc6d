! SPDX-License-Identifier: BSD-3-Clause
! Constructs, clauses and API routines that the other Fortran programs here leave out, a line each.
! Right with any number of threads.
module rows
  use omp_lib
  implicit none
  integer, parameter :: n = 960
  integer :: wrong = 0
  integer :: values(n)
  type pair
    integer :: sum = 0, most = 0
  end type
  !$omp declare reduction(pairs : pair : omp_out = pair(omp_out%sum + omp_in%sum, &
  !$omp&   max(omp_out%most, omp_in%most))) initializer(omp_priv = pair(0, 0))
contains
  subroutine check(row, right)
    character(*), intent(in) :: row
    logical, intent(in) :: right
    if (right) then
      print '(2a)', 'right ', row
    else
      print '(2a)', 'WRONG ', row
      wrong = wrong + 1
    end if
  end subroutine

  integer function scaled(i)
    !$omp declare simd
    integer, intent(in) :: i
    scaled = 3 * i
  end function

  subroutine constructs
    type(pair) :: both
    integer :: i, k, j, last, conditional, total, seen, chain, prefix(n)
    integer, allocatable :: copies(:)
    both = pair(0, 0)
    !$omp parallel do reduction(pairs : both)
    do i = 1, n
      both%sum = both%sum + i
      both%most = max(both%most, i)
    end do
    call check('declare reduction', both%sum == 461280 .and. both%most == n)
    values = 0
    !$omp parallel do simd
    do i = 1, n
      values(i) = scaled(i)
    end do
    call check('declare simd, do simd', all(values == [(3 * i, i = 1, n)]))
    j = 0
    last = 0
    conditional = 0
    !$omp parallel do linear(j : 2) lastprivate(last)
    do i = 1, n
      values(i) = j
      j = j + 2
      last = i
    end do
    call check('linear, lastprivate', j == 2 * n .and. last == n .and. values(n) == 2 * (n - 1))
    !$omp parallel do lastprivate(conditional : conditional) schedule(dynamic, 3)
    do i = 1, n
      if (mod(i, 100) == 17) conditional = i
    end do
    call check('lastprivate(conditional)', conditional == 917)
    values = 0
    !$omp parallel do collapse(2) order(concurrent)
    do i = 1, 24
      do k = 1, 40
        values((i - 1) * 40 + k) = i + k
      end do
    end do
    call check('collapse, order(concurrent)', sum(values) == 31680)
    total = 0
    !$omp parallel do reduction(inscan, + : total)
    do i = 1, n
      total = total + i
      !$omp scan inclusive(total)
      prefix(i) = total
    end do
    call check('scan', total == 461280 .and. all(prefix == [(i * (i + 1) / 2, i = 1, n)]))
    allocate(copies(4))
    copies = 5
    seen = 0
    !$omp parallel firstprivate(copies) reduction(+ : seen)
    copies(1) = copies(1) + omp_get_thread_num()
    if (all(copies(2:) == 5) .and. copies(1) == 5 + omp_get_thread_num()) seen = seen + 1
    !$omp end parallel
    call check('firstprivate allocatable', seen >= 1 .and. all(copies == 5))
    values = 0
    !$omp teams num_teams(2)
    !$omp distribute parallel do
    do i = 1, n
      values(i) = values(i) + 1
    end do
    !$omp end teams
    call check('teams distribute parallel do', all(values == 1))
    !$omp parallel
    !$omp loop bind(parallel)
    do i = 1, n
      values(i) = values(i) + 1
    end do
    !$omp end parallel
    call check('loop bind(parallel)', all(values == 2))
    chain = 0
    !$omp parallel
    !$omp single
    do i = 1, 30
      !$omp task depend(inout : chain) firstprivate(i)
      chain = mod(chain * 3, 100003) + i
      !$omp end task
    end do
    !$omp taskgroup
    !$omp taskloop num_tasks(7) shared(values)
    do i = 1, n
      values(i) = values(i) + 1
    end do
    !$omp end taskgroup
    !$omp end single
    !$omp end parallel
    j = 0
    do i = 1, 30
      j = mod(j * 3, 100003) + i
    end do
    call check('task depend, taskloop num_tasks', chain == j .and. all(values == 3))
    total = 0
    !$omp parallel master taskloop reduction(+ : total)
    do i = 1, n
      total = total + i
    end do
    call check('parallel master taskloop reduction', total == 461280)
    seen = 0
    !$omp parallel do
    do i = 1, n
      !$omp critical (named) hint(omp_sync_hint_contended)
      seen = seen + 1
      !$omp end critical (named)
    end do
    call check('critical hint', seen == n)
    !$omp target map(tofrom : values)
    values = values + 1
    !$omp end target
    call check('target', all(values == 4))
  end subroutine

  subroutine routines
    integer(omp_sched_kind) :: kind
    integer(omp_lock_kind) :: lock
    integer(omp_nest_lock_kind) :: nest
    integer :: chunk, threads, inside, locked, i, depth
    character(32) :: format
    double precision :: before
    threads = omp_get_max_threads()
    call check('omp_get_num_procs', omp_get_num_procs() >= 1)
    call check('omp_get_thread_limit', omp_get_thread_limit() >= threads)
    call check('omp_in_parallel, omp_get_level', .not. omp_in_parallel() .and. omp_get_level() == 0 &
               .and. omp_get_active_level() == 0)
    inside = 0
    !$omp parallel num_threads(2) reduction(+ : inside)
    if (omp_get_ancestor_thread_num(1) == omp_get_thread_num() .and. &
        omp_get_team_size(1) == omp_get_num_threads()) inside = inside + 1
    !$omp end parallel
    call check('omp_get_ancestor_thread_num, omp_get_team_size', inside >= 1)
    call omp_set_num_threads(threads + 1)
    call check('omp_set_num_threads', omp_get_max_threads() == threads + 1)
    call omp_set_num_threads(threads)
    call omp_set_dynamic(.true.)
    call check('omp_set_dynamic', omp_get_dynamic())
    call omp_set_dynamic(.false.)
    call omp_set_max_active_levels(2)
    call check('omp_set_max_active_levels', omp_get_max_active_levels() == 2 .and. &
               omp_get_supported_active_levels() >= 2)
    call omp_set_schedule(omp_sched_dynamic, 6)
    call omp_get_schedule(kind, chunk)
    call check('omp_set_schedule', kind == omp_sched_dynamic .and. chunk == 6)
    call check('omp_get_cancellation', .not. omp_get_cancellation())
    call check('omp_get_max_task_priority', omp_get_max_task_priority() == 0)
    call check('omp_in_final', .not. omp_in_final())
    before = omp_get_wtime()
    call check('omp_get_wtime, omp_get_wtick', omp_get_wtime() >= before .and. omp_get_wtick() > 0)
    call omp_set_affinity_format('thread %n')
    call check('omp_set_affinity_format', omp_get_affinity_format(format) == 9 .and. &
               format == 'thread %n')
    call check('omp_capture_affinity', omp_capture_affinity(format, 'of %N') == 4 .and. &
               format == 'of 1')
    call check('omp_get_num_teams, omp_get_team_num', omp_get_num_teams() == 1 .and. &
               omp_get_team_num() == 0)
    call check('omp_get_num_devices, omp_is_initial_device', omp_get_num_devices() == 0 .and. &
               omp_is_initial_device())
    call omp_init_lock(lock)
    call omp_init_nest_lock(nest)
    locked = 0
    depth = 0
    !$omp parallel do
    do i = 1, 60
      call omp_set_lock(lock)
      locked = locked + 1
      call omp_unset_lock(lock)
      call omp_set_nest_lock(nest)
      depth = max(depth, omp_test_nest_lock(nest))
      call omp_unset_nest_lock(nest)
      call omp_unset_nest_lock(nest)
    end do
    call check('locks', locked == 60 .and. depth == 2 .and. omp_test_lock(lock))
    call omp_unset_lock(lock)
    call omp_destroy_lock(lock)
    call omp_destroy_nest_lock(nest)
    call omp_set_default_allocator(omp_default_mem_alloc)
    call check('omp_set_default_allocator', omp_get_default_allocator() == omp_default_mem_alloc)
    call check('omp_get_proc_bind', omp_get_proc_bind() == omp_proc_bind_false)
  end subroutine
end module

program openmp_rows
  use rows
  call constructs
  call routines
  if (wrong /= 0) stop 1
end program
