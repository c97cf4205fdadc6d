! SPDX-License-Identifier: BSD-3-Clause
! A unit that one thread has opened, used by another: refused where it is not open. With an argument: a unit that OPEN
! has chosen, beside one of each thread's own; or one that the last thread has opened, used by main.
program fortran_unit
  use omp_lib
  implicit none
  integer :: i, unit, own
  character(10) :: what
  call get_command_argument(1, what)
  unit = 20
  if (what == 'chosen') then
    open (newunit=unit, file='/dev/null')
  else if (what /= 'main') then
    open (unit=unit, file='/dev/null')
  end if
  !$omp parallel do ordered schedule(static, 1) private(own)
  do i = 1, 8
    if (what == 'chosen') open (newunit=own, status='scratch')
    !$omp ordered
    if (what /= 'main') then
      write (unit, *) 'line', i
    else if (omp_get_thread_num() == omp_get_num_threads() - 1 .and. i <= omp_get_num_threads()) then
      open (unit=unit, file='/dev/null')
    end if
    !$omp end ordered
    if (what == 'chosen') close (own)
  end do
  if (what == 'main') write (unit, *) 'main'
  close (unit)
  print *, 'not reached on several nodes'
end program fortran_unit
