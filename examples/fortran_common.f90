! SPDX-License-Identifier: BSD-3-Clause
! Fortran: a COMMON block, module data, allocatable arrays and a threadprivate counter, used from
! subroutines called in parallel regions. Usage: ./fortran_common
module table
  implicit none
  integer, parameter :: n = 60000
  real(8), allocatable :: squares(:)
  integer :: calls = 0
end module table

subroutine fill(i)
  use table
  implicit none
  integer, intent(in) :: i
  real(8) :: factor, results(60000)
  common /shared_block/ factor, results
  integer :: mine
  common /private_block/ mine
  !$omp threadprivate(/private_block/)
  results(i) = factor * squares(i)
  mine = mine + 1
end subroutine fill

program fortran_common
  use table
  implicit none
  real(8) :: factor, results(60000), total, expected
  common /shared_block/ factor, results
  integer :: mine
  common /private_block/ mine
  !$omp threadprivate(/private_block/)
  integer :: i, wrong
  integer(8) :: start, finish, rate
  character(len=10) :: verdict

  call system_clock(start, rate)
  allocate (squares(n))
  factor = 0.5d0
  !$omp parallel do
  do i = 1, n
    squares(i) = dble(i) * dble(i)
  end do

  mine = 3
  !$omp parallel copyin(mine)
  !$omp do
  do i = 1, n
    call fill(i)
  end do
  !$omp end do
  !$omp critical
  calls = calls + mine - 3
  !$omp end critical
  !$omp end parallel

  total = 0
  wrong = 0
  !$omp parallel do reduction(+:total, wrong)
  do i = 1, n
    total = total + results(i)
    if (results(n + 1 - i) /= 0.5d0 * dble(n + 1 - i)**2) wrong = wrong + 1
  end do

  expected = dble(n) * dble(n + 1) * dble(2 * n + 1) / 12
  verdict = 'FAILED'
  if (wrong == 0 .and. calls == n .and. abs(total - expected) <= 1d-12 * expected) verdict = 'SUCCESSFUL'
  call system_clock(finish)
  print '(a,i0,a,f0.3,2a)', 'FORTRAN ', n, ' elements seconds ', &
    dble(finish - start) / dble(rate), ' VERIFICATION ', trim(verdict)
  if (verdict /= 'SUCCESSFUL') stop 1
end program fortran_common
