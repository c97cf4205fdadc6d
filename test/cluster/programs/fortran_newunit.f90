! SPDX-License-Identifier: BSD-3-Clause
! Units that OPEN chooses, at a time when its variable holds the number of a standard unit: those stay what they are.
program fortran_newunit
  implicit none
  integer :: unit, i, turn
  do turn = 0, 2
    unit = merge(0, 6, turn == 0)
    open (newunit=unit, status='scratch')
    write (unit, *) turn
    close (unit)
    !$omp parallel do ordered schedule(static, 1)
    do i = 1, 6
      !$omp ordered
      print '(a, i0)', 'line ', i
      write (0, '(a, i0)') 'error ', i
      !$omp end ordered
    end do
  end do
end program
