! SPDX-License-Identifier: BSD-3-Clause
! A unit that the first thread has opened, written by all: refused where it is not open.
program fortran_unit
  implicit none
  integer :: i
  open(unit=20, file='/dev/null')
  !$omp parallel do ordered schedule(static, 1)
  do i = 1, 8
    !$omp ordered
    write(20, *) 'line', i
    !$omp end ordered
  end do
  close(20)
  print *, 'not reached on several nodes'
end program fortran_unit
