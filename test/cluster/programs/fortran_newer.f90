! SPDX-License-Identifier: BSD-3-Clause
! What gfortran compiles and flang 19 does not yet: task reductions, detached tasks, reductions over teams, depend objects,
! scans, taskloops, target regions, dependences on elements of arrays.
program fortran_newer
  use omp_lib
  implicit none
  integer :: i, k, reduced, value, ended, teams_sum, running, begun, captured
  integer :: mapped(100), looped(64), sums(50), ordered_by(2), blocks(6)
  integer(omp_event_handle_kind) :: event
  integer(omp_depend_kind) :: object
  real(8) :: until

  reduced = 0
  !$omp parallel private(until)
  !$omp single
  !$omp taskgroup task_reduction(+:reduced)
  do i = 1, 20
     !$omp task in_reduction(+:reduced) firstprivate(i) private(until)
     until = omp_get_wtime() + 3d-4
     do while (omp_get_wtime() < until)
     end do
     reduced = reduced + i
     !$omp end task
  end do
  !$omp end taskgroup
  !$omp end single
  !$omp end parallel
  print '(a,i6)', 'reduced ', reduced

  value = 0
  ended = 0
  !$omp parallel
  !$omp single
  !$omp task detach(event) depend(out: value) shared(value)
  value = 5
  !$omp end task
  !$omp task depend(in: value) shared(ended, value)
  ended = value
  !$omp end task
  call omp_fulfill_event(event)
  !$omp taskwait
  !$omp end single
  !$omp end parallel
  print '(a,i6)', 'detach ', ended

  blocks = 0
  !$omp parallel
  !$omp single
  do i = 1, 6
     !$omp task depend(out: blocks(i)) shared(blocks) firstprivate(i)
     blocks(i) = i
     !$omp end task
  end do
  do i = 2, 6
     !$omp task depend(in: blocks(i - 1)) depend(inout: blocks(i)) shared(blocks) firstprivate(i) priority(i)
     blocks(i) = blocks(i) * 10 + mod(blocks(i - 1), 10)
     !$omp end task
  end do
  !$omp end single
  !$omp end parallel
  print '(a,6i5)', 'elements ', blocks

  captured = 0
  !$omp parallel private(i)
  !$omp atomic capture
  i = captured
  captured = captured + 2
  !$omp end atomic
  !$omp end parallel
  print '(a,l2)', 'captured ', captured == 2 * omp_get_max_threads()

  looped = 0
  !$omp parallel
  !$omp single
  !$omp taskloop grainsize(4) shared(looped)
  do k = 1, 64
     looped(k) = k
  end do
  !$omp end taskloop
  !$omp taskloop num_tasks(5) shared(looped)
  do k = 64, 1, -2
     looped(k) = looped(k) * 2
  end do
  !$omp end taskloop
  !$omp end single
  !$omp end parallel
  print '(a,i6)', 'loop ', sum(looped)

  mapped = 1
  captured = 0
  !$omp target map(tofrom: mapped, captured)
  captured = merge(1, 2, omp_is_initial_device())
  mapped = mapped + 1
  !$omp end target
  print '(a,2i6)', 'target ', captured, sum(mapped)

  teams_sum = 0
  mapped = 2
  !$omp target teams distribute parallel do map(tofrom: teams_sum, mapped) reduction(+:teams_sum)
  do i = 1, 100
     teams_sum = teams_sum + mapped(i)
  end do
  print '(a,i6)', 'teams ', teams_sum

  running = 0
  !$omp parallel do reduction(inscan, +:running)
  do i = 1, 50
     running = running + i
     !$omp scan inclusive(running)
     sums(i) = running
  end do
  print '(a,3i6)', 'scan ', sums(1), sums(25), sums(50)

  ordered_by = 0
  !$omp parallel
  !$omp single
  !$omp depobj(object) depend(inout: ordered_by(1))
  !$omp task depend(depobj: object) shared(ordered_by)
  ordered_by(1) = 6
  !$omp end task
  !$omp task depend(depobj: object) shared(ordered_by)
  ordered_by(2) = ordered_by(1) * 7
  !$omp end task
  !$omp taskwait
  !$omp depobj(object) destroy
  !$omp end single
  !$omp end parallel
  print '(a,2i6)', 'object ', ordered_by

  begun = 0
  !$omp parallel
  !$omp do
  do i = 1, 1000
     if (i == 3) then
        begun = 1
        !$omp cancel do
     end if
     !$omp cancellation point do
  end do
  !$omp end do
  !$omp end parallel
  print '(a,i6)', 'cancelled ', begun
end program
